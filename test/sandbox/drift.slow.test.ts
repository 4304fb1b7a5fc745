import { afterEach, describe, expect, it } from 'vitest';
import { RESOURCES, startSandbox } from '../../src/sandbox/index.ts';
import type { JsonObject, Resource, Sandbox, SandboxOptions } from '../../src/sandbox/index.ts';
import { connect, handClock, readAll } from './client.ts';

let sandbox: Sandbox;
let clock: ReturnType<typeof handClock>;

async function start(options: SandboxOptions = {}): Promise<Sandbox> {
  clock = handClock();
  return (sandbox = await startSandbox({
    now: clock.now,
    quotaPerMinute: 1_000,
    records: RECORDS,
    ...options,
  }));
}

afterEach(() => sandbox.close());

const records = (resource: Resource) => [...sandbox.truth.records(resource)] as JsonObject[];
const order = (number: number) => sandbox.truth.get('orders', number) as JsonObject;
const sinceOf = (record: JsonObject) => (record.loyalty as JsonObject | null | undefined)?.since;
const changedKeys = (from = 0) => new Set(sandbox.truth.changes.slice(from).map(({ key }) => key));
const isDated = (resource: Resource) => !['inventory', 'wine-clubs'].includes(resource);

/** Few, of the lists that are long by default. */
const RECORDS = { orders: 200, customers: 100, 'wine-club-members': 100 };

/** A field of each list that holds a number, and is not its key. */
const NUMBER: Readonly<Record<Resource, string>> = {
  orders: 'total_price',
  customers: 'lifetime_value',
  inventory: 'quantity_on_hand',
  'wine-clubs': 'discount_percent',
  'wine-club-members': 'shipments',
  products: 'variants.price',
};
const KEY: Readonly<Record<Resource, string>> = {
  orders: 'order_number',
  customers: 'id',
  inventory: 'sku',
  'wine-clubs': 'id',
  'wine-club-members': 'id',
  products: 'id',
};

function numberOf(resource: Resource, record: JsonObject) {
  if (resource !== 'products') return record[NUMBER[resource]];
  return (record.variants as JsonObject[])[0]!.price;
}

/** That a client reads, page by page, exactly what the truth says. */
async function expectServed(resource: Resource) {
  const { page } = await connect(sandbox);
  expect(await readAll(page, resource, 97)).toEqual(records(resource));
}

describe.each(RESOURCES)('%s', (resource) => {
  it('come by a new field: so many at once, others when they are changed', async () => {
    await start();
    const before = records(resource);
    clock.pass(1_000);
    sandbox.addField(resource, 'loyalty.since', '2026-03-05', { existing: 4 });
    const changed = changedKeys();
    expect(changed.size).toBe(4);
    for (const [k, key] of [...sandbox.truth.keys(resource)].entries()) {
      const record = sandbox.truth.get(resource, key) as JsonObject;
      if (!changed.has(key)) {
        expect(record).toEqual(before[k]);
        continue;
      }
      const { loyalty = null } = before[k]!;
      const updated_at = new Date(clock.now()).toISOString();
      expect(record).toEqual({
        ...before[k],
        loyalty: { ...(loyalty as JsonObject | null), since: '2026-03-05' },
        ...(isDated(resource) && { updated_at }),
      });
    }
    sandbox.changeSome(1_500);
    const [made] = [sandbox.create(resource)];
    const all = changedKeys();
    expect(all).toContain(made);
    for (const key of sandbox.truth.keys(resource)) {
      const since = sinceOf(sandbox.truth.get(resource, key) as JsonObject);
      expect(since).toBe(all.has(key) ? '2026-03-05' : undefined);
    }
    await expectServed(resource);
  });

  it('show numbers as texts: so many at once, others when they are changed', async () => {
    await start();
    const before = records(resource);
    sandbox.convertField(resource, NUMBER[resource], String, { existing: 4 });
    const changed = changedKeys();
    expect(changed.size).toBe(4);
    for (const [k, key] of [...sandbox.truth.keys(resource)].entries()) {
      const value = numberOf(resource, sandbox.truth.get(resource, key) as JsonObject);
      const plain = numberOf(resource, before[k]!);
      expect(value).toBe(changed.has(key) ? `${plain as number}` : plain);
    }
    sandbox.changeSome(1_500);
    const all = new Set(
      sandbox.truth.changes.filter((change) => change.resource === resource).map(({ key }) => key),
    );
    expect(all.size).toBeGreaterThan(5);
    for (const key of sandbox.truth.keys(resource)) {
      const value = numberOf(resource, sandbox.truth.get(resource, key) as JsonObject);
      expect(typeof value).toBe(all.has(key) ? 'string' : 'number');
      expect(`${Number(value)}`).toBe(`${value as number}`); // once converted, never again
    }
    await expectServed(resource);
  });

  it('lose a key, keep the place, and heal', async () => {
    await start();
    const [, key] = sandbox.truth.keys(resource);
    const keys = [...sandbox.truth.keys(resource)];
    const { [KEY[resource]]: lost, ...rest } = sandbox.truth.get(resource, key!) as JsonObject;
    expect(lost).toBe(key);
    clock.pass(1_000);
    const heal = sandbox.loseKey(resource, key!);
    const now = isDated(resource) ? { updated_at: new Date(clock.now()).toISOString() } : {};
    expect(sandbox.truth.get(resource, key!)).toEqual({ ...rest, ...now });
    expect([...sandbox.truth.keys(resource)]).toEqual(keys);
    await expectServed(resource);
    sandbox.change(resource, key!, { notes: 'still without' });
    expect(sandbox.truth.get(resource, key!)).toEqual({ ...rest, ...now, notes: 'still without' });
    clock.pass(1_000);
    heal();
    const later = isDated(resource) ? { updated_at: new Date(clock.now()).toISOString() } : {};
    const healed = { ...rest, [KEY[resource]]: lost, ...later, notes: 'still without' };
    expect(sandbox.truth.get(resource, key!)).toEqual(healed);
    const count = sandbox.truth.changes.length;
    heal();
    expect(sandbox.truth.changes).toHaveLength(count);
    await expectServed(resource);
  });
});

describe('drift', () => {
  it('is the same for the same seed', async () => {
    const drifted = async (seed: number) => {
      await start({ seed });
      sandbox.addField('orders', 'extra', 1, { existing: 10 });
      const keys = [...changedKeys()];
      await sandbox.close();
      return keys;
    };
    const first = await drifted(3);
    expect(await drifted(3)).toEqual(first);
    expect(await drifted(4)).not.toEqual(first);
  });

  it('ends: records are as before when they are next changed', async () => {
    await start({ records: { orders: 3 } });
    const before = order(100_001);
    const ends = [
      sandbox.addField('orders', '/extra/deep', { list: [1] }, { existing: Infinity }),
      sandbox.convertField('orders', 'item_count', String, { existing: Infinity }),
    ];
    for (const end of ends) end();
    expect(order(100_001)).toMatchObject({
      extra: { deep: { list: [1] } },
      item_count: `${before.item_count as number}`,
    });
    sandbox.change('orders', 100_001, { updated_at: before.updated_at! });
    expect(order(100_001)).toEqual(before);
    expect(order(100_002)).toHaveProperty('extra');
  });

  it('leaves `updated_at` alone when told to: no window shows it', async () => {
    await start();
    const { page } = await connect(sandbox);
    const before = records('orders');
    const modifiedFromDate = new Date(clock.now()).toISOString();
    const untouched = { existing: 5, touch: false };
    sandbox.addField('orders', 'extra', 1, untouched);
    sandbox.convertField('orders', 'tip', String, untouched);
    const heal = sandbox.loseKey('orders', 100_002, { touch: false });
    expect((await page('orders', { modifiedFromDate })).data).toEqual([]);
    expect(records('orders').map((record) => record.updated_at)).toEqual(
      before.map((record) => record.updated_at),
    );
    expect(records('orders').filter((record) => 'extra' in record).length).toBeGreaterThan(5);
    expect(order(100_002)).not.toHaveProperty('order_number');
    heal();
    expect((await page('orders', { modifiedFromDate })).data).toEqual([]);
    expect(order(100_002).order_number).toBe(100_002);
    await expectServed('orders');
  });

  it('does not stop the life of orders, whatever has become of their fields', async () => {
    await start({ records: { orders: 20 } });
    for (const field of ['total_price', 'item_count', 'order_items', 'customer_tags']) {
      sandbox.convertField('orders', field, () => 'odd', { existing: Infinity });
    }
    sandbox.loseKey('orders', 100_020);
    const number = sandbox.create('orders') as number;
    while (sandbox.advance(number) !== undefined);
    expect(order(number)).toMatchObject({ payment_status: 'paid', total_price: 'odd' });
    const made = sandbox.truth.count('orders');
    sandbox.changeSome(300);
    const kinds = sandbox.truth.changes.filter(({ resource }) => resource === 'orders');
    expect(kinds.filter(({ kind }) => kind === 'update').length).toBeGreaterThan(150);
    expect(sandbox.truth.count('orders') - made).toBeLessThan(80);
    expect(records('orders').every((record) => record.item_count === 'odd')).toBe(true);
  });

  it('leaves a field that is there, and null', async () => {
    await start({ records: { orders: 0 } });
    sandbox.addField('orders', 'notes', 'new');
    sandbox.convertField('orders', 'tip', String);
    const keys = [
      sandbox.create('orders', { notes: null, tip: null }),
      sandbox.create('orders', { notes: 'mine', tip: 2.5 }),
    ];
    expect(order(Number(keys[0]))).toMatchObject({ notes: null, tip: null });
    expect(order(Number(keys[1]))).toMatchObject({ notes: 'mine', tip: '2.5' });
  });

  it('gives each record a value of its own, and later drift builds on earlier', async () => {
    await start({ records: { orders: 2 } });
    sandbox.addField('orders', 'extra', { n: 1 });
    sandbox.addField('orders', 'extra.m', 2, { existing: 1 });
    sandbox.convertField('orders', 'extra.n', String, { existing: Infinity });
    for (const record of records('orders')) expect(record.extra).toEqual({ n: '1', m: 2 });
  });

  it('concerns only as many as have the field', async () => {
    await start();
    const withTip = records('orders').filter(({ tip }) => typeof tip === 'number').length;
    sandbox.convertField('orders', 'tip', String, { existing: Infinity });
    expect(changedKeys().size).toBe(withTip);
    expect(withTip).toBeLessThan(1_000);
  });

  it('leaves odd texts as they are', async () => {
    await start({ records: { orders: 2 } });
    const text = '{"order_number": 100001, "total_price": 12.300000000000000001}';
    const heal = sandbox.loseKey('orders', 100_001);
    sandbox.replaceText('orders', 100_001, text);
    sandbox.addField('orders', 'extra', 1, { existing: Infinity });
    expect(changedKeys(2)).toEqual(new Set([100_002]));
    heal();
    expect(sandbox.truth.text('orders', 100_001)).toBe(text);
  });

  it('is committed late like any change', async () => {
    await start({ lateCommitMs: 500, records: { orders: 1 } });
    const before = order(100_001);
    sandbox.addField('orders', 'extra', 1, { existing: 1 });
    sandbox.change('orders', 100_001, { notes: 'next' });
    const heal = sandbox.loseKey('orders', 100_001, { touch: false });
    expect(order(100_001)).toEqual(before);
    clock.pass(500);
    const { order_number, ...rest } = before;
    const updated_at = new Date(clock.now() - 500).toISOString();
    expect(order(100_001)).toEqual({ ...rest, extra: 1, notes: 'next', updated_at });
    const { page } = await connect(sandbox);
    expect((await page('orders', { modifiedFromDate: updated_at })).data).toHaveLength(1);
    heal();
    clock.pass(500);
    expect(order(100_001).order_number).toBe(order_number);
  });

  it('keeps a lost key lost until the record has healed as often as it was lost', async () => {
    await start();
    const heals = [sandbox.loseKey('orders', 100_001), sandbox.loseKey('orders', 100_001)];
    heals[0]!();
    heals[0]!();
    expect(order(100_001)).not.toHaveProperty('order_number');
    heals[1]!();
    expect(order(100_001)).toHaveProperty('order_number');
  });

  it('still knows a record without its key by number; healing one that is gone does nothing', async () => {
    await start();
    const heal = sandbox.loseKey('orders', 100_007);
    const { page } = await connect(sandbox);
    const found = await page('orders', { orderNumber: 100_007 });
    expect(found).toMatchObject({ data: [order(100_007)], pagination: { total_records: 1 } });
    sandbox.remove('orders', 100_007);
    heal();
    expect(sandbox.truth.get('orders', 100_007)).toBeUndefined();
    expect(() => sandbox.loseKey('orders', 100_007)).toThrow(RangeError);
    expect(() => sandbox.addField('orders', 'a..b', 1)).toThrow(RangeError);
  });

  it('shows in the status changes what a client can see', async () => {
    await start();
    sandbox.create('orders', { payment_status: 'paid' });
    const key = sandbox.create('orders', { payment_status: 'paid' });
    sandbox.convertField('orders', 'payment_status', (value) => `${value as string}!`);
    sandbox.change('orders', key, { notes: 'only' });
    expect(sandbox.truth.changes.at(-1)!.status).toEqual([
      { subject: 'order', subject_id: null, field: 'payment_status', from: 'paid', to: 'paid!' },
    ]);
  });
});
