import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, inject, it, vi } from 'vitest';
import { Kafka, logLevel } from 'kafkajs';
import { parse } from 'yaml';
import { startSandbox } from '../../src/sandbox/index.ts';
import type { Sandbox, SandboxAccount, SandboxOptions } from '../../src/sandbox/index.ts';
import { freeLoopbackPorts } from '../../src/devstack/loopback-ports.ts';
import { text } from '../docs/texts.ts';
import { commits } from '../support/proxy/kafka-frames.ts';
import type { KafkaRequest } from '../support/proxy/kafka-frames.ts';
import { KafkaProxy, loseAnswer } from '../support/proxy/kafka-proxy.ts';
import { TcpProxy } from '../support/proxy/tcp-proxy.ts';
import { runCli } from './support/cli.ts';
import type { Cli } from './support/cli.ts';
import { deleteCompacted } from './support/deleted-records.ts';
import { hasPrometheus, hastened, startPrometheus } from './support/prometheus.ts';
import type { Prometheus } from './support/prometheus.ts';
import { connections } from './support/service.ts';
import type { Env } from './support/service.ts';

const RULES = text('deploy/prometheus/alerts.yml');
/** A quarter of an hour is 6 s. */
const FACTOR = 150;
/** For a machine that is busy with other tests. */
const LEAST = { forS: 3, rangeS: 5 };
/** A busy machine takes long: what fails is tried again after pauses of up to 5 s, and then for some seconds. */
const PATIENCE = { timeout: 120_000, interval: 250 };
const TIMEOUT_MS = 300_000;
/** As Prometheus mostly scrapes. */
const USUAL_SCRAPE_S = 15;

/** What a machine that is busy with other tests may make fire for any service. */
const OF_THE_MACHINE = ['CellarstreamEventLoopLag', 'CellarstreamDown'];
/** No file of the full disk may grow beyond it: less than the images of the orders come to. */
const DISK_KIB = 300;
/** From SIGUSR2 on the event loop is blocked most of the time, as by work without a pause: preloaded into the command. */
const BUSY = `--import data:text/javascript,${encodeURIComponent(`
  const block = () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 600);
  process.once('SIGUSR2', () => setInterval(block, 800).unref());
`)}`;

/** The names of a group's alerts. */
function alertsOf(group: string): readonly string[] {
  interface Group {
    readonly name: string;
    readonly rules: readonly { readonly alert: string }[];
  }
  const { groups } = parse(RULES) as { groups: readonly Group[] };
  return groups.find(({ name }) => name === group)!.rules.map(({ alert }) => alert);
}

interface Starting {
  /** What the shell does before it. */
  readonly limits?: string;
  /** How often it is scraped, in seconds. */
  readonly everyS?: number;
}

if (!hasPrometheus) console.warn('prometheus is not on the PATH: no alert is shown to fire');

/**
 * The alerts as they are shipped, but for their times, on a real Prometheus that scrapes real services.
 * Each fault strikes a service of its own, all at the same time; one service has none.
 */
describe.runIf(hasPrometheus)('each alert fires when its fault is caused', () => {
  const closing: (() => unknown)[] = [];
  let prometheus: Prometheus;
  let calm: Sandbox;
  /** An alert and an instance each: what has been seen firing. */
  const seen = new Set<string>();
  const services = new Map<string, Cli>();

  const folder = () => {
    const path = mkdtempSync(join(tmpdir(), 'cellarstream-alerts-'));
    closing.push(() => rmSync(path, { recursive: true, force: true }));
    return path;
  };
  const sandboxOf = async (options: SandboxOptions) => {
    const sandbox = await startSandbox({
      quotaPerMinute: 3_000,
      loginQuotaPerMinute: 1_000,
      ...options,
    });
    closing.push(() => sandbox.close());
    return sandbox;
  };
  /** Starts a service, which Prometheus scrapes as soon as it listens. */
  const start = async (
    instance: string,
    sandbox: Sandbox,
    env: Env,
    { limits, everyS }: Starting = {},
  ) => {
    const service = runCli(
      ['run'],
      {
        ...connections(sandbox, `alerts-${instance}`, folder()),
        QUOTA_PER_MINUTE: '1000',
        LOGIN_QUOTA_PER_MINUTE: '1000',
        POLL_INTERVAL_MS: '500',
        HTTP_PORT: '0',
        ...env,
      },
      limits,
    );
    closing.push(() => service.end('SIGKILL'));
    services.set(instance, service);
    const { url } = await service.logged(({ event }) => event === 'listening');
    if (instance !== 'healthy') prometheus.add(instance, String(url), everyS);
    return { service, url: String(url) };
  };
  const ready = (service: Cli) =>
    service.logged(({ event, ready }) => event === 'readiness' && ready === true);
  /** Resolves when all of these have been seen firing, of this instance; else says what it said itself. */
  const fire = async (instance: string, ...alerts: string[]) => {
    const missing = () => alerts.filter((alert) => !seen.has(`${alert} ${instance}`));
    try {
      await vi.waitFor(() => expect(missing()).toEqual([]), PATIENCE);
    } catch (cause) {
      const said = services.get(instance)?.stderr().slice(-4_000);
      throw new Error(`${instance} has not fired ${missing().join(', ')}; it said:\n${said}`, {
        cause,
      });
    }
  };

  beforeAll(async () => {
    const place = mkdtempSync(join(tmpdir(), 'cellarstream-prometheus-'));
    prometheus = await startPrometheus(place, hastened(RULES, FACTOR, LEAST));
    closing.push(() => prometheus.close());
    const looking = setInterval(() => {
      prometheus.firing().then(
        (firing) => {
          for (const { alert, instance } of firing) seen.add(`${alert} ${instance}`);
        },
        () => undefined, // it is asked again
      );
    }, 250);
    closing.push(() => clearInterval(looking));
    calm = await sandboxOf({ changesPerSecond: 5, records: { orders: 400, customers: 200 } });
  });
  afterAll(async () => {
    for (const close of closing.reverse()) await close();
  });

  it('and none of a service that is well', { timeout: TIMEOUT_MS }, async ({ onTestFailed }) => {
    onTestFailed(() => {
      console.log(`fired: ${[...seen].join(', ')}`);
      for (const [instance, service] of services) {
        console.log(`${instance} said:\n${service.stderr().slice(-1_500)}`);
      }
    });
    const began = performance.now();
    const healthy = await start('healthy', calm, {});
    await ready(healthy.service);
    prometheus.add('healthy', healthy.url); // once it is caught up: the start is another matter

    await Promise.all([
      failingData(),
      failingLogin(),
      failingKafka(),
      replaced(),
      shortOfEverything(),
      fullDisk(),
      lostRecords(),
    ]);

    const shown = new Set([...seen].map((one) => one.split(' ')[0]));
    expect(alertsOf('cellarstream').filter((alert) => !shown.has(alert))).toEqual([]);
    const fired = await prometheus.fired((performance.now() - began) / 1_000);
    const ofHealthy = fired.filter(({ instance }) => instance === 'healthy');
    expect(ofHealthy.filter(({ alert }) => !OF_THE_MACHINE.includes(alert))).toEqual([]);
  });

  /** The API, list by list: what it sends, and what it answers. */
  async function failingData() {
    const sandbox = await sandboxOf({
      records: { orders: 100, products: 12_000, inventory: 300, 'wine-club-members': 200 },
    });
    const [order, member] = [
      sandbox.truth.keys('orders'),
      sandbox.truth.keys('wine-club-members'),
    ].map((keys) => [...keys][0]!);
    sandbox.fault({ kind: 'status', status: 400, endpoint: 'customers' });
    sandbox.fault({ kind: 'status', status: 500, endpoint: 'wine-clubs' });
    sandbox.loseKey('wine-club-members', member!); // what has no key can't be counted
    // One that no message can hold: no reading is exact.
    const large = [...sandbox.truth.keys('orders')].at(-1)!;
    sandbox.change('orders', large, (was) => ({ ...was, order_notes: 'x'.repeat(2 ** 21) }));
    const { service } = await start('data', sandbox, {
      CERTIFICATE_INTERVAL_MS: '100',
      PAGE_SIZE: '40',
      QUOTA_PER_MINUTE: '3000',
      SWEEP_INTERVAL_MS: '500',
      LOG_LEVEL: 'debug',
    });
    const swept = (which: string, times: number) =>
      service.logged(
        ({ event, resource, number }) =>
          event === 'swept' && resource === which && Number(number) >= times,
      );

    const stalled = service
      .logged(({ event, resource }) => event === 'first-read' && resource === 'products')
      .then(() => {
        const headers = { 'retry-after': '1' };
        sandbox.fault({ kind: 'status', status: 429, endpoint: 'products', headers });
        return fire('data', 'CellarstreamRateLimited', 'CellarstreamFirstReadStalled');
      });
    const shrunk = swept('inventory', 3).then(() => {
      sandbox.hide('inventory', 0.6);
      return fire('data', 'CellarstreamDeletesHeld');
    });
    const inPieces = swept('wine-club-members', 3).then(() => {
      sandbox.fault({ kind: 'empty', endpoint: 'wine-club-members', every: 3 });
      return fire('data', 'CellarstreamScansInTrouble');
    });
    const late = swept('orders', 1).then(async () => {
      // Of an hour ago, each later than the one before: no poll finds it, the next sweep does.
      const changing = setInterval(() => {
        const updated_at = new Date(Date.now() - 3_600_000).toISOString();
        sandbox.change('orders', order!, (was) => ({
          ...was,
          updated_at,
          order_notes: updated_at,
        }));
      }, 200);
      try {
        await fire('data', 'CellarstreamSlow');
      } finally {
        clearInterval(changing);
      }
    });
    await fire(
      'data',
      'CellarstreamResourceFailed',
      'CellarstreamApiFailing',
      'CellarstreamDeadLetters',
      'CellarstreamDeletionsUnknown',
      'CellarstreamNotExact',
    );
    await Promise.all([stalled, shrunk, inPieces, late]);
    await service.end('SIGKILL'); // the others have the processor then
  }

  /** Tokens that live for three seconds, so that logins are made as often as they may follow one another; then the key that has worked is refused, and at last nobody answers. */
  async function failingLogin() {
    const sandbox = await sandboxOf({ tokenLifeMs: 3_000, records: { orders: 100 } });
    const { service } = await start('login', sandbox, {
      RESOURCES: 'orders',
      LOGIN_QUOTA_PER_MINUTE: '8',
    });
    await ready(service);
    await fire('login', 'CellarstreamLoginsNearQuota');
    sandbox.fault({ kind: 'status', status: 401, endpoint: 'login' });
    await fire('login', 'CellarstreamKeyRefused');
    await sandbox.down();
    await fire(
      'login',
      'CellarstreamLoginFailing',
      'CellarstreamTokenEnding',
      'CellarstreamStale',
      'CellarstreamNotReady',
    );
    await service.end('SIGKILL');
  }

  /** Commits of which nobody hears what came of them; then no Kafka, and no registry. */
  async function failingKafka() {
    const sandbox = await sandboxOf({
      changesPerSecond: 40,
      records: { orders: 200, customers: 200, products: 100 },
    });
    const kafka = await KafkaProxy.listen(inject('brokers')[0]!);
    closing.push(() => kafka.close());
    const url = new URL(inject('registryUrl'));
    const registry = await TcpProxy.listen({
      target: { host: url.hostname, port: Number(url.port || 80) },
    });
    closing.push(() => registry.close());
    url.host = registry.address;
    const { service } = await start('kafka', sandbox, {
      RESOURCES: 'orders,customers,products',
      KAFKA_BROKERS: kafka.address,
      SCHEMA_REGISTRY_URL: url.href,
    });
    await ready(service);
    // Not each: a list that can't even claim its task commits nothing that could fail.
    let commit = 0;
    const everyThird = (request: KafkaRequest) => commits(request) && ++commit % 3 === 0;
    const lift = kafka.afflict({ api: 'EndTxn', where: everyThird }, loseAnswer); // till enough of them are counted
    await fire('kafka', 'CellarstreamCommitsFailing');
    lift();
    kafka.tcp.refuse();
    kafka.tcp.cut();
    await fire('kafka', 'CellarstreamKafkaUnreachable');
    registry.refuse(); // it is asked first where a resource begins again
    registry.cut();
    await fire('kafka', 'CellarstreamRegistryUnreachable');
    await service.end('SIGKILL');
  }

  /** A second instance; and then one that ends whenever it was started. */
  async function replaced() {
    const [port] = await freeLoopbackPorts(1);
    const HTTP_PORT = String(port);
    const shared = { RESOURCES: 'orders', TOPIC_PREFIX: 'alerts-shared' };
    const first = await start('first', calm, { ...shared, HTTP_PORT });
    await ready(first.service);
    const second = await start('second', calm, shared, { everyS: USUAL_SCRAPE_S });
    expect(await first.service.ended).toBe(1);
    await fire('second', 'CellarstreamFenced'); // the first has ended before it is scraped, mostly
    await fire('first', 'CellarstreamDown');
    await second.service.end('SIGKILL');
    for (let nth = 0; nth < 15 && !seen.has('CellarstreamRestarting first'); nth += 1) {
      const { service } = await start('first', calm, { HTTP_PORT, KAFKA_BROKERS: '127.0.0.1:1' });
      await prometheus.scraped('first');
      await service.end('SIGKILL');
    }
  }

  /** One request a minute; and then hardly any time for anything. */
  async function shortOfEverything() {
    const { service } = await start('short', calm, {
      RESOURCES: 'orders',
      QUOTA_PER_MINUTE: '1',
      NODE_OPTIONS: BUSY,
    });
    await fire('short', 'CellarstreamQuotaShort');
    service.process.kill('SIGUSR2');
    await fire('short', 'CellarstreamEventLoopLag');
    await service.end('SIGKILL');
  }

  /** Somebody deletes records of a topic while the service is down. */
  async function lostRecords() {
    const sandbox = await sandboxOf({ records: { orders: 100 } });
    const env = { RESOURCES: 'orders', TOPIC_PARTITIONS: '1', STATE_DIR: folder() };
    const first = await start('lost', sandbox, env);
    await ready(first.service);
    await first.service.end('SIGTERM');
    const kafka = new Kafka({ brokers: inject('brokers'), logLevel: logLevel.NOTHING });
    await deleteCompacted(kafka, 'alerts-lost.orders', 0, '50');
    const { service } = await start('lost', sandbox, env);
    await fire('lost', 'CellarstreamTopicDisagrees');
    await service.end('SIGKILL');
  }

  async function fullDisk() {
    const { service } = await start(
      'disk',
      calm,
      { RESOURCES: 'orders' },
      { limits: `ulimit -f ${DISK_KIB}` },
    );
    await fire('disk', 'CellarstreamStateFolderFailing');
    await service.end('SIGKILL');
  }
});

/** In a fleet things take seconds: half an hour is two minutes. */
const FLEET_FACTOR = 15;
/** So long the fleet is looked at while all is well. */
const QUIET_MS = 25_000;
const PREFIX = 'alerts-fleet';
/** Accounts that nothing is wrong with. */
const SOUND = ['east', 'north', 'west'];

/** One fleet: first it is well and has an instance come and go, then each fault strikes an account or an instance of its own. */
describe.runIf(hasPrometheus)('each alert of a fleet fires when its fault is caused', () => {
  const closing: (() => unknown)[] = [];
  /** An alert, and the account or the instance that it is about: what has been seen firing. */
  const seen = new Set<string>();
  const instances = new Map<string, Cli>();
  const root = mkdtempSync(join(tmpdir(), 'cellarstream-alerts-fleet-'));
  const everybody = ['one', 'two', 'three'];
  let prometheus: Prometheus;
  let api: Sandbox;
  let named: ReadonlyMap<string, SandboxAccount>;

  const folderOf = (instance: string) => join(root, `accounts-${instance}`);
  const fileOf = (account: string) =>
    `API_BASE_URL=${api.url}\nAPI_KEY=${named.get(account)!.apiKey}\n`;
  /** Gives these instances the file of an account. */
  const give = (account: string, to: readonly string[], file = fileOf(account)) => {
    for (const instance of to) writeFileSync(join(folderOf(instance), `${account}.env`), file);
  };
  const withhold = (account: string, from: string) =>
    rmSync(join(folderOf(from), `${account}.env`));
  const settings: Env = {
    TOPIC_PREFIX: PREFIX,
    TOPIC_PARTITIONS: '1',
    RESOURCES: 'orders',
    POLL_INTERVAL_MS: '1000',
    LOGIN_QUOTA_PER_MINUTE: '1000',
  };
  const start = async (name: string, env: Env = {}) => {
    for (const folder of [folderOf(name), join(root, `state-${name}`)]) {
      mkdirSync(folder, { recursive: true });
    }
    const cli = runCli(['run'], {
      ACCOUNTS_DIR: folderOf(name),
      INSTANCE_NAME: name,
      STATE_DIR: join(root, `state-${name}`),
      KAFKA_BROKERS: inject('brokers').join(','),
      SCHEMA_REGISTRY_URL: inject('registryUrl'),
      ...settings,
      ...env,
    });
    closing.push(() => cli.end('SIGKILL'));
    instances.set(name, cli);
    const { url } = await cli.logged(({ event }) => event === 'listening');
    prometheus.add(name, String(url));
    return cli;
  };
  /** The newest line of the log in which an instance takes an account, and which instance that is. */
  const claimOf = (account: string) =>
    [...instances]
      .flatMap(([name, cli]) =>
        cli
          .lines()
          .filter((line) => line.account === account && line.step === 'claim')
          .map(({ time }) => ({ name, cli, time: Date.parse(String(time)) })),
      )
      .toSorted((a, b) => a.time - b.time)
      .at(-1);
  /** Resolves when an instance has taken an account after this time, and its list is read. */
  const served = (account: string, since = 0) =>
    vi.waitFor(() => {
      const claim = claimOf(account);
      expect(claim?.time).toBeGreaterThan(since);
      const lines = claim!.cli.lines();
      const isReady = lines.some(
        ({ event, time, ...line }) =>
          event === 'ready' && line.account === account && Date.parse(String(time)) >= claim!.time,
      );
      expect([account, isReady]).toEqual([account, true]);
      return claim!;
    }, PATIENCE);
  const fire = (alert: string, about: string) =>
    vi.waitFor(() => expect([...seen]).toContain(`${alert} ${about}`), PATIENCE);
  const alertOf = (one: string) => one.split(' ')[0]!;

  beforeAll(async () => {
    const place = mkdtempSync(join(tmpdir(), 'cellarstream-prometheus-'));
    prometheus = await startPrometheus(place, hastened(RULES, FLEET_FACTOR, LEAST));
    closing.push(() => prometheus.close());
    const looking = setInterval(() => {
      prometheus.firing().then(
        (firing) => {
          for (const { alert, account, instance } of firing) {
            seen.add(`${alert} ${account ?? instance}`);
          }
        },
        () => undefined, // it is asked again
      );
    }, 250);
    closing.push(() => clearInterval(looking));
    api = await startSandbox({
      accounts: 6,
      records: { orders: 50 },
      quotaPerMinute: 200,
      loginQuotaPerMinute: 1_000,
    });
    closing.push(() => api.close());
    const names = [...SOUND, 'restless', 'late', 'poison'];
    named = new Map(names.map((name, nth) => [name, api.accounts[nth]!]));
    for (const name of [...everybody, 'slow', 'cut']) mkdirSync(folderOf(name));
  });
  afterAll(async () => {
    for (const close of closing.reverse()) await close();
    rmSync(root, { recursive: true, force: true });
  });

  it('and none of a fleet that is well', { timeout: 2 * TIMEOUT_MS }, async ({ onTestFailed }) => {
    onTestFailed(() => {
      console.log(`fired: ${[...seen].join(', ')}`);
      for (const [name, cli] of instances)
        console.log(`${name} said:\n${cli.stderr().slice(-6_000)}`);
    });
    for (const account of SOUND) give(account, everybody);
    for (const account of ['restless', 'late']) give(account, ['two']);
    await Promise.all(everybody.map((name) => start(name)));
    await Promise.all(
      [...named.keys()].filter((each) => each !== 'poison').map((each) => served(each)),
    );
    expect(await instances.get('one')!.end('SIGTERM')).toBe(0);
    await start('one');
    await pause(QUIET_MS);
    const unwanted = [...alertsOf('cellarstream-fleet'), 'CellarstreamFenced'];
    expect([...seen].filter((one) => unwanted.includes(alertOf(one)))).toEqual([]);

    await paused();
    await Promise.all([wrongFile(), moving(), cutOff(), slowThenLost()]);
    await quarantine();

    const shown = [...seen].map(alertOf);
    expect(alertsOf('cellarstream-fleet').filter((alert) => !shown.includes(alert))).toEqual([]);
    expect(shown).not.toContain('CellarstreamFenced'); // accounts of lost instances were taken over
  });

  async function wrongFile() {
    give('wrong', ['three'], 'PAGE_SIZE=many\n');
    await fire('CellarstreamFleetAccountFailed', 'wrong');
    withhold('wrong', 'three');
  }

  /** Its file is there on one instance, then on another. */
  async function moving() {
    for (let nth = 0; nth < 30 && !seen.has('CellarstreamFleetUnsettled restless'); nth += 1) {
      const [from, to] = nth % 2 === 0 ? ['two', 'three'] : ['three', 'two'];
      const since = Date.now();
      give('restless', [to]);
      withhold('restless', from);
      await served('restless', since);
    }
    await fire('CellarstreamFleetUnsettled', 'restless');
  }

  /** An instance is paused until the others have taken an account of its, and finds that out when it goes on. */
  async function paused() {
    const [account] = SOUND as [string];
    named.get(account)!.setRate(2); // who has nothing to write does not find out
    const since = Date.now();
    const { name, cli } = claimOf(account)!;
    cli.process.kill('SIGSTOP');
    await served(account, since);
    cli.process.kill('SIGCONT');
    await fire('CellarstreamFleetFenced', name);
  }

  /** An instance that is in the group, and then reaches Kafka no more. */
  async function cutOff() {
    const kafka = await KafkaProxy.listen(inject('brokers')[0]!);
    closing.push(() => kafka.close());
    const cli = await start('cut', { KAFKA_BROKERS: kafka.address });
    await cli.logged(({ event }) => event === 'generation');
    kafka.tcp.refuse();
    kafka.tcp.cut();
    await fire('CellarstreamFleetNotInGroup', 'cut');
    await cli.end('SIGKILL');
  }

  /** An instance takes an account over while its registry is away; then it is lost, and nobody else has the file. */
  async function slowThenLost() {
    const url = new URL(inject('registryUrl'));
    const registry = await TcpProxy.listen({
      target: { host: url.hostname, port: Number(url.port || 80) },
    });
    closing.push(() => registry.close());
    url.host = registry.address;
    const cli = await start('slow', { SCHEMA_REGISTRY_URL: url.href });
    await cli.logged(({ event }) => event === 'generation');
    registry.refuse();
    registry.cut();
    give('late', ['slow']);
    withhold('late', 'two');
    await cli.logged(({ account, step }) => account === 'late' && step === 'claim');
    await pause(21_000);
    await registry.admit();
    await fire('CellarstreamFleetHandoverSlow', 'slow');
    await cli.end('SIGKILL');
    await fire('CellarstreamFleetWithoutOwner', 'late');
  }

  /** Whoever takes the account is killed just then. */
  async function quarantine() {
    let killedAt = Date.now();
    give('poison', everybody);
    for (let losses = 0; losses < 3; losses += 1) {
      const { name, cli } = await served('poison', killedAt);
      killedAt = Date.now();
      await cli.end('SIGKILL');
      await start(name);
    }
    await fire('CellarstreamFleetQuarantined', 'poison');
  }
});
