import { Kafka, logLevel } from 'kafkajs';
import type { BrokerControl, JavaServices, LaunchOptions } from '../../src/devstack/services.ts';
import { withAdmin } from '../support/with-admin.ts';
import { inSync, moveLeader, partitionStates } from '../integration/support/partitions.ts';
import { ClusterProxy } from '../support/proxy/cluster-proxy.ts';
import type { KafkaProxy } from '../support/proxy/kafka-proxy.ts';
import type { Chance } from '../support/chance.ts';
import { activeController, coordinatorOf } from './broker-roles.ts';

const LOGIN = 'LOGIN';
const USER = 'chaos';
const PASSWORD = 'chaos-password-9k2';
/** How often a connection has to log in again, where that is asked for. */
const REAUTH_MS = 3_000;

/** What is particular of a cluster in a run. */
export interface ClusterOptions {
  /** The service logs in by SCRAM, and each of its connections again every three seconds. */
  readonly isReauthenticated: boolean;
}

/** Brokers forget a producer that was silent for ten seconds: half of the lists are, most of the time. */
const FORGETFUL = {
  'producer.id.expiration.ms': '10000',
  'producer.id.expiration.check.interval.ms': '2000',
};

/** How three brokers are started. */
export function clusterLaunch({ isReauthenticated }: ClusterOptions): LaunchOptions {
  if (!isReauthenticated) return { kafka: { nodes: 3, settings: FORGETFUL } };
  const login = `listener.name.${LOGIN.toLowerCase()}`;
  return {
    kafka: {
      nodes: 3,
      listeners: { [LOGIN]: 'SASL_PLAINTEXT' },
      users: { [USER]: PASSWORD },
      settings: {
        ...FORGETFUL,
        [`${login}.sasl.enabled.mechanisms`]: 'SCRAM-SHA-256',
        [`${login}.scram-sha-256.sasl.jaas.config`]:
          'org.apache.kafka.common.security.scram.ScramLoginModule required;',
        [`${login}.scram-sha-256.connections.max.reauth.ms`]: String(REAUTH_MS),
      },
    },
  };
}

/** Three brokers that can be broken, and a proxy between them and the service. */
export class Cluster {
  readonly nodes: readonly BrokerControl[];
  readonly proxy: ClusterProxy;
  /** What the service is told of it. */
  readonly settings: Readonly<Record<string, string>>;
  /** Secrets that no output may hold. */
  readonly secrets: readonly string[];
  readonly #brokers: readonly string[];
  readonly #kafka: Kafka;

  static async open(services: JavaServices, options: ClusterOptions): Promise<Cluster> {
    const ways = options.isReauthenticated
      ? services.listeners[LOGIN]!.split(',')
      : services.brokers;
    return new Cluster(services, await ClusterProxy.listen(ways), options);
  }

  private constructor(
    { nodes, brokers }: JavaServices,
    proxy: ClusterProxy,
    { isReauthenticated }: ClusterOptions,
  ) {
    this.nodes = nodes;
    this.proxy = proxy;
    this.#brokers = brokers;
    this.#kafka = new Kafka({
      brokers,
      connectionTimeout: 15_000, // of a machine that is busy
      retry: { retries: 15, initialRetryTime: 100, maxRetryTime: 2_000 },
      logLevel: logLevel.NOTHING,
    });
    this.secrets = isReauthenticated ? [PASSWORD] : [];
    this.settings = {
      KAFKA_BROKERS: proxy.addresses.join(),
      ...(isReauthenticated && {
        KAFKA_SASL_MECHANISM: 'scram-sha-256',
        KAFKA_SASL_USERNAME: USER,
        KAFKA_SASL_PASSWORD: PASSWORD,
      }),
    };
  }

  node(id: number): BrokerControl {
    return this.nodes[id - 1]!;
  }

  /** What the service sees in the place of a node. */
  proxyOf({ id }: BrokerControl): KafkaProxy {
    return this.proxy.proxies[id - 1]!;
  }

  /** The node that coordinates the transactions of a producer, or a group. */
  async coordinatorOf(kind: 'group' | 'transaction', id: string): Promise<BrokerControl> {
    return this.node(await coordinatorOf(this.#brokers, kind, id));
  }

  async activeController(): Promise<BrokerControl> {
    return this.node(await activeController(this.#brokers));
  }

  /** Resolves when every partition has its leader, and all its replicas are in sync. */
  inSync(): Promise<void> {
    return inSync(this.#kafka, 90_000);
  }

  /** Moves so many leaders of topics whose names begin so, of the cluster's own too, while all brokers are up. */
  async moveLeaders(count: number, prefixes: readonly string[], chance: Chance): Promise<void> {
    await withAdmin(this.#kafka, async (admin) => {
      const states = await partitionStates(admin);
      const those = states.filter(({ topic }) => prefixes.some((one) => topic.startsWith(one)));
      const chosen = Array.from(
        { length: count },
        () => those.splice(chance.below(those.length), 1)[0]!,
      );
      await Promise.all(
        chosen.map((state) =>
          moveLeader(admin, state, chance.pick(state.replicas.filter((id) => id !== state.leader))),
        ),
      );
    });
  }

  /** Sets how many replicas must be in sync for a write, of the topics whose names begin so. */
  async setLeastInSync(least: number, prefix: string): Promise<void> {
    const TOPIC = 2;
    const OF_THE_TOPIC = 1; // where a setting comes from
    await withAdmin(this.#kafka, async (admin) => {
      const names = (await admin.listTopics()).filter((topic) => topic.startsWith(prefix));
      const { resources } = await admin.describeConfigs({
        includeSynonyms: false,
        resources: names.map((name) => ({ type: TOPIC, name })),
      });
      await admin.alterConfigs({
        validateOnly: false,
        // What is not named goes back to its default.
        resources: resources.map(({ resourceName, configEntries }) => ({
          type: TOPIC,
          name: resourceName,
          configEntries: [
            ...configEntries
              .filter(
                ({ configName, configSource }) =>
                  (configSource as number) === OF_THE_TOPIC && configName !== 'min.insync.replicas',
              )
              .map(({ configName, configValue }) => ({ name: configName, value: configValue })),
            { name: 'min.insync.replicas', value: String(least) },
          ],
        })),
      });
    });
  }

  /** How often a connection of the service has logged in. */
  logins(): number {
    return this.proxy.count('SaslAuthenticate');
  }

  close(): Promise<void> {
    return this.proxy.close();
  }
}
