// The parts of kafkajs that are taken out of it: what makes connections of a `Kafka`'s settings, TLS and login included. They are no part
// of what kafkajs promises, so its version is held at 2.2.x.

import type { Kafka } from 'kafkajs';

/** The part of kafkajs' cluster that is in use here. */
export interface Cluster {
  connect(): Promise<void>;
  disconnect(): Promise<void>;
  /** Fetches its metadata. */
  addTargetTopic(topic: string): Promise<void>;
  refreshMetadataIfNecessary(): Promise<void>;
  findTopicPartitionMetadata(
    topic: string,
  ): readonly { readonly partitionId: number; readonly leader: number }[];
  /** Connects to it. */
  findBroker(which: { nodeId: string }): Promise<Pick<Broker, 'connectionPool'>>;
  readonly connectionPoolBuilder: {
    /** Of a broker; without its address, of the next of the brokers that the settings name. */
    build: (address?: { readonly host: string; readonly port: number }) => Promise<ConnectionPool>;
  };
  readonly brokerPool: {
    createBroker(options: {
      readonly connectionPool: ConnectionPool;
      readonly logger: unknown;
      readonly nodeId?: number;
    }): Broker;
  };
  readonly rootLogger: unknown;
}

/** A broker's address, and how to speak to it. */
export interface Broker {
  readonly connectionPool: ConnectionPool;
  /** By request, the versions that it speaks; known once it is connected. */
  readonly versions?: Readonly<
    Record<number, { readonly minVersion: number; readonly maxVersion: number } | undefined>
  > | null;
  /** Resolves when it has told which versions it speaks, and has taken the login. */
  connect(): Promise<void>;
}

export interface ConnectionPool {
  readonly host: string;
  readonly port: number;
  /** The first is for everything but fetches. */
  readonly pool: readonly [Connection, ...Connection[]];
  send<T>(exchange: Exchange<T>): Promise<T>;
}

export interface Connection {
  send<T>(exchange: Exchange<T>): Promise<T>;
  isConnected(): boolean;
  disconnect(): Promise<unknown>;
  /** Whoever waits for an answer gets this error. */
  rejectRequests(error: Error): void;
  readonly socket?: { destroy(): unknown };
  readonly requestQueue: {
    readonly pending: readonly unknown[];
    scheduleCheckPendingRequests: () => void;
    /** Whether kafkajs looks ten times a second, for as long as it is connected, what has not been answered in time. */
    enforceRequestTimeout: boolean;
  };
  /** How long before its end, ms, a login counts as over; a request behind that begins with another login. */
  reauthenticationThreshold: number;
  /** `process.hrtime()` of the login; null without one. */
  readonly authenticatedAt: readonly [seconds: number, nanos: number] | null;
  /** How long the login is good for, ms; 0 is for ever. */
  readonly sessionLifetime: { toString(): string };
}

/** A request, and how its answer is read. */
export interface Exchange<T> {
  readonly request: {
    readonly apiName: string;
    readonly apiKey?: number;
    readonly apiVersion?: number;
    /** What it has behind its header; the shape is that of kafkajs' encoder. */
    readonly encode?: () => Promise<{ readonly buf: Buffer; readonly buffer: Buffer }>;
  };
  readonly response: {
    readonly decode: (bytes: Buffer) => T;
    readonly parse: (decoded: T) => T;
  };
  /** Whether kafkajs has errors in its log. Default true. */
  readonly logResponseError?: boolean;
}

interface ClusterOptions {
  /** ms. */
  readonly metadataMaxAge: number;
  readonly allowAutoTopicCreation: false;
}

/** The name of the symbol under which a `Kafka` has what makes a cluster of its settings. */
const CREATE_CLUSTER = 'private:Kafka:createCluster';

/** Connects to nothing yet. @throws TypeError when it is another kafkajs. */
export function clusterOf(kafka: Kafka, options: ClusterOptions): Cluster {
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

/** The same `Kafka`, whose consumers and admins are spared kafkajs' idle checks as well. */
export function withoutIdleChecks(kafka: Kafka): Kafka {
  const { key } = clusterMaker(kafka);
  const create = (options: ClusterOptions) => clusterOf(kafka, options);
  return Object.create(kafka, { [key]: { value: create } }) as Kafka;
}

/** What makes a `Kafka`'s clusters, and its name. @throws TypeError when it is another kafkajs. */
function clusterMaker(kafka: Kafka) {
  const key = Object.getOwnPropertySymbols(kafka).find(
    (each) => each.description === CREATE_CLUSTER,
  );
  const create: unknown = key && Reflect.get(kafka, key);
  if (key && typeof create === 'function') return { key, create };
  throw new TypeError('this is no Kafka of kafkajs 2.2: no other one has what is needed of it');
}

/**
 * Once a connection has answered kafkajs looks a thousand times a second, for ever, whether a request waits to be sent.
 * So it looks only where one does. (The time that it waits is negative, of which Node 24 warns on stderr, among our log.)
 */
function endIdleChecks({ requestQueue }: Connection): void {
  const check = requestQueue.scheduleCheckPendingRequests.bind(requestQueue);
  requestQueue.scheduleCheckPendingRequests = () => {
    if (requestQueue.pending.length > 0) check();
  };
}
