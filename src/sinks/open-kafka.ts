// Creates the clients of a configuration: Kafka, the schema registry, and the transactional log that tasks use.

import net from 'node:net';
import tls from 'node:tls';
import { Kafka, logLevel } from 'kafkajs';
import type { logCreator, ISocketFactory } from 'kafkajs';
import type { ConfigWith, RegistryConfig } from '../config/config.ts';
import { describeError } from '../core/errors.ts';
import { KAFKAJS_RETRIES } from '../core/retries.ts';
import { sharedCodecs } from '../schemas/events/envelope.ts';
import type { Registry } from '../schemas/registry/registry.ts';
import { Connections } from '../kafka/client/connections.ts';
import { kafkaSasl, kafkaTls, tokenConnections } from '../kafka/client/kafka-login.ts';
import { withoutIdleChecks } from '../kafka/client/kafkajs-inner.ts';
import { clusterFacts } from '../kafka/client/topic-facts.ts';
import type { ClusterFacts } from '../kafka/client/topic-facts.ts';
import { compactedTopics, readTail } from '../kafka/fetch/kafka-tail.ts';
import type { CompactedTopics } from '../kafka/fetch/kafka-tail.ts';
import { ADDRESS_ATTEMPT_MS } from '../core/http-connections.ts';
import { clientTokens } from '../core/client-tokens.ts';
import { createRegistry } from '../schemas/registry/registry.ts';
import type { ClusterAccess } from '../kafka/client/brokers.ts';
import { openKafkaProducer } from './producer/kafka-producer.ts';
import type { KafkaProducerOptions } from './producer/kafka-producer.ts';
import type { TransactionalLog } from './sink.ts';

export interface KafkaClients {
  readonly kafka: Kafka;
  readonly connections: Connections;
  readonly compactedTopics: CompactedTopics;
  readonly cluster: ClusterFacts;
  readonly registry: Registry;
  /** Returns the codec for change events with a schema. Equal schemas share one codec. */
  readonly compile: ReturnType<typeof sharedCodecs>;
}

/**
 * Maximum number of retries of a request in kafkajs, for commands and for the check when the service starts. It is low, so that an
 * unreachable Kafka is reported soon.
 */
export const STARTUP_RETRIES = KAFKAJS_RETRIES.command;

/**
 * Maximum number of connections to each broker, shared by all producers. If it is too small, lists wait for each other's commits, because a
 * broker responds to the requests of a connection in order.
 */
const CONNECTIONS_PER_BROKER = 6;

/**
 * Longest time to set up a connection, in ms. If it is too small, the second address of a host is never tried, as with kafkajs' default of
 * 1,000 (kafkajs#509).
 */
const CONNECT_TIMEOUT_MS = 5_000;

/** kafkajs logs in again this many ms before a login expires. If this is more than a login's validity, each request causes a login. */
const LOG_IN_BEFORE_MS = 1_000;

interface KafkaOptions {
  readonly log?: logCreator | undefined;
  /** Maximum number of times that kafkajs repeats a failed request before it throws the error. Default: `KAFKAJS_RETRIES.service`. */
  readonly kafkaRetries?: number;
}

/** Creates a client of kafkajs, without connecting. */
export function openKafka(config: ConfigWith<'kafka'>, options: KafkaOptions = {}): Kafka {
  const { log, kafkaRetries = KAFKAJS_RETRIES.service } = options;
  const { brokers } = config.kafka;
  const sasl = kafkaSasl(config.kafka, (error, leftMs) => {
    const left = `the current one expires in ${Math.ceil(leftMs / 1_000)} s`;
    kafka
      .logger()
      .warn(`could not get a new access token for Kafka, ${left}: ${describeError(error)}`);
  });
  const kafka = new Kafka({
    clientId: 'cellarstream',
    brokers: [...brokers],
    ssl: kafkaTls(config.kafka),
    ...(sasl && { sasl }),
    connectionTimeout: CONNECT_TIMEOUT_MS,
    socketFactory: brokerSocket,
    // With kafkajs' default of 10 s and logins that last 3 s, it would log in again before every request, which brokers refuse.
    reauthenticationThreshold: LOG_IN_BEFORE_MS,
    // A transaction may begin while the previous one is being ended, so the first retry comes soon. The
    // number is limited: afterwards the task restarts from what was committed.
    retry: { initialRetryTime: 30, multiplier: 2, maxRetryTime: 5_000, retries: kafkaRetries },
    logLevel: logLevel.INFO,
    ...(log && { logCreator: log }),
  });
  return withoutIdleChecks(kafka);
}

/** Creates the clients of Kafka and of the schema registry, without connecting. */
export function openKafkaClients(
  config: ConfigWith<'kafka' | 'registry'>,
  options: KafkaOptions = {},
): KafkaClients {
  const registry = openRegistry(config.registry);
  const kafka = openKafka(config, options);
  const connections = new Connections(kafka, CONNECTIONS_PER_BROKER);
  return {
    ...{ kafka, connections, registry, compile: sharedCodecs() },
    compactedTopics: compactedTopics(kafka),
    cluster: clusterFacts({ kafka, connections }),
  };
}

/** Idle time after which TCP checks whether the broker still responds, in ms. This is kafkajs' default. */
const KEEP_ALIVE_MS = 60_000;

/**
 * Opens a socket to a broker as kafkajs does by default, but waits up to {@link ADDRESS_ATTEMPT_MS} for each address of the host before it
 * tries the next one.
 */
export const brokerSocket: ISocketFactory = ({ host, port, ssl, onConnect }) => {
  const addresses = { autoSelectFamily: true, autoSelectFamilyAttemptTimeout: ADDRESS_ATTEMPT_MS };
  const tcp = { host, port, ...addresses };
  const serverName = net.isIP(host) === 0 ? { servername: host } : {}; // SNI allows no IP addresses
  const socket = ssl
    ? tls.connect({ ...tcp, ...serverName, ...ssl }, onConnect)
    : net.connect(tcp, onConnect);
  return socket.setKeepAlive(true, KEEP_ALIVE_MS);
};

export function openRegistry(config: RegistryConfig): Registry {
  const { url, auth, ca, client, proxies } = config;
  const headers = Object.fromEntries(
    Object.entries(config.headers).map(([name, value]) => [name, value.reveal()]),
  );
  const options = { url, headers, ca, cert: client?.cert, key: client?.key.reveal(), proxies };
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
      const { credentials } = auth;
      const connections = tokenConnections(ca, proxies);
      const errors = {
        settings: 'SCHEMA_REGISTRY_OAUTH',
        ca: 'SCHEMA_REGISTRY_CA_FILE',
        unreachable: 'REGISTRY_UNREACHABLE',
        refused: 'REGISTRY_REFUSED',
      } as const;
      const token = clientTokens({ credentials, errors, dispatcher: connections });
      const registry = createRegistry({ ...options, token });
      const closeRegistry = registry.close.bind(registry);
      const close = async () => {
        await closeRegistry();
        await connections.destroy();
      };
      return Object.assign(registry, { close });
    }
  }
}

/**
 * Creates the {@link TransactionalLog} that tasks use.
 *
 * @param topics Number of partitions and largest batch in bytes: one map each, whose keys are the topics that tasks write to. Each commit
 * reads the maps again, so that the caller may update them.
 */
export function kafkaTransactionalLog(
  links: ClusterAccess & Partial<Pick<KafkaClients, 'compactedTopics' | 'cluster'>>,
  topics: Pick<KafkaProducerOptions, 'partitions' | 'maxMessageBytes'>,
): TransactionalLog {
  const { kafka, connections } = links;
  const { compactedTopics: newest = compactedTopics(kafka), cluster = clusterFacts(links) } = links;
  const bounds: TransactionalLog['bounds'] = (topic, isolation = 'committed') =>
    cluster.bounds(topic, isolation);
  return {
    open: (transactionalId, previousIdentity) =>
      openKafkaProducer({ kafka, connections, transactionalId, ...topics, previousIdentity }),
    clusterId: cluster.id,
    ends: async (topic) =>
      new Map([...(await bounds(topic))].map(([partition, { high }]) => [partition, high])),
    bounds,
    readTail: (tail) => readTail({ kafka, ...tail }),
    compacted: (topic, boundsOf) => newest(topic, 'committed').asOf(boundsOf),
  };
}
