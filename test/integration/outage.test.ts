import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { startSandbox } from '../../src/sandbox/index.ts';
import type { Resource, Sandbox } from '../../src/sandbox/index.ts';
import { startServices } from '../../src/devstack/start-services.ts';
import type { Services } from '../../src/devstack/services.ts';
import { checkOrders, checkStatusChanges } from './support/checker.ts';
import { runCli } from './support/cli.ts';
import type { Cli, LogLine } from './support/cli.ts';
import { publishedTruth } from './support/published-truth.ts';
import { serverVersions } from './support/server-versions.ts';
import { readTopic } from './support/topic-reader.ts';

const PREFIX = 'outage';
/** Two that are polled and one that is read whole; all of them change. */
const RESOURCES = ['orders', 'customers', 'inventory'] as const satisfies readonly Resource[];
const QUOTA = 3_000; // the quota is not what is tested here
/** List requests of a resource that may still be under way. */
const HANDFUL = 5;
/** Some pages of 1,000 orders, and what the collector has not got round to. */
const SOME_PAGES_MB = 48;
const PATIENCE = { timeout: 120_000, interval: 20 };

/** One service through three outages, each of which it has to survive by itself. */
describe('run, while Kafka or the registry is away', () => {
  let services: Services;
  let sandbox: Sandbox;
  let state: string;
  let service: Cli;
  beforeAll(async () => {
    services = await startServices(serverVersions()); // its own: those of the others must live
    sandbox = await startSandbox({
      records: { orders: 8_000, customers: 1_000 },
      quotaPerMinute: QUOTA,
      loginQuotaPerMinute: QUOTA,
      changesPerSecond: 40,
    });
    state = mkdtempSync(join(tmpdir(), 'cellarstream-outage-'));
    service = runCli(['run'], {
      API_BASE_URL: sandbox.url,
      API_KEY: sandbox.apiKey,
      KAFKA_BROKERS: services.brokers.join(','),
      SCHEMA_REGISTRY_URL: services.registryUrl,
      TOPIC_PREFIX: PREFIX,
      STATE_DIR: state,
      QUOTA_PER_MINUTE: String(QUOTA),
      LOGIN_QUOTA_PER_MINUTE: String(QUOTA),
      PAGE_SIZE: '250',
      POLL_INTERVAL_MS: '300', // what they leave over is for sweeps
      RESOURCES: RESOURCES.join(),
      SWEEP_INTERVAL_MS: '1000', // orders are deleted too
      DELETE_PROOF_MS: '0',
    });
  });
  afterEach(({ task }) => {
    if (task.result?.state === 'fail') console.error(service.stderr().slice(-10_000));
  });
  afterAll(async () => {
    await service.end('SIGKILL');
    await sandbox.close();
    await services.stop();
    rmSync(state, { recursive: true });
  });

  const requests = () => RESOURCES.map((name) => sandbox.truth.requests(name).length);
  const since = (before: readonly number[]) => requests().map((count, nth) => count - before[nth]!);
  const few = (counts: readonly number[]) => {
    for (const count of counts) expect(count).toBeLessThanOrEqual(HANDFUL);
  };
  /** The first line from now on that is accepted. */
  const next = (accept: (line: LogLine) => boolean) => {
    const known = service.lines().length;
    return service.logged((line) => service.lines().indexOf(line) >= known && accept(line));
  };
  const readiness = (ready: boolean, reasons: RegExp) => (line: LogLine) =>
    line.event === 'readiness' && line.ready === ready && reasons.test(String(line.reasons));
  const retrying = (what: string, resource: Resource, count: number) => (line: LogLine) =>
    line.event === 'retry' &&
    line.what === what &&
    line.resource === resource &&
    line.count === count;
  /** Resolves when each resource has asked for more since then. */
  const allRead = (before: readonly number[]) =>
    vi.waitUntil(() => since(before).every((count) => count > 0), PATIENCE);

  it('stops asking when the broker is killed during the initial snapshot, and goes on when it is back', async (test) => {
    if (services.origin !== 'java') return test.skip('a broker is only killed where it is ours');
    await vi.waitUntil(() => requests()[0]! >= 8, PATIENCE);
    const memory = rssAnonOf(service);
    const waiting = next(readiness(false, /waiting for Kafka since 20.*Z: ./));
    const retried = (count: number) =>
      Promise.all(RESOURCES.map((name) => next(retrying('kafka', name, count))));
    const [first, second] = [retried(1), retried(2)];

    await services.kafka.kill();
    await first;
    const before = requests();
    await Promise.all([second, waiting]);
    few(since(before));
    const growth = rssAnonOf(service) - memory;
    console.log('killed: requests', since(before), `RssAnon +${growth.toFixed(0)} MB`);
    expect(growth).toBeLessThan(SOME_PAGES_MB);

    const ready = next(readiness(true, /^$/));
    await services.kafka.start();
    await allRead(before);
    await ready;
  });

  it('stops asking when the broker says nothing at all, and goes on when it does again', async (test) => {
    if (services.origin !== 'java') return test.skip('a broker is only stopped where it is ours');
    // Those of the others may have been committed as the broker was killed, and are not said then.
    await service.logged((line) => isFirstReadDone(line) && line.resource === 'orders');
    const memory = rssAnonOf(service);
    // Of all lists at once, where it is the ledger that can't be written.
    const waiting = next(readiness(false, /waiting for Kafka since 20.*Z: no answer/));
    const ready = waiting.then(() => next(readiness(true, /^$/)));

    services.kafka.pause();
    const paused = requests();
    await waiting;
    // Nothing need be committed of a list that has not changed: it is asked until something is due.
    few(since(paused).slice(0, 1));
    const before = requests();
    await sleep(1_000); // nothing is to happen
    few(since(before));
    const growth = rssAnonOf(service) - memory;
    console.log('stopped: requests', since(paused), `RssAnon +${growth.toFixed(0)} MB`);
    expect(growth).toBeLessThan(SOME_PAGES_MB);

    services.kafka.resume();
    await allRead(before);
    await ready;
  });

  it('stops one resource when its schema has to grow and the registry is away, and no other', async (test) => {
    if (services.origin !== 'java') return test.skip('a registry is only killed where it is ours');
    const retried = next(retrying('registry', 'customers', 2));
    const waiting = next(readiness(false, /customers: waiting for the schema registry/));
    const ready = waiting.then(() => next(readiness(true, /^$/)));

    await services.registry.kill();
    sandbox.addField('customers', 'loyalty.grade', 'gold', { existing: 3 });
    await retried;
    const before = requests();
    await waiting;
    await vi.waitUntil(() => since(before)[0]! > HANDFUL && since(before)[2]! > HANDFUL, PATIENCE);
    few([since(before)[1]!]);
    console.log('registry: requests', since(before));

    await services.registry.start();
    await allRead(requests());
    await ready;
  });

  it('has published every change once', async () => {
    const { brokers, registryUrl } = services;
    sandbox.setRate(0);
    await publishedTruth(brokers, registryUrl, PREFIX, sandbox);
    expect(await service.end('SIGTERM')).toBe(0);
    const events = await readTopic(brokers, registryUrl, `${PREFIX}.orders`);
    expect(checkOrders(events, sandbox).violations).toEqual([]);
    const statuses = await readTopic(brokers, registryUrl, `${PREFIX}.order-status-changes`);
    expect(checkStatusChanges(statuses, events).violations).toEqual([]);
  });
});

function isFirstReadDone({ event, done }: LogLine): boolean {
  return event === 'first-read' && done === true;
}

/** Memory of its own, in MB. */
function rssAnonOf({ process }: Cli): number {
  const status = readFileSync(`/proc/${process.pid!}/status`, 'utf8');
  return Number(/RssAnon:\s+(\d+)/.exec(status)?.[1]) / 1_024;
}
