import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RESOURCES, startSandbox } from '../../src/sandbox/index.ts';
import type { Sandbox } from '../../src/sandbox/index.ts';
import { withFault } from '../../src/sandbox/named-faults.ts';
import { startServices } from '../../src/devstack/start-services.ts';
import type { BrokerControl, JavaServices } from '../../src/devstack/services.ts';
import { runCli } from '../integration/support/cli.ts';
import type { Cli } from '../integration/support/cli.ts';
import { startCluster } from '../integration/support/cluster.ts';
import type { Chance } from '../support/chance.ts';
import { Cluster, clusterLaunch } from './cluster.ts';
import type { ClusterOptions } from './cluster.ts';
import { API } from './settings.ts';
import { Sightings } from './sightings.ts';
import { ApiTap } from './tap.ts';
import { Topics } from './topics.ts';

export const PREFIX = 'chaos';
/** Of the task that reads orders. */
export const TRANSACTIONAL_ID = `cellarstream.${PREFIX}.default.orders`;
/** What the API allows, and what the service is told: the true limits. */
export const QUOTA = 100;
export const LOGIN_QUOTA = 10;
export const API_KEY = 'chaos-api-key-7f3d';
/** What lmdb makes of damaged pages. */
const CRASHES: ReadonlySet<number | string> = new Set(['SIGSEGV', 'SIGBUS', 'SIGABRT']);
const RECORDS = {
  orders: 2_500,
  customers: 300,
  inventory: 150,
  'wine-clubs': 6,
  'wine-club-members': 120,
  products: 80,
};

export interface WorldOptions {
  readonly seed: number;
  /** Three brokers, and a proxy before them. Default one broker, and none. */
  readonly cluster?: ClusterOptions;
  /** Records of the lists at the start. Default {@link RECORDS}. */
  readonly records?: Partial<typeof RECORDS>;
  /** Changes a second while there is traffic. Default 30. */
  readonly changesPerSecond?: number;
  /** Settings of the service, over those of {@link World.launch}. Default none. */
  readonly settings?: Readonly<Record<string, string>>;
}

/**
 * The service as a process beside real servers and an API that changes, all of which can be broken;
 * and what was to be seen of it from outside.
 */
export class World {
  readonly services: JavaServices;
  /** Undefined where there is one broker. */
  readonly cluster: Cluster | undefined;
  readonly sandbox: Sandbox;
  readonly tap: ApiTap;
  readonly sightings: Sightings;
  readonly topics: Topics;
  /** The folders of all processes there were; the first is that of the service. */
  readonly folders: string[] = [];
  /** Everything that any process has written, in the order of their starts. */
  readonly processes: Cli[] = [];
  /** Tokens that logins were answered with. */
  readonly tokens: Set<string>;
  readonly #settings: Readonly<Record<string, string>>;
  readonly #changesPerSecond: number;
  state: string;
  service: Cli;

  /** A text says why there is none. */
  static async start(world: WorldOptions): Promise<World | string> {
    const { seed, cluster: options } = world;
    const services = options ? await startCluster(clusterLaunch(options)) : await startServices();
    if (typeof services === 'string') return services;
    if (services.origin !== 'java') {
      await services.stop();
      return 'servers are only broken where they are our own: neither KAFKA_BROKERS nor Docker';
    }
    const cluster = options && (await Cluster.open(services, options));
    const sandbox = await startSandbox(
      API.reduce(withFault, {
        seed,
        apiKey: API_KEY,
        records: { ...RECORDS, ...world.records },
        quotaPerMinute: QUOTA,
        loginQuotaPerMinute: LOGIN_QUOTA,
        latencyMs: [5, 60],
      }),
    );
    const sightings = new Sightings();
    const tokens = new Set<string>();
    const tap = await ApiTap.start(sandbox.url, (heard) => {
      sightings.note(heard);
      const token = /"accessToken":"([^"]+)"/.exec(
        heard.path.endsWith('/login') ? heard.body.toString() : '',
      )?.[1];
      if (token) tokens.add(token);
    });
    return new World(world, services, cluster, sandbox, tap, sightings, tokens);
  }

  private constructor(
    { seed, changesPerSecond = 30, settings = {} }: WorldOptions,
    services: JavaServices,
    cluster: Cluster | undefined,
    sandbox: Sandbox,
    tap: ApiTap,
    sightings: Sightings,
    tokens: Set<string>,
  ) {
    this.services = services;
    this.cluster = cluster;
    this.sandbox = sandbox;
    this.tap = tap;
    this.sightings = sightings;
    this.tokens = tokens;
    // Some runs use the whole quota for polls, the others leave more of it to sweeps.
    const polls = seed % 2 === 0 ? {} : { POLL_INTERVAL_MS: '2000' };
    this.#settings = { ...polls, ...settings };
    this.#changesPerSecond = changesPerSecond;
    this.topics = new Topics(services, {
      avro: [
        ...RESOURCES.map((name) => `${PREFIX}.${name}`),
        `${PREFIX}.order-status-changes`,
        `${PREFIX}.dead-letters`,
      ],
      json: [`${PREFIX}.cursors`],
    });
    this.state = this.newFolder();
    this.service = this.launch(this.state);
  }

  /** Changes go on, or stand still. */
  traffic(goesOn: boolean): void {
    this.sandbox.setRate(goesOn ? this.#changesPerSecond : 0);
  }

  /** A process of the service with a state folder of its own; more than one is a fault. */
  launch(state: string, shell?: string): Cli {
    const { brokers, registryUrl } = this.services;
    const env = {
      API_BASE_URL: this.tap.url,
      API_KEY,
      KAFKA_BROKERS: brokers.join(','),
      SCHEMA_REGISTRY_URL: registryUrl,
      TOPIC_PREFIX: PREFIX,
      STATE_DIR: state,
      QUOTA_PER_MINUTE: String(QUOTA),
      LOGIN_QUOTA_PER_MINUTE: String(LOGIN_QUOTA),
      SWEEP_INTERVAL_MS: '5000',
      DELETE_PROOF_MS: '2000',
      ...this.#settings,
      ...this.cluster?.settings,
      LOG_LEVEL: 'debug',
    };
    const cli = runCli(['run'], env, shell);
    this.processes.push(cli);
    return cli;
  }

  /**
   * The service again, as a supervisor would start it.
   *
   * @param crashes How often it may crash, and is started once more; default never.
   */
  restart(crashes = 0): void {
    const service = this.launch(this.state);
    this.service = service;
    if (crashes === 0) return;
    void service.ended.then((code) => {
      if (CRASHES.has(code) && this.service === service) this.restart(crashes - 1);
    });
  }

  /** Any of the brokers. */
  broker(chance: Chance): BrokerControl {
    const { nodes } = this.services;
    return nodes.length === 1 ? nodes[0]! : chance.pick(nodes);
  }

  async ready(service = this.service): Promise<void> {
    await Promise.all(
      RESOURCES.map((name) =>
        service.logged(({ event, resource }) => event === 'ready' && resource === name),
      ),
    );
  }

  newFolder(): string {
    const folder = mkdtempSync(join(tmpdir(), 'cellarstream-chaos-'));
    this.folders.push(folder);
    return folder;
  }

  /** Writes what each process has said to a folder, a file each. */
  saveLogs(folder: string): void {
    mkdirSync(folder, { recursive: true });
    this.processes.forEach(({ stderr }, k) =>
      writeFileSync(join(folder, `${String(k + 1).padStart(3, '0')}.log`), stderr()),
    );
  }

  async close(): Promise<void> {
    for (const { process, end } of this.processes) {
      process.kill('SIGCONT');
      await end('SIGKILL');
    }
    await this.tap.close();
    await this.cluster?.close();
    await this.sandbox.close();
    await this.services.stop();
    for (const folder of this.folders) rmSync(folder, { recursive: true, force: true });
  }
}
