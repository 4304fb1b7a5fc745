import { setTimeout } from 'node:timers/promises';
import { describe, expect, inject, it, vi } from 'vitest';
import type { Resource } from '../../src/sandbox/index.ts';
import type { Sandbox } from '../../src/sandbox/index.ts';
import { SORTS } from '../streams/paging/moving-list.ts';
import { checkOrders } from './support/checker.ts';
import type { Cli, LogLine } from './support/cli.ts';
import { publishedTruth } from './support/published-truth.ts';
import { swept } from './support/rounds.ts';
import { besideEachOther, PATIENCE_MS, TIMEOUT } from './support/running-test.ts';
import { scaled } from '../support/scale.ts';
import {
  cliForTest,
  firstReadDone,
  folderForTest,
  sandboxForTest,
  settings,
} from './support/service.ts';
import type { Env } from './support/service.ts';
import { readTopic } from './support/topic-reader.ts';

/** `DELETE_SEEDS=20` repeats the large test with as many seeds. */
const SEEDS = Number(process.env.DELETE_SEEDS ?? 1);
const ORDERS = scaled(1_000, 50_000);
const DELETED = scaled(40, 1_000);
const BURST = DELETED / 4;
const QUOTA = 100_000; // not what is tested here
besideEachOther();

const read = (topic: string) => readTopic(inject('brokers'), inject('registryUrl'), topic);

/** Accepts the next line of an event. */
function after(service: Cli, event: string): (line: LogLine) => boolean {
  const seen = service.lines().length;
  return (line) => line.event === event && service.lines().indexOf(line) >= seen;
}

/** Lists that answer an empty page, and what its pagination says then. */
type Emptied = readonly [Resource, 'full' | 'empty'];
const EMPTIED = scaled<readonly Emptied[]>(
  [
    ['orders', 'full'],
    ['inventory', 'empty'],
  ],
  [
    ['orders', 'full'],
    ['orders', 'empty'],
    ['inventory', 'full'],
    ['inventory', 'empty'],
  ],
);

describe('sweeps, with orders that change all the time', () => {
  it.each(Array.from({ length: SEEDS }, (_, k) => ({ seed: k + 1, sort: SORTS[k % 4]! })))(
    `publishes each of ${DELETED} deletions among ${ORDERS} orders once, and no other (seed $seed, $sort)`,
    async ({ seed, sort }) => {
      const began = performance.now();
      const prefix = `deletes-${seed}`;
      const sandbox = await sandboxForTest({
        records: { orders: ORDERS },
        seed,
        sort,
        quotaPerMinute: QUOTA,
        changesPerSecond: scaled(10, 40), // a list that moves faster than it is read is read for long
      });
      const service = cliForTest(['run'], {
        ...settings(sandbox, prefix, folderForTest()),
        QUOTA_PER_MINUTE: String(QUOTA),
        SWEEP_INTERVAL_MS: '500',
        POLL_INTERVAL_MS: '500',
        LOG_LEVEL: 'debug',
      });
      await firstReadDone(service);

      const keys = [...sandbox.truth.keys('orders')];
      const step = Math.floor(keys.length / DELETED);
      const chosen = Array.from(
        { length: DELETED },
        (_, k) => keys[k * step + ((k * seed) % step)]!,
      );
      // In bursts while sweeps run, so that the list moves under them.
      for (let k = 0; k < DELETED; k += BURST) {
        for (const key of chosen.slice(k, k + BURST)) {
          if (sandbox.truth.get('orders', key)) sandbox.remove('orders', key);
        }
        await service.logged(after(service, 'swept'));
      }
      sandbox.setRate(0);
      // A sweep spares the newest orders: those that are gone at once are deleted by a later one.
      await publishedTruth([...inject('brokers')], inject('registryUrl'), prefix, sandbox);
      expect(await service.end('SIGTERM')).toBe(0);

      const events = await read(`${prefix}.orders`);
      const published = new Set(events.map(({ key }) => key));
      // An order that came and went between two looks was never published.
      const deleted = sandbox.truth.changes
        .filter(({ resource, kind }) => resource === 'orders' && kind === 'delete')
        .map(({ key }) => String(key))
        .filter((key) => published.has(key));
      expect(deleted.length).toBeGreaterThanOrEqual(DELETED);
      const deletions = events.filter(({ value }) => value?.op === 'd');
      expect(deletions.map(({ key }) => key).sort()).toEqual(deleted.sort());
      const tombstones = events.filter(({ value }) => value === null);
      expect(tombstones.map(({ key }) => key).sort()).toEqual(deleted);
      expect(checkOrders(events, sandbox).violations).toEqual([]);
      const statuses = await read(`${prefix}.order-status-changes`);
      expect(statuses.filter(({ value }) => value?.to === null)).toEqual([]);
      console.log(`seed ${seed}, ${sort}: ${Math.round((performance.now() - began) / 1_000)} s`);
    },
    300_000,
  );
});

describe.concurrent('sweeps', TIMEOUT, () => {
  /** A running service with short intervals; its initial snapshot is done. */
  const running = async (prefix: string, sandbox: Sandbox, more: Env) => {
    const env = {
      ...settings(sandbox, prefix, folderForTest()),
      SWEEP_INTERVAL_MS: '600', // eleven services run at once
      POLL_INTERVAL_MS: '600',
      QUOTA_PER_MINUTE: String(QUOTA),
      LOG_LEVEL: 'debug',
      ...more,
    };
    const service = cliForTest(['run'], env);
    await firstReadDone(service);
    return { service, env };
  };
  const opsOf = async (topic: string) => {
    const ops: Record<string, string[]> = { r: [], c: [], u: [], d: [], tombstone: [] };
    for (const { key, value } of await read(topic)) {
      ops[value === null ? 'tombstone' : String(value.op)]!.push(key!);
    }
    for (const keys of Object.values(ops)) keys.sort(); // partitions come in any order
    return ops;
  };

  it.each([
    { resource: 'orders', how: 'asked for by their numbers' },
    { resource: 'customers', how: 'absent from two sweeps beside polls' },
    { resource: 'inventory', how: 'absent from two sweeps' },
  ] as const)(
    '$resource that are gone ($how) are deleted once, and created when they are back',
    async ({ resource }) => {
      const prefix = `gone-${resource}`;
      const sandbox = await sandboxForTest({
        records: { [resource]: 500 },
        quotaPerMinute: QUOTA,
      });
      const { service } = await running(prefix, sandbox, { RESOURCES: resource });
      const show = sandbox.hide(resource, 0.02);
      await swept(service, resource);
      await swept(service, resource);
      const topic = `${prefix}.${resource}`;
      const gone = await opsOf(topic);
      expect(gone.d!.length).toBeGreaterThan(2);
      expect(gone.d!.length).toBeLessThan(21);
      expect(gone.tombstone).toEqual(gone.d);

      show();
      // Back as it was, a record could be the answer of a replica that lags: it is read once more, ten seconds apart.
      let back = gone;
      while (back.c!.length < gone.d!.length) {
        await swept(service, resource);
        back = await opsOf(topic);
      }
      expect(back.c).toEqual(gone.d);
      expect(back).toMatchObject({ d: gone.d, u: [] });
      expect(back.r).toHaveLength(500);
    },
  );

  it('deletes nothing when too much is gone at once, says so, and does as it is told then', async () => {
    const sandbox = await sandboxForTest({ records: { orders: 400 }, quotaPerMinute: QUOTA });
    const { service, env } = await running('held', sandbox, { RESOURCES: 'orders' });
    sandbox.hide('orders', 0.2);
    const { gone, known, level } = await service.logged(({ event }) => event === 'deletes-held');
    expect({ known, level }).toEqual({ known: 400, level: 'error' });
    await swept(service, 'orders');
    await service.end('SIGTERM');
    expect((await opsOf('held.orders')).d).toEqual([]);

    const allowed = cliForTest(['run'], { ...env, DELETE_LIMIT_PERCENT: '100' });
    await swept(allowed, 'orders');
    expect(await allowed.end('SIGTERM')).toBe(0);
    const { d, tombstone } = await opsOf('held.orders');
    expect(d).toHaveLength(Number(gone));
    expect(tombstone).toEqual(d);
  });

  it.each(scaled<readonly Resource[]>(['orders'], ['wine-clubs', 'orders']))(
    'of %s whose index is wrong for three seconds, and shows a third of them, nothing is deleted',
    async (resource) => {
      const prefix = `wrong-${resource}`;
      const sandbox = await sandboxForTest({ records: { [resource]: 18 }, quotaPerMinute: QUOTA });
      const { service } = await running(prefix, sandbox, {
        RESOURCES: resource,
        DELETE_PROOF_MS: '5000',
        DELETE_LIMIT_PERCENT: '100', // not what keeps them
      });
      const show = sandbox.hide(resource, 0.7);
      await setTimeout(3_000); // the time is what is tested
      show();
      await swept(service, resource);
      await setTimeout(4_000);
      await swept(service, resource);
      expect(await service.end('SIGTERM')).toBe(0);
      const { r, d, c } = await opsOf(`${prefix}.${resource}`);
      expect({ r: r!.length, d, c }).toEqual({ r: 18, d: [], c: [] });
    },
  );

  it('of a short list that shows a third of its records nothing is deleted, however long', async () => {
    const sandbox = await sandboxForTest({ records: { 'wine-clubs': 18 }, quotaPerMinute: QUOTA });
    const { service } = await running('short', sandbox, { RESOURCES: 'wine-clubs' });
    sandbox.hide('wine-clubs', 0.7);
    const { known } = await service.logged(({ event }) => event === 'deletes-held');
    expect(known).toBe(18);
    for (let k = 0; k < 3; k++) await swept(service, 'wine-clubs');
    expect(await service.end('SIGTERM')).toBe(0);
    expect((await opsOf('short.wine-clubs')).d).toEqual([]);
  });

  it.each(EMPTIED)(
    'of %s that answer an empty page (pagination %s) nothing is deleted',
    async (resource, pagination) => {
      const prefix = `empty-${resource}-${pagination}`;
      const sandbox = await sandboxForTest({ records: { [resource]: 15 }, quotaPerMinute: QUOTA }); // few: the limit lets them go
      const { service } = await running(prefix, sandbox, { RESOURCES: resource });
      const lift = sandbox.fault({ kind: 'empty', endpoint: resource, pagination });
      await swept(service, resource);
      await swept(service, resource);
      lift();
      await swept(service, resource);
      await service.end('SIGTERM');
      const { r, d, c, u } = await opsOf(`${prefix}.${resource}`);
      expect({ r: r!.length, d, c, u }).toEqual({ r: 15, d: [], c: [], u: [] });
    },
  );

  it('find what has changed without a new updated_at', async () => {
    const sandbox = await sandboxForTest({ records: { orders: 300 }, quotaPerMinute: QUOTA });
    const { service } = await running('untouched', sandbox, { RESOURCES: 'orders' });
    sandbox.addField('orders', 'gift_note', 'cheers', { existing: 3, touch: false });
    await swept(service, 'orders');
    await service.end('SIGTERM');
    const { r, u, c, d } = await opsOf('untouched.orders');
    expect({ r: r!.length, u: u!.length, c, d }).toEqual({ r: 300, u: 3, c: [], d: [] });
  });

  it('go on where they were when the process was killed', async () => {
    const sandbox = await sandboxForTest({ records: { orders: 6_000 }, quotaPerMinute: QUOTA });
    const settings = { RESOURCES: 'orders', PAGE_SIZE: '200' };
    const { service, env } = await running('resumed', sandbox, settings);
    await swept(service, 'orders');
    const offsets = () =>
      sandbox.truth
        .requests('orders')
        .map(({ query }) => new URLSearchParams(query))
        .filter((query) => !query.has('modifiedFromDate') && !query.has('orderNumber'))
        .map((query) => Number(query.get('offset')));
    sandbox.setLatency(150);
    const inTheMiddle = () => offsets().at(-1)! > 3_500 && offsets().at(-1)! < 5_000;
    await vi.waitUntil(inTheMiddle, { timeout: PATIENCE_MS, interval: 20 });
    await service.end('SIGKILL');
    const before = offsets();
    sandbox.setLatency(0);
    const next = cliForTest(['run'], env);
    await next.logged(({ event }) => event === 'swept');
    const after = offsets().slice(before.length);
    // The pages that were under way are read again, nine ahead of one at most, and those behind them.
    expect(after[0]).toBeGreaterThan(before.at(-1)! - 11 * 200);
    expect(after[0]).toBeLessThanOrEqual(before.at(-1)!);
    await next.end('SIGTERM');
    expect(await opsOf('resumed.orders')).toMatchObject({ u: [], c: [], d: [] });
  });
});
