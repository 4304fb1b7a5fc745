import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, inject, it, vi } from 'vitest';
import { startSandbox } from '../../src/sandbox/index.ts';
import type { Sandbox } from '../../src/sandbox/index.ts';
import { checkOrders, checkStatusChanges } from './support/checker.ts';
import { runCli } from './support/cli.ts';
import { follow } from './support/follow.ts';
import { publishedTruth } from './support/published-truth.ts';
import { scaled } from '../support/scale.ts';
import { connections } from './support/service.ts';
import { readTopic } from './support/topic-reader.ts';
import type { Read } from './support/topic-reader.ts';

const PREFIX = 'kill';
const KILLS = scaled(8, 20);
const ORDERS = scaled(5_000, 30_000);
const UPDATES = scaled(200, 500);
const QUOTA = 1_000; // the quota is not what is tested here

describe('run, killed at random moments while orders change', () => {
  let sandbox: Sandbox;
  let state: string;
  beforeAll(async () => {
    sandbox = await startSandbox({
      records: { orders: ORDERS },
      quotaPerMinute: QUOTA,
      loginQuotaPerMinute: QUOTA,
      changesPerSecond: 30,
      latencyMs: [5, 60],
    });
    state = mkdtempSync(join(tmpdir(), 'cellarstream-kill-'));
  });
  afterAll(async () => {
    await sandbox.close();
    rmSync(state, { recursive: true });
  });

  it('has published every change once, and ends with the truth', async () => {
    const env = {
      ...connections(sandbox, PREFIX, state),
      QUOTA_PER_MINUTE: String(QUOTA),
      LOGIN_QUOTA_PER_MINUTE: String(QUOTA),
      RESOURCES: 'orders',
      SWEEP_INTERVAL_MS: '1000', // orders are deleted too
      DELETE_PROOF_MS: '1000',
    };
    const random = generator(7);
    for (let kill = 0; kill < KILLS; kill++) {
      const service = runCli(['run'], env);
      // Most moments while it reads, some while it starts.
      if (random() < 0.8) await service.logged(({ event }) => event === 'ready');
      await sleep(random() * 3_500);
      await service.end('SIGKILL');
    }
    const service = runCli(['run'], env);
    await service.logged(({ event }) => event === 'ready');
    // Changes go on while nothing is killed: until enough were found, whatever else the machine does.
    const found = follow(`${PREFIX}.orders`);
    const isUpdate = ({ value }: Read) => value?.op === 'u';
    await vi.waitFor(() => expect(found.filter(isUpdate).length).toBeGreaterThan(UPDATES), {
      timeout: 60_000,
      interval: 250,
    });
    sandbox.setRate(0);
    await publishedTruth(inject('brokers'), inject('registryUrl'), PREFIX, sandbox);
    expect(await service.end('SIGTERM')).toBe(0);

    const topic = (name: string) =>
      readTopic(inject('brokers'), inject('registryUrl'), `${PREFIX}.${name}`);
    const events = await topic('orders');
    const orders = checkOrders(events, sandbox);
    expect(orders.violations).toEqual([]);
    const statuses = checkStatusChanges(await topic('order-status-changes'), events);
    expect(statuses.violations).toEqual([]);
    console.log(`after ${KILLS} kills`, orders.ops, `${statuses.count} status changes`);
    expect(orders.ops.u).toBeGreaterThan(UPDATES);
  }, 240_000);
});

/** Uniform in [0, 1), the same each run. */
function generator(seed: number): () => number {
  let state = seed;
  return () => (state = (state * 48_271) % 0x7fffffff) / 0x7fffffff;
}
