// Options and results of starting Kafka and the registry, in containers or on Java.

import type { JavaServer } from './java-server.ts';

/** A Kafka node, which is both broker and controller. */
export type BrokerControl = JavaServer & {
  /** `node.id`, counted from 1. */
  readonly id: number;
  /** Address `host:port` of the listener without authentication. */
  readonly address: string;
};

interface Endpoints {
  /** Bootstrap addresses `host:port`, as in `KAFKA_BROKERS`. */
  readonly brokers: string[];
  /** Base URL of the registry's Confluent-compatible API, without a trailing slash. */
  readonly registryUrl: string;
  /** Stops the servers and deletes their data. Does nothing for servers named in the settings, or at a second call. */
  readonly stop: () => Promise<void>;
}

/**
 * Kafka and registry that can't be stopped or paused individually: those named in the settings (origin `settings`), or containers (origin
 * `docker`).
 */
export interface PlainServices extends Endpoints {
  readonly origin: 'settings' | 'docker';
}

/** Kafka and registry that run as JVMs on this machine's loopback interface. */
export interface JavaServices extends Endpoints {
  readonly origin: 'java';
  /** Bootstrap addresses of each of {@link KafkaLaunch.listeners}, by listener name: `host:port` of every node, separated by commas. */
  readonly listeners: Readonly<Record<string, string>>;
  /** The first Kafka node; by default the only one. */
  readonly kafka: JavaServer;
  /** All Kafka nodes, sorted by id. */
  readonly nodes: readonly BrokerControl[];
  readonly registry: JavaServer;
}

/** A running Kafka and schema registry. */
export type Services = PlainServices | JavaServices;

export interface KafkaLaunch {
  /**
   * Number of Kafka nodes. Default 1. With three nodes, one of them may fail: topics have three replicas by default, and
   * `min.insync.replicas` is 2. Ignored if Kafka runs in a container.
   */
  readonly nodes?: 1 | 3;
  /** Broker settings by name, as in `server.properties`. They override the launcher's own settings, which make Kafka fast for tests. */
  readonly settings?: Readonly<Record<string, string>>;
  /**
   * Security protocols of each node's additional listeners, by listener name. Default: none. Other settings of a listener belong in
   * `settings`, as `listener.name.<name>...`. Ignored if Kafka runs in a container.
   */
  readonly listeners?: Readonly<Record<string, 'SSL' | 'SASL_PLAINTEXT' | 'SASL_SSL'>>;
  /** Folders of compiled classes that `settings` name, such as the class of a policy. Ignored if Kafka runs in a container. */
  readonly classPath?: readonly string[];
  /** Options of each node's JVM. Ignored if Kafka runs in a container. */
  readonly javaOptions?: readonly string[];
  /** Passwords of the SCRAM users to create, by user name. Ignored if Kafka runs in a container. */
  readonly users?: Readonly<Record<string, string>>;
}

/** How Kafka and the registry are started, unless the settings name existing ones. */
export interface LaunchOptions {
  /** How Kafka is started. Default: one node with the launcher's settings. */
  readonly kafka?: KafkaLaunch;
  /** Preferred ports of Kafka's first node and the registry; a port in use is replaced by a free one. */
  readonly ports?: { readonly kafka: number; readonly registry: number };
  /** Limit for the time until a started server answers, in ms; default 60,000 on Java, 180,000 in Docker. */
  readonly readyTimeoutMs?: number;
  /** Called with a line that describes the progress; about once a second while Maven downloads. */
  readonly onProgress?: (line: string) => void;
  /** Called with the reason, on one line, if a Docker engine responds but can't start the containers, and Java is tried instead. */
  readonly onFallback?: (reason: string) => void;
  /**
   * Versions of Kafka and the registry, in Maven's notation. Default: those in `pom.xml`. If set, the servers run on Java, not in Docker.
   */
  readonly versions?: {
    readonly kafka?: string | undefined;
    readonly registry?: string | undefined;
  };
  /** Folder in which the jars of Kafka and the registry are cached; default `$XDG_CACHE_HOME/cellarstream`, or `~/.cache/cellarstream`. */
  readonly cacheDir?: string;
  /** Environment from which `PATH`, `JAVA_HOME`, `XDG_CACHE_HOME` and `SERVICES` are read; default `process.env`. */
  readonly env?: NodeJS.ProcessEnv;
}
