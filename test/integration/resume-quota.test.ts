import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Kafka, logLevel } from 'kafkajs';
import { describe, expect, inject, it, vi } from 'vitest';
import { RESOURCES } from '../../src/sandbox/index.ts';
import type { Endpoint, Sandbox } from '../../src/sandbox/index.ts';
import { withAdmin } from '../support/with-admin.ts';
import { cliForTest, connections, folderForTest, sandboxForTest } from './support/service.ts';

const LIMITS = { orders: 100, login: 10 };
const WINDOW_MS = 60_000;
const PATIENCE = { timeout: 120_000, interval: 20 };
/** A successor waits no longer, and takes a moment to start. */
const SOON_MS = 20_000;
/** What an initial snapshot takes of the quota at once is 62 of 100; polls take more of it. */
const MAX_OF_IT = 75;

/** With the true limits, and more to read than they allow in two minutes. */
async function service(prefix: string, resources: string) {
  const sandbox = await sandboxForTest({
    records: { orders: 30_000 },
    quotaPerMinute: LIMITS.orders,
    loginQuotaPerMinute: LIMITS.login,
  });
  const state = folderForTest();
  // Small pages: requests are counted, not records.
  const env = { ...connections(sandbox, prefix, state), RESOURCES: resources, PAGE_SIZE: '100' };
  return { sandbox, state, start: () => cliForTest(['run'], env) };
}

/** Requests to an endpoint so far. */
const requests = (sandbox: Sandbox, endpoint: Endpoint) => sandbox.truth.requests(endpoint).length;
/** Resolves when there are so many. */
const reached = (sandbox: Sandbox, endpoint: Endpoint, count: number) =>
  vi.waitUntil(() => requests(sandbox, endpoint) >= count, PATIENCE);

/** Most requests to each endpoint in any minute, as the API counts them. */
function keptItsQuota(name: string, { truth }: Sandbox): void {
  const most = Object.fromEntries(
    [...RESOURCES, 'login' as const].map((endpoint) => [
      endpoint,
      truth.mostInAnyWindow(endpoint, WINDOW_MS),
    ]),
  );
  console.log(`${name}: most in any minute`, most);
  const { login, ...lists } = most;
  expect(login).toBeLessThanOrEqual(LIMITS.login);
  for (const count of Object.values(lists)) expect(count).toBeLessThanOrEqual(LIMITS.orders);
  expect(truth.refused()).toBe(0);
}

/** Killed with most of the quota used, and started again at once: it takes the rest, and waits. */
async function folderKept(): Promise<void> {
  const { sandbox, start } = await service('quota-kept', RESOURCES.join());
  const killed = start();
  await reached(sandbox, 'orders', MAX_OF_IT);
  await killed.end('SIGKILL');
  const next = start();
  await reached(sandbox, 'orders', LIMITS.orders + MAX_OF_IT);
  await next.end('SIGTERM');
  keptItsQuota('folder kept', sandbox);
}

/** The same without the times of the requests: what it had declared is known, and the next one is soon there. */
async function folderLost(): Promise<void> {
  const { sandbox, before } = await lost('quota-lost');
  const requests = sandbox.truth.requests('orders');
  const [last, first] = [requests[before - 1]!, requests[before]!];
  expect(first.at - last.at).toBeLessThan(SOON_MS);
  // The place of the initial snapshot is in Kafka: no page is read again but those not yet committed.
  const furthest = Math.max(...requests.slice(0, before).map(({ query }) => offsetOf(query)));
  const again = requests
    .slice(before)
    .filter(({ query }) => !query.includes('modifiedFromDate') && offsetOf(query) <= furthest);
  console.log(`folder lost: ${again.length} pages read again`);
  expect(again.length).toBeLessThanOrEqual(3);
}

/** Without the ledger either, as when its topic was deleted: the cursor alone says that somebody has asked. */
async function ledgerLost(): Promise<void> {
  const { sandbox, before } = await lost('quota-unknown', async (prefix) => {
    const kafka = new Kafka({ brokers: inject('brokers'), logLevel: logLevel.NOTHING });
    await withAdmin(kafka, (admin) => admin.deleteTopics({ topics: [`${prefix}.ledger`] }));
  });
  const requests = sandbox.truth.requests('orders');
  const [last, first] = [requests[before - 1]!, requests[before]!];
  expect(first.at - last.at).toBeGreaterThan(WINDOW_MS);
}

/** Killed, and started again with an empty folder; gives how often the first one asked. */
async function lost(prefix: string, and?: (prefix: string) => Promise<unknown>) {
  const { sandbox, state, start } = await service(prefix, RESOURCES.join());
  const killed = start();
  await reached(sandbox, 'orders', MAX_OF_IT);
  await killed.end('SIGKILL');
  for (const name of readdirSync(state)) rmSync(join(state, name), { recursive: true });
  await and?.(prefix);
  const before = requests(sandbox, 'orders');
  const next = start();
  await reached(sandbox, 'orders', before + 10);
  await next.end('SIGTERM');
  keptItsQuota(prefix, sandbox);
  return { sandbox, before };
}

/** Killed as soon as it reads, more often in a minute than it may log in. */
async function oftenKilled(): Promise<void> {
  const { sandbox, start } = await service('quota-often', 'orders');
  for (let times = 1; times <= LIMITS.login + 2; times++) {
    const seen = requests(sandbox, 'orders');
    const process = start();
    await reached(sandbox, 'login', times);
    if (times <= 6) await reached(sandbox, 'orders', seen + 1);
    await process.end('SIGKILL');
  }
  keptItsQuota('often killed', sandbox);
}

function offsetOf(query: string): number {
  return Number(new URLSearchParams(query).get('offset'));
}

describe('a process that comes back within a minute', () => {
  // They only wait for the minute to pass: beside each other.
  it('keeps to the quota with its folder, without it, without its ledger, and however often', async () => {
    const all = await Promise.allSettled([folderKept(), folderLost(), ledgerLost(), oftenKilled()]);
    expect(all.filter(({ status }) => status === 'rejected')).toEqual([]);
  }, 240_000);
});
