// Opens what a configuration names: Kafka, the registry, and the transactional log of tasks on both.

import net from 'node:net';
import tls from 'node:tls';
import { Kafka, logLevel } from 'kafkajs';
import type { logCreator, ISocketFactory } from 'kafkajs';
import type { Dispatcher } from 'undici';
import type { ConfigWith, RegistryConfig } from '../../config/config.ts';
import { describeError } from '../../core/errors.ts';
import { sharedCodecs } from '../../schemas/events/envelope.ts';
import type { Registry } from '../../schemas/registry/registry.ts';
import { connectionsOf } from './connections.ts';
import type { Connections } from './connections.ts';
import { kafkaSasl, kafkaTls, tokenConnections } from './kafka-login.ts';
import { withoutIdleChecks } from './kafkajs-inner.ts';
import { clusterFacts } from './topic-facts.ts';
import type { ClusterFacts } from './topic-facts.ts';
import { newestOfTopics, readTail } from '../fetch/kafka-tail.ts';
import type { NewestOfTopics } from '../fetch/kafka-tail.ts';
import { ADDRESS_ATTEMPT_MS } from '../../core/http-connections.ts';
import type { AccessTokens } from '../../core/access-tokens.ts';
import { clientTokens } from '../../core/client-tokens.ts';
import type { ClientCredentials } from '../../core/client-tokens.ts';
import { createRegistry } from '../../schemas/registry/registry.ts';
import type { Asked } from './brokers.ts';
import { openKafkaProducer } from '../producer/kafka-producer.ts';
import type { KafkaProducerOptions } from '../producer/kafka-producer.ts';
import type { TransactionalLog } from '../sink.ts';

export interface Links {
  readonly kafka: Kafka;
  /** What all producers of this process share. */
  readonly connections: Connections;
  /** What this process knows of topics that all tasks read. */
  readonly newest: NewestOfTopics;
  /** What any broker knows, asked by all tasks. */
  readonly cluster: ClusterFacts;
  readonly registry: Registry;
  /** What its schemas are compiled to. */
  readonly compile: ReturnType<typeof sharedCodecs>;
}

/** How often kafkajs asks again by itself before an error comes out: for some four seconds. */
const KAFKA_RETRIES = 7;
/** The same of those who look whether it is there at all: for a second. */
export const FIRST_RETRIES = 5;

/**
 * For producing, to each broker, whatever the number of lists. A broker answers one call of a connection after the other, and
 * a Produce when all replicas have it: so some lists must not wait for others.
 */
const CONNECTIONS_PER_BROKER = 6;

/** Longest time for a connection to a broker to be set up, in ms. With kafkajs' 1,000 a host's second address would never be tried. */
const CONNECT_TIMEOUT_MS = 5_000;

/** How long before its end a login is renewed, ms. */
const LOG_IN_BEFORE_MS = 1_000;

interface KafkaOptions {
  readonly log?: logCreator | undefined;
  /** For those who want to know soon. */
  readonly kafkaRetries?: number;
}

/** Connects to nothing yet. */
export function openKafka(config: ConfigWith<'kafka'>, options: KafkaOptions = {}): Kafka {
  const { log, kafkaRetries = KAFKA_RETRIES } = options;
  const { brokers } = config.kafka;
  const sasl = kafkaSasl(config.kafka, (error, leftMs) => {
    const left = `the last one serves for ${Math.ceil(leftMs / 1_000)} s more`;
    kafka.logger().warn(`no new token: ${describeError(error)}: ${left}`);
  });
  const kafka = new Kafka({
    clientId: 'cellarstream',
    brokers: [...brokers],
    ssl: kafkaTls(config.kafka),
    ...(sasl && { sasl }),
    connectionTimeout: CONNECT_TIMEOUT_MS,
    socketFactory: brokerSocket,
    // kafkajs logs in again so long before a login is over: with its own 10 s, where logins last 3 s, before every
    // request, which brokers refuse.
    reauthenticationThreshold: LOG_IN_BEFORE_MS,
    // Transactions one after the other meet the end of the one before: ask again soon. Not for
    // ever: in the end the task begins again from what was really committed.
    retry: { initialRetryTime: 30, multiplier: 2, maxRetryTime: 5_000, retries: kafkaRetries },
    logLevel: logLevel.INFO,
    ...(log && { logCreator: log }),
  });
  return withoutIdleChecks(kafka);
}

/** Connects to nothing yet. */
export function openLinks(
  config: ConfigWith<'kafka' | 'registry'>,
  options: KafkaOptions = {},
): Links {
  const registry = openRegistry(config.registry);
  const kafka = openKafka(config, options);
  const connections = connectionsOf(kafka, { perBroker: CONNECTIONS_PER_BROKER });
  return {
    kafka,
    connections,
    newest: newestOfTopics(kafka),
    cluster: clusterFacts({ kafka, connections }),
    registry,
    compile: sharedCodecs(),
  };
}

/** Idle time of a connection after which TCP checks that the broker is still there, in ms: kafkajs' own. */
const KEEP_ALIVE_MS = 60_000;

/** Connects to a broker as kafkajs does by default, and gives each address of its host enough time. */
export const brokerSocket: ISocketFactory = ({ host, port, ssl, onConnect }) => {
  const tcp = {
    host,
    port,
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: ADDRESS_ATTEMPT_MS,
  };
  const serverName = net.isIP(host) === 0 ? { servername: host } : {}; // SNI allows no IP addresses
  const socket = ssl
    ? tls.connect({ ...tcp, ...serverName, ...ssl }, onConnect)
    : net.connect(tcp, onConnect);
  return socket.setKeepAlive(true, KEEP_ALIVE_MS);
};

/** The schema registry of a configuration, with its login. Connects to nothing yet. */
export function openRegistry(config: RegistryConfig): Registry {
  const { url, auth, headers, ca, client, proxies } = config;
  const revealed = Object.entries(headers).map(([name, value]) => [name, value.reveal()] as const);
  const options = {
    url,
    headers: Object.fromEntries(revealed),
    ca,
    cert: client?.cert,
    key: client?.key.reveal(),
    proxies,
  };
  switch (auth?.kind) {
    case undefined:
      return createRegistry(options);
    case 'basic': {
      const { username, password } = auth;
      return createRegistry({ ...options, username, password: password.reveal() });
    }
    case 'bearer':
      return createRegistry({ ...options, token: auth.token.reveal() });
    case 'oauth': {
      const connections = tokenConnections(ca, proxies);
      const token = tokensOf(auth.credentials, connections);
      const registry = createRegistry({ ...options, token });
      const close = async () => {
        await registry.close();
        await connections.destroy();
      };
      return { ...registry, close };
    }
  }
}

function tokensOf(credentials: ClientCredentials, dispatcher: Dispatcher): AccessTokens {
  const errors = {
    settings: 'SCHEMA_REGISTRY_OAUTH',
    ca: 'SCHEMA_REGISTRY_CA_FILE',
    unreachable: 'REGISTRY_UNREACHABLE',
    refused: 'REGISTRY_REFUSED',
  } as const;
  return clientTokens({ credentials, errors, dispatcher });
}

/**
 * Kafka, as tasks see it. `topics` are those that are written to, looked up whenever something is sent.
 *
 * @param links What others share with it. Default connections of its own, and what it has read itself.
 */
export function kafkaTransactionalLog(
  links: Asked & Partial<Pick<Links, 'newest' | 'cluster'>>,
  topics: Pick<KafkaProducerOptions, 'partitions' | 'maxMessageBytes'>,
): TransactionalLog {
  const { kafka, connections } = links;
  const { newest = newestOfTopics(kafka), cluster = clusterFacts(links) } = links;
  const bounds: TransactionalLog['bounds'] = (topic, isolation = 'committed') =>
    cluster.bounds(topic, isolation);
  return {
    open: (transactionalId, own) =>
      openKafkaProducer({ kafka, connections, transactionalId, ...topics, own }),
    clusterId: cluster.id,
    ends: async (topic) =>
      new Map([...(await bounds(topic))].map(([partition, { high }]) => [partition, high])),
    bounds,
    readTail: (tail) => readTail({ kafka, ...tail }),
    newest: (topic, boundsOf) => newest(topic, 'committed').asOf(boundsOf),
  };
}
