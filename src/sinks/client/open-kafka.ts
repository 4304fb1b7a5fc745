import { Kafka, logLevel } from 'kafkajs';
import type { logCreator } from 'kafkajs';
import type { ConfigWith } from '../../config/config.ts';
import { describeError } from '../../core/errors.ts';
import { sharedCodecs } from '../../schemas/events/shared-codecs.ts';
import { openRegistry } from './open-registry.ts';
import type { Registry } from '../../schemas/registry/registry.ts';
import { brokerSocket } from './broker-socket.ts';
import { connectionsOf } from './connections.ts';
import type { Connections } from './connections.ts';
import { kafkaSasl, kafkaTls } from './kafka-login.ts';
import { withoutIdleChecks } from './kafkajs-inner.ts';
import { clusterFacts } from '../producer/cluster-facts.ts';
import type { ClusterFacts } from '../producer/cluster-facts.ts';
import { newestOfTopics } from '../fetch/newest-of-topics.ts';
import type { NewestOfTopics } from '../fetch/newest-of-topics.ts';

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

export interface KafkaOptions {
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
