// What a start of the servers takes and gives, wherever they run.

/** One of the two servers of a launch on Java, for tests that want it to fail. */
interface ServiceControl {
  /** The JVM's process id; undefined while it is down. */
  readonly pid: number | undefined;
  /** SIGKILL; resolves when the process is gone. Port and data are kept for the next start. */
  kill(): Promise<void>;
  /**
   * Starts it again on the same port and data; resolves when it answers.
   *
   * @throws CellarstreamError `SERVICES` when it runs already or does not come up.
   */
  start(): Promise<void>;
  /** SIGSTOP: connections stay open and nothing answers. */
  pause(): void;
  /** SIGCONT. */
  resume(): void;
}

/** A server that can also be told to end. */
export interface StoppableControl extends ServiceControl {
  /**
   * SIGTERM: it ends in its own time, a broker after its leaders have moved to others. Resolves when the
   * process is gone. Port and data are kept for the next start.
   */
  stop(): Promise<void>;
}

/** A node of Kafka: broker and controller in one. */
export interface BrokerControl extends StoppableControl {
  /** `node.id`: from 1. */
  readonly id: number;
  /** `host:port` of the listener that needs no login. */
  readonly address: string;
}

interface Endpoints {
  /** `host:port`, as `KAFKA_BROKERS` lists them. */
  readonly brokers: string[];
  /** The root of the registry's Confluent API, without a trailing slash. */
  readonly registryUrl: string;
  /** Ends what was started, data and all; for `settings` nothing. A second call does nothing. */
  readonly stop: () => Promise<void>;
}

/** Servers that were named in the settings, or run in containers. */
export interface PlainServices extends Endpoints {
  readonly origin: 'settings' | 'docker';
}

/** Servers that run as JVMs on this machine's loopback interface. */
export interface JavaServices extends Endpoints {
  readonly origin: 'java';
  /** By name, where each of {@link KafkaLaunch.listeners} is: `host:port` of each node, with commas between. */
  readonly listeners: Readonly<Record<string, string>>;
  /** The first node: the only one by default. */
  readonly kafka: ServiceControl;
  /** {@link KafkaLaunch.nodes}, in the order of their ids. */
  readonly nodes: readonly BrokerControl[];
  readonly registry: ServiceControl;
}

/** A Kafka and a schema registry that answer. */
export type Services = PlainServices | JavaServices;

/** What kind of Kafka is started. */
export interface KafkaLaunch {
  /**
   * How many nodes it has, on Java alone: each is broker and controller, so that the others go on
   * without one of three. Topics, Kafka's own too, get three replicas then, and `min.insync.replicas` 2.
   * 1 or 3; default 1.
   */
  readonly nodes?: 1 | 3;
  /**
   * Broker settings (`server.properties` names) over the launcher's own. Of those, the ones that
   * differ from Kafka's defaults for speed: `group.initial.rebalance.delay.ms` is 0, `broker.session.timeout.ms`
   * 3,000, the internal topics have 4 partitions, a leader that is not the preferred one is changed within a
   * second; and `auto.create.topics.enable` is false.
   */
  readonly settings?: Readonly<Record<string, string>>;
  /**
   * Further ways to the broker, by name, and how each is secured: for tests of that, on Java alone.
   * What else they need is in `settings`, as `listener.name.<name>...`. Default none.
   */
  readonly listeners?: Readonly<Record<string, 'SSL' | 'SASL_PLAINTEXT' | 'SASL_SSL'>>;
  /** Folders of classes that settings name, such as that of a policy, on Java alone. Default none. */
  readonly classPath?: readonly string[];
  /** Options of each node's JVM, such as `-Dname=value`; on Java alone. Default none. */
  readonly javaOptions?: readonly string[];
  /** Passwords of the broker's SCRAM users by their names, on Java alone. Default none. */
  readonly users?: Readonly<Record<string, string>>;
}

/** How servers are started; nothing here matters when both are named in the settings. */
export interface LaunchOptions {
  /** Default one node, as the launcher sets it up. */
  readonly kafka?: KafkaLaunch;
  /** Ports of this machine for Kafka's first node and the registry; a port that is taken is replaced by a free one. Default: any free ones. */
  readonly ports?: { readonly kafka: number; readonly registry: number };
  /** How long a server may take until it answers, in ms; default 60,000. */
  readonly readyTimeoutMs?: number;
  /** Told what is going on, a line at a time; about one a second while Maven downloads. */
  readonly onProgress?: (line: string) => void;
  /** Called when containers could not be started and Java is tried instead, with the reason as one line. */
  readonly onFallback?: (reason: string) => void;
  /**
   * Versions other than those of `pom.xml`, as Maven calls them: for tests, on Java, even where Docker
   * answers. Each pair has a folder of its own in the cache.
   */
  readonly versions?: {
    readonly kafka?: string | undefined;
    readonly registry?: string | undefined;
  };
  /** Where jars are kept; default `$XDG_CACHE_HOME/cellarstream`, or `~/.cache/cellarstream`. */
  readonly cacheDir?: string;
  /** Where `PATH`, `JAVA_HOME`, `XDG_CACHE_HOME` and `SERVICES` are looked up; default `process.env`. */
  readonly env?: NodeJS.ProcessEnv;
}
