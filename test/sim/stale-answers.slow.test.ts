import { describe, expect, it, vi } from 'vitest';
import type { Resource } from '../../src/config/config.ts';
import { orderStatusChangeCodec } from '../../src/description/wine/order-status.ts';
import type { JsonObject } from '../../src/schemas/json/json.ts';
import { unframe } from '../../src/schemas/registry/wire.ts';
import { oneProcess } from './one-process.ts';
import { chainsOf } from './published.ts';
import type { PageCache } from './sim-api.ts';

vi.setConfig({ testTimeout: 120_000 }); // minutes of virtual time take seconds, and more where the machine is busy

/** Before all keys that the list begins with. */
const KEY = 1;
const FIVE_MINUTES = 300_000;

const env = {
  LOOKBACK_MS: '15000',
  SWEEP_INTERVAL_MS: '20000',
  DELETE_LIMIT_PERCENT: '100',
  DELETE_PROOF_MS: '15000',
  PAGE_SIZE: '100',
};

/** A list in which one record changes as a test says, and what was published of it. */
function story(resource: Resource) {
  const { time, api, broker, registry, topic } = oneProcess({
    ...{ seed: 3, resource, env, perMinute: 150 },
  });
  return {
    api,
    list: api.list,
    pass: (seconds: number) => time.pass(seconds * 1_000),
    ops: () =>
      (chainsOf(broker.read(topic), registry).get(String(KEY)) ?? []).map((event) =>
        event === 'tombstone' ? event : `${event.op} ${statusOf(event.record)}`,
      ),
    statuses: () =>
      broker
        .read('sim.order-status-changes')
        .filter(({ key }) => key === String(KEY))
        .map(({ value }) => orderStatusChangeCodec.decode(unframe(value!).payload))
        .filter(({ field }) => field === 'payment_status')
        .map(({ from, to }) => `${String(from)} -> ${String(to)}`),
  };
}

const statusOf = (record: JsonObject | null) =>
  (record?.payment_status as string | undefined) ?? '';
const status = (payment_status: string) => ({
  ...{ payment_status, fulfillment_status: 'open', fulfillment_info: [] },
});

describe('two backends that answer in turn, of which one lags by three seconds', () => {
  it.each(['every second', 'by chance'] as const)(
    'make one update and one status change of an order that is paid: %s',
    async (turn) => {
      const { api, list, pass, ops, statuses } = story('orders');
      list.alter(KEY, status('authorized'));
      await pass(20);
      api.replica = { lagMs: 3_000, turn };
      list.alter(KEY, status('paid'));
      await pass(60);
      expect(ops()).toEqual(['r authorized', 'u paid']);
      expect(statuses()).toEqual(['authorized -> paid']);
    },
  );

  it.each(['inventory', 'customers', 'products'] as const)(
    'make one update of a record of %s',
    async (resource) => {
      const { api, list, pass, ops } = story(resource);
      list.alter(KEY, status('one'));
      await pass(20);
      api.replica = { lagMs: 3_000, turn: 'every second' };
      list.alter(KEY, status('two'));
      await pass(60);
      expect(ops()).toEqual(['r one', 'u two']);
    },
  );

  it('make an event of each change of an order that goes there and back again', async () => {
    const { api, list, pass, ops } = story('orders');
    list.alter(KEY, status('one'));
    await pass(20);
    api.replica = { lagMs: 3_000, turn: 'every second' };
    for (const next of ['two', 'one', 'two']) {
      list.alter(KEY, status(next));
      await pass(2);
    }
    await pass(60);
    expect(ops()).toEqual(['r one', 'u two', 'u one', 'u two']);
  });
});

describe('a record that really goes back to an earlier updated_at', () => {
  it.each(['orders', 'customers', 'products'] as const)(
    'of %s is published once it was read again some time later',
    async (resource) => {
      const { list, pass, ops } = story(resource);
      list.alter(KEY, status('one'));
      await pass(20);
      list.alter(KEY, status('restored'), 40_000);
      await pass(9);
      expect(ops()).toEqual(['r one']);
      await pass(50);
      expect(ops()).toEqual(['r one', 'u restored']);
    },
  );

  it('without updated_at is published within seconds after it was replaced', async () => {
    const { list, pass, ops } = story('inventory');
    list.alter(KEY, status('one'));
    await pass(20);
    list.alter(KEY, status('two'));
    await pass(5);
    list.alter(KEY, { ...status('one'), version: 1 });
    await pass(30);
    expect(ops()).toEqual(['r one', 'u two', 'u one']);
  });
});

describe('pages of a sweep that come from a cache, five minutes old', () => {
  const caches: readonly PageCache[] = [
    { ttlMs: FIVE_MINUTES, sendsAge: true },
    { ttlMs: FIVE_MINUTES, sendsAge: false },
  ];

  it.each(caches)('set back no order, and bring back none that was deleted: %o', async (cache) => {
    const { api, list, pass, ops, statuses } = story('orders');
    list.alter(KEY, status('authorized'));
    await pass(5);
    api.cache = cache;
    await pass(30); // by now the cache has the list
    list.alter(KEY, status('paid'));
    await pass(100);
    expect(ops()).toEqual(['r authorized', 'u paid']);
    expect(statuses()).toEqual(['authorized -> paid']);
    // It is read without the cache until it is found to be gone; then the cache is there again.
    api.cache = undefined;
    list.remove(KEY);
    await pass(90);
    expect(ops()).toEqual(['r authorized', 'u paid', 'd ', 'tombstone']);
    api.cache = cache;
    await pass(100);
    expect(ops()).toEqual(['r authorized', 'u paid', 'd ', 'tombstone']);
  });

  it.each(caches)('prove no deletion: %o', async (cache) => {
    const { api, list, pass, ops } = story('customers');
    await pass(5);
    api.cache = cache;
    await pass(30);
    list.alter(KEY, status('new'));
    await pass(200);
    expect(ops()).toEqual(['c new']);
  });
});
