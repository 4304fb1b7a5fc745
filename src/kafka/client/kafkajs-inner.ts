// Internal parts of kafkajs that create connections from a `Kafka`'s settings, with TLS and login. They are not in its public API, so its
// version is pinned to 2.2.x.

import type { Kafka } from 'kafkajs';

export interface Cluster {
  connect(): Promise<void>;
  disconnect(): Promise<void>;
  addTargetTopic(topic: string): Promise<void>;
  refreshMetadataIfNecessary(): Promise<void>;
  findTopicPartitionMetadata(
    topic: string,
  ): readonly { readonly partitionId: number; readonly leader: number }[];
  findBroker(which: { nodeId: string }): Promise<Pick<Broker, 'connectionPool'>>;
  readonly connectionPoolBuilder: {
    /** Creates kafkajs' connections to the broker at `address`. Without `address`, each call takes the next broker in the settings. */
    build: (address?: { readonly host: string; readonly port: number }) => Promise<ConnectionPool>;
  };
  readonly brokerPool: {
    createBroker(options: {
      readonly connectionPool: ConnectionPool;
      readonly logger: unknown;
    }): Broker;
  };
  readonly rootLogger: unknown;
}

export interface Broker {
  readonly connectionPool: ConnectionPool;
  /** Request versions that the broker supports, by the number of the request type in Kafka's protocol; set once the broker is connected. */
  readonly versions?: Readonly<
    Record<number, { readonly minVersion: number; readonly maxVersion: number } | undefined>
  > | null;
  /** Resolves when the broker has reported its supported versions and accepted the login. */
  connect(): Promise<void>;
}

export interface ConnectionPool {
  readonly host: string;
  readonly port: number;
  /** Connections to the broker; kafkajs uses the first one for all requests but fetches. */
  readonly pool: readonly [Connection, ...Connection[]];
  send<T>(exchange: Exchange<T>): Promise<T>;
}

export interface Connection {
  send<T>(exchange: Exchange<T>): Promise<T>;
  isConnected(): boolean;
  disconnect(): Promise<unknown>;
  rejectRequests(error: Error): void;
  readonly socket?: { destroy(): unknown };
  readonly requestQueue: {
    readonly pending: readonly unknown[];
    scheduleCheckPendingRequests: () => void;
    /** Whether kafkajs checks ten times a second, while this connection is open, for requests that have timed out. */
    enforceRequestTimeout: boolean;
  };
  /** How long before its expiry a login is considered expired, in ms. kafkajs then logs in again before the next request. */
  reauthenticationThreshold: number;
  /** Time of the login, as returned by `process.hrtime()`; null without a login. */
  readonly authenticatedAt: readonly [seconds: number, nanos: number] | null;
  /** Lifetime of the login, in ms; 0 if it does not expire. */
  readonly sessionLifetime: { toString(): string };
}

export interface Exchange<T> {
  readonly request: {
    readonly apiName: string;
    readonly apiKey?: number;
    readonly apiVersion?: number;
    /** Encodes the part of the request that follows its header. The result has the fields of kafkajs' encoder. */
    readonly encode?: () => Promise<{ readonly buf: Buffer; readonly buffer: Buffer }>;
  };
  readonly response: {
    readonly decode: (bytes: Buffer) => T;
    readonly parse: (decoded: T) => T;
  };
}

/**
 * Default options of {@link clusterOf}. `metadataMaxAge`: age at which a topic's metadata are refreshed, in ms. If it is too large, new
 * partitions of the topic are noticed late.
 */
const CLUSTER_OPTIONS = { metadataMaxAge: 300_000, allowAutoTopicCreation: false };

/** Description of the symbol under which a `Kafka` contains kafkajs' internal function for creating clusters. */
const CREATE_CLUSTER = 'private:Kafka:createCluster';

/** Creates a cluster object of kafkajs, without connecting. @throws TypeError if `kafka` is not of kafkajs 2.2. */
export function clusterOf(kafka: Kafka, options = CLUSTER_OPTIONS): Cluster {
  const cluster = Reflect.apply(clusterMaker(kafka).create, kafka, [options]) as Cluster;
  const { connectionPoolBuilder } = cluster;
  const build = connectionPoolBuilder.build.bind(connectionPoolBuilder);
  connectionPoolBuilder.build = async (address) => {
    const connectionPool = await build(address);
    connectionPool.pool.forEach(endIdleChecks);
    return connectionPool;
  };
  return cluster;
}

/** Returns a `Kafka` with the same settings, but without kafkajs' constant checks of idle connections in its consumers and admins. */
export function withoutIdleChecks(kafka: Kafka): Kafka {
  const { key } = clusterMaker(kafka);
  const create = (options: typeof CLUSTER_OPTIONS) => clusterOf(kafka, options);
  return Object.create(kafka, { [key]: { value: create } }) as Kafka;
}

/** Returns kafkajs' internal function that creates the clusters of a `Kafka`, and the symbol that is its key in the `Kafka`. */
function clusterMaker(kafka: Kafka) {
  const key = Object.getOwnPropertySymbols(kafka).find(
    (each) => each.description === CREATE_CLUSTER,
  );
  const create: unknown = key && Reflect.get(kafka, key);
  if (key && typeof create === 'function') return { key, create };
  throw new TypeError(
    'this Kafka object is not of kafkajs 2.2, whose internals are required: install kafkajs 2.2',
  );
}

/**
 * Stops kafkajs from checking a connection for unsent requests while no requests are waiting. Otherwise kafkajs 2.2.4 checks a thousand
 * times a second (kafkajs#1704), and sets timers with a negative timeout, of which Node 24 warns (kafkajs#1751).
 */
function endIdleChecks({ requestQueue }: Connection): void {
  const check = requestQueue.scheduleCheckPendingRequests.bind(requestQueue);
  requestQueue.scheduleCheckPendingRequests = () => {
    if (requestQueue.pending.length > 0) check();
  };
}
