import { afterEach, describe, expect, it, vi } from 'vitest';
import { RESOURCES, startSandbox } from '../../src/sandbox/index.ts';
import type { JsonObject, Sandbox, SandboxOptions } from '../../src/sandbox/index.ts';
import { connect, handClock } from './client.ts';

let sandbox: Sandbox;
let clock: ReturnType<typeof handClock>;

async function start(options: SandboxOptions = {}): Promise<Sandbox> {
  clock = handClock();
  return (sandbox = await startSandbox({
    now: clock.now,
    records: { orders: 200, customers: 100 },
    ...options,
  }));
}

afterEach(() => sandbox.close());

const texts = (resource: (typeof RESOURCES)[number]) =>
  new Map([...sandbox.truth.keys(resource)].map((key) => [key, sandbox.truth.text(resource, key)]));

const order = (number: number) => sandbox.truth.get('orders', number) as JsonObject;

describe('the log of changes', () => {
  it.each(RESOURCES)('%s: is the difference of before and after', async (resource) => {
    await start();
    const before = texts(resource);
    sandbox.changeSome(2_000);
    const after = texts(resource);
    const log = sandbox.truth.changes.filter((change) => change.resource === resource);
    const byKey = Map.groupBy ? Map.groupBy(log, ({ key }) => key) : grouped(log);

    for (const [key, changes] of byKey) {
      expect(changes[0]!.kind === 'create').toBe(!before.has(key));
      expect(changes.at(-1)!.kind === 'delete').toBe(!after.has(key));
    }
    for (const key of new Set([...before.keys(), ...after.keys()])) {
      if (!byKey.has(key)) expect(after.get(key)).toBe(before.get(key));
    }
    expect(byKey.size).toBeGreaterThan(5);
  });

  it('replays the status fields of every order', async () => {
    await start({ records: { orders: 40 } });
    const statuses = new Map(
      [...sandbox.truth.keys('orders')].map((key) => [key, statusesOf(order(Number(key)))]),
    );
    sandbox.changeSome(1_500);
    const seen = new Set<string>();
    for (const { resource, key, kind, status } of sandbox.truth.changes) {
      if (resource !== 'orders') continue;
      if (kind === 'delete') {
        expect(status).toBeUndefined();
        statuses.delete(key);
        continue;
      }
      const known = statuses.get(key) ?? {};
      for (const { subject, subject_id, field, from, to } of status!) {
        const name = `${subject}/${subject_id}/${field}`;
        expect(known[name] ?? null).toBe(from);
        expect(to).not.toBe(from);
        if (to === null) delete known[name];
        else known[name] = to;
        seen.add(`${subject}.${field}`);
      }
      statuses.set(key, known);
    }
    for (const [key, known] of statuses) expect(known).toEqual(statusesOf(order(Number(key))));
    expect(seen.size).toBe(9);
  });

  it('keeps the newest only', async () => {
    await start({ changeLogLimit: 10 });
    for (let k = 0; k < 50; k++) sandbox.change('orders', 100_001, { notes: String(k) });
    sandbox.change('orders', 100_002, { notes: 'last' });
    expect(sandbox.truth.changes).toHaveLength(10);
    expect(sandbox.truth.changes.at(-1)).toMatchObject({ key: 100_002, at: clock.now() });
  });
});

describe('controls', () => {
  it('change fields and `updated_at`', async () => {
    await start();
    const before = order(100_003);
    sandbox.change('orders', 100_003, { notes: 'new', unheard_of: [1] });
    const updated_at = new Date(clock.now()).toISOString();
    expect(order(100_003)).toEqual({ ...before, notes: 'new', unheard_of: [1], updated_at });
    sandbox.change('orders', 100_003, (record) => {
      delete record.unheard_of;
    });
    expect(order(100_003)).not.toHaveProperty('unheard_of');
    sandbox.change('orders', 100_003, { updated_at: '2020-02-02T02:02:02+02:00' });
    expect(order(100_003).updated_at).toBe('2020-02-02T02:02:02+02:00');
    expect(() => sandbox.change('orders', 5, {})).toThrow(RangeError);
  });

  it('serve odd texts as they are, and life goes on', async () => {
    await start({ records: { orders: 3 } });
    const text = '{"order_number": 100002, "total_price": 12.300000000000000001}';
    sandbox.replaceText('orders', 100_002, text);
    sandbox.replaceText('orders', 100_003, '"no object"');
    const { get } = await connect(sandbox);
    const body = await (await get('orders')).text();
    expect(body).toContain(`,${text},"no object"]`);
    expect(() => sandbox.replaceText('orders', 100_001, '{')).toThrow(SyntaxError);
    sandbox.changeSome(200);
    expect(sandbox.truth.text('orders', 100_002)).toBe(text);
  });

  it('set a status, anywhere in the order', async () => {
    await start();
    const number = sandbox.create('orders', {
      fulfillment_info: [{ fulfillment_id: 'F-1' }, { fulfillment_id: 'F-2', status: 'open' }],
      club_package_info: { package_status: 'open' },
      order_edit: [{ created_at: '2026-01-01T00:00:00.000Z', status: 'pending' }],
    }) as number;
    sandbox.setStatus(number, 'payment_status', 'void');
    sandbox.setStatus(number, 'fulfillment_info[F-2].status', 'cancelled');
    sandbox.setStatus(number, 'fulfillment_info.shipment_status', 'lost');
    sandbox.setStatus(number, 'club_package_info.package_status', null);
    sandbox.setStatus(number, 'order_edit[2026-01-01T00:00:00.000Z].status', 'done');
    const changes = sandbox.truth.changes.slice(-5).map(({ status }) => status![0]);
    expect(changes).toEqual([
      { subject: 'order', subject_id: null, field: 'payment_status', from: 'pending', to: 'void' },
      { subject: 'fulfillment', subject_id: 'F-2', field: 'status', from: 'open', to: 'cancelled' },
      {
        subject: 'fulfillment',
        subject_id: 'F-1',
        field: 'shipment_status',
        from: null,
        to: 'lost',
      },
      {
        subject: 'club_package',
        subject_id: null,
        field: 'package_status',
        from: 'open',
        to: null,
      },
      {
        subject: 'order_edit',
        subject_id: '2026-01-01T00:00:00.000Z',
        field: 'status',
        from: 'pending',
        to: 'done',
      },
    ]);
    expect(() => sandbox.setStatus(number, 'fulfillment_info[F-9].status', 'x')).toThrow(
      RangeError,
    );
  });

  it('lead an order through its life, to an end', async () => {
    await start();
    const number = sandbox.create('orders') as number;
    const steps: string[] = [];
    for (let step; (step = sandbox.advance(number)) !== undefined; clock.pass(1_000)) {
      steps.push(step);
      expect(steps.length).toBeLessThan(40);
    }
    expect(order(number)).toMatchObject({
      payment_status: 'paid',
      fulfillment_status: 'fulfilled',
    });
    expect(steps.indexOf('authorize the payment')).toBeLessThan(
      steps.indexOf('capture the payment'),
    );
    const changed = sandbox.truth.changes.filter(({ key }) => key === number);
    expect(changed).toHaveLength(steps.length + 1);
    expect(changed.every(({ status }) => status!.length > 0)).toBe(true);
  });

  it('create with the next key and remove for good', async () => {
    await start();
    expect(sandbox.create('orders', { notes: 'mine' })).toBe(100_201);
    expect(order(100_201)).toMatchObject({ order_number: 100_201, notes: 'mine' });
    expect(sandbox.create('inventory')).toBe('CS-100201');
    sandbox.remove('orders', 100_201);
    expect(sandbox.truth.get('orders', 100_201)).toBeUndefined();
    expect(() => sandbox.remove('orders', 100_201)).toThrow(RangeError);
    expect(sandbox.create('orders')).toBe(100_202);
    expect(sandbox.truth.count('orders')).toBe(201);
  });

  it('create a record with its own `updated_at`, by which windows find it', async () => {
    await start();
    const key = sandbox.create('orders', { updated_at: '2020-02-02T02:02:02.000Z' });
    const { page } = await connect(sandbox);
    const window = { modifiedFromDate: '2020-02-02', modifiedToDate: '2020-02-03' };
    expect((await page('orders', window)).data.map(({ order_number }) => order_number)).toEqual([
      key,
    ]);
  });

  it('start from nothing', async () => {
    const none = {
      orders: 0,
      customers: 0,
      inventory: 0,
      'wine-clubs': 0,
      'wine-club-members': 0,
      products: 0,
    };
    await start({ records: none });
    const { page } = await connect(sandbox);
    expect(await page('orders')).toMatchObject({ data: [], pagination: { total_pages: 0 } });
    sandbox.changeSome(200);
    expect((await page('orders')).data.length).toBe(sandbox.truth.count('orders'));
    expect(sandbox.truth.count('orders')).toBeGreaterThan(5);
    sandbox.changeSome(1_000);
    expect(sandbox.truth.count('wine-clubs')).toBe(0); // clubs are not created
  });
});

it('commits late: seen after its `updated_at`, upon the version before', async () => {
  await start({ lateCommitMs: 500 });
  const began = clock.now();
  const before = order(100_001);
  sandbox.change('orders', 100_001, { notes: 'one' });
  clock.pass(100);
  sandbox.change('orders', 100_001, { class: 'two' });
  const made = sandbox.create('orders');
  clock.pass(399);
  expect(order(100_001)).toEqual(before);
  expect(sandbox.truth.changes).toEqual([]);
  clock.pass(1);
  expect(order(100_001)).toMatchObject({ notes: 'one', class: before.class! });
  expect(order(100_001).updated_at).toBe(new Date(began).toISOString());
  expect(sandbox.truth.get('orders', made)).toBeUndefined();
  clock.pass(100);
  expect(order(100_001)).toMatchObject({ notes: 'one', class: 'two' });
  expect(sandbox.truth.changes.map(({ kind, at }) => [kind, at - began])).toEqual([
    ['update', 500],
    ['update', 600],
    ['create', 600],
  ]);
});

it('commits late: a third change builds on the second while that is not seen yet', async () => {
  await start({ lateCommitMs: 500 });
  sandbox.change('orders', 100_001, { notes: 'one' });
  clock.pass(100);
  sandbox.change('orders', 100_001, { class: 'two' });
  clock.pass(400);
  expect(order(100_001)).toMatchObject({ notes: 'one' });
  sandbox.change('orders', 100_001, { tip: 3 });
  clock.pass(500);
  expect(order(100_001)).toMatchObject({ notes: 'one', class: 'two', tip: 3 });
});

it('commits late by the true clock, after the clock of the server was set back', async () => {
  await start({ lateCommitMs: 500, replicaLagMs: 500 });
  const { page } = await connect(sandbox);
  const notes = async () => (await page('orders', { orderNumber: 100_001 })).data[0]!.notes;
  sandbox.change('orders', 100_001, { notes: 'one' });
  sandbox.skewClock(-3_600_000);
  sandbox.change('orders', 100_001, { notes: 'two' });
  clock.pass(500);
  expect(order(100_001)).toMatchObject({ notes: 'two' });
  clock.pass(500);
  expect([await notes(), await notes()]).toEqual(['two', 'two']);
});

it('changes by itself at the rate it is given, by its clock', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  try {
    await start({ changesPerSecond: 10 });
    const pass = (ms: number) => {
      for (let left = ms; left > 0; left -= 20) {
        clock.pass(20);
        vi.advanceTimersByTime(20);
      }
    };
    pass(3_000);
    expect(sandbox.truth.changes.length).toBeGreaterThanOrEqual(29);
    expect(sandbox.truth.changes.length).toBeLessThanOrEqual(30);
    sandbox.setRate(0);
    const count = sandbox.truth.changes.length;
    pass(1_000);
    expect(sandbox.truth.changes).toHaveLength(count);
    sandbox.setRate(100);
    clock.pass(3_600_000); // asleep for an hour: no flood
    vi.advanceTimersByTime(20);
    expect(sandbox.truth.changes.length - count).toBeLessThanOrEqual(200);
  } finally {
    vi.useRealTimers();
  }
});

function grouped<T extends { key: unknown }>(entries: readonly T[]): Map<T['key'], T[]> {
  const groups = new Map<T['key'], T[]>();
  for (const entry of entries) groups.set(entry.key, [...(groups.get(entry.key) ?? []), entry]);
  return groups;
}

/** The nine status fields by hand: another way than the sandbox's own. */
function statusesOf(record: JsonObject): Record<string, string> {
  const found: Record<string, string> = {};
  const put = (name: string, value: unknown) => {
    if (typeof value === 'string') found[name] = value;
  };
  put('order/null/payment_status', record.payment_status);
  put('order/null/fulfillment_status', record.fulfillment_status);
  for (const parcel of record.fulfillment_info as JsonObject[]) {
    const id = parcel.fulfillment_id as string;
    put(`fulfillment/${id}/status`, parcel.status);
    put(`fulfillment/${id}/shipment_status`, parcel.shipment_status);
  }
  const shared: Record<string, number> = {};
  for (const edit of (record.order_edit ?? []) as JsonObject[]) {
    const at = edit.created_at as string;
    const n = (shared[at] = (shared[at] ?? 0) + 1);
    put(`order_edit/${at}${n > 1 ? `#${n}` : ''}/status`, edit.status);
  }
  const club = (record.club_package_info ?? {}) as JsonObject;
  for (const name of Object.keys(club)) {
    if (name.endsWith('_status')) put(`club_package/null/${name}`, club[name]);
  }
  return found;
}
