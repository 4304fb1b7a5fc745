import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startSandbox } from '../../src/sandbox/index.ts';
import type { JsonObject, Sandbox } from '../../src/sandbox/index.ts';
import { connect, handClock, login } from './client.ts';
import type { Page } from './client.ts';

let sandbox: Sandbox;
let client: Awaited<ReturnType<typeof connect>>;

beforeEach(async () => {
  sandbox = await startSandbox({ records: { orders: 50 } });
  client = await connect(sandbox);
});
afterEach(() => sandbox.close());

const status = async () => (await client.get('orders')).status;

describe('fault', () => {
  it('answers with a status, body and headers, until lifted', async () => {
    const headers = { 'retry-after': '7' };
    const lift = sandbox.fault({ kind: 'status', status: 503, body: { why: 'tired' }, headers });
    const answer = await client.get('orders');
    expect(answer.status).toBe(503);
    expect(answer.headers.get('retry-after')).toBe('7');
    expect(await answer.json()).toEqual({ why: 'tired' });
    expect(await status()).toBe(503);
    lift();
    expect(await status()).toBe(200);
  });

  it('refuses like a firewall, with 403 and HTML', async () => {
    sandbox.fault({ kind: 'firewall', endpoint: 'login' });
    const answer = await login(sandbox);
    expect(answer.status).toBe(403);
    expect(await answer.text()).toMatch(/^<!doctype html>/);
  });

  it('strikes only its endpoint', async () => {
    sandbox.fault({ endpoint: 'login', kind: 'status', status: 500, body: 'oh' });
    expect(await status()).toBe(200);
    expect((await login(sandbox)).status).toBe(500);
  });

  it('strikes so many times, and every n-th request', async () => {
    sandbox.fault({ kind: 'status', status: 500, times: 2, every: 3 });
    const seen: number[] = [];
    for (let k = 0; k < 9; k++) seen.push(await status());
    expect(seen).toEqual([200, 200, 500, 200, 200, 500, 200, 200, 200]);
  });

  it('strikes by chance, the same for the same seed', async () => {
    const row = async (seed: number) => {
      await sandbox.close();
      sandbox = await startSandbox({ seed, records: { orders: 1 } });
      client = await connect(sandbox);
      sandbox.fault({ kind: 'status', status: 500, probability: 0.5 });
      const seen: number[] = [];
      for (let k = 0; k < 20; k++) seen.push(await status());
      return seen.join();
    };
    const first = await row(5);
    expect(first).toContain('200');
    expect(first).toContain('500');
    expect(await row(5)).toBe(first);
    expect(await row(6)).not.toBe(first);
  });

  it('drops the connection', async () => {
    sandbox.fault({ kind: 'drop', times: 1 });
    await expect(client.get('orders')).rejects.toThrow();
    expect(sandbox.truth.requests('orders')[0]).toMatchObject({ status: 0 });
    expect(await status()).toBe(200);
  });

  it('cuts the answer off in the middle', async () => {
    sandbox.fault({ kind: 'truncate', times: 1 });
    const answer = await client.get('orders');
    expect(answer.status).toBe(200);
    await expect(answer.text()).rejects.toThrow();
    expect(await status()).toBe(200);
  });

  it('stalls in the middle of the answer', async () => {
    sandbox.fault({ kind: 'stall', times: 1 });
    const answer = await client.get('orders');
    const reader = answer.body!.getReader();
    expect((await reader.read()).done).toBe(false);
    const outcome = (async () => {
      while (!(await reader.read()).done);
    })();
    await sandbox.close(); // only this ends it
    await expect(outcome).rejects.toThrow();
  });

  it('answers slowly, with what is old by then', async () => {
    sandbox.fault({ kind: 'slow', ms: 60, times: 1 });
    const before = performance.now();
    const answer = client.page('orders', { orderNumber: 100_001 });
    while (sandbox.truth.requests('orders').length === 0) await new Promise(setImmediate);
    await client.page('customers'); // a round trip: the slow one has read its record by now
    sandbox.change('orders', 100_001, { notes: 'meanwhile' });
    expect((await answer).data[0]!.notes).not.toBe('meanwhile');
    expect(performance.now() - before).toBeGreaterThan(55);
  });

  it('answers with a page of HTML', async () => {
    sandbox.fault({ kind: 'garbage', times: 1 });
    const answer = await client.get('orders');
    expect(answer.status).toBe(200);
    expect(await answer.text()).toContain('<!doctype html>');
  });
});

describe('a page with repeated records', () => {
  const keys = (data: readonly JsonObject[]) => data.map(({ order_number }) => order_number);

  it('has so many of them twice, the same bytes, and its pagination is silent about it', async () => {
    const query = { offset: 10, pageSize: 20 };
    const text = '{"order_number": 100015, "total_price": 12.300000000000000001}';
    sandbox.replaceText('orders', 100_015, text);
    const before = await client.page('orders', query);
    sandbox.fault({ kind: 'repeat', records: 3, times: 1 });
    const after = await client.page('orders', query);
    expect(after.pagination).toEqual(before.pagination);
    expect(after.data).toHaveLength(23);
    const texts = after.data.map((record) => JSON.stringify(record));
    const once = after.data.filter((_, k) => texts[k] !== texts[k - 1]);
    expect(once).toEqual(before.data); // each copy behind its original
    expect(await client.page('orders', query)).toEqual(before);

    sandbox.fault({ kind: 'repeat', records: 99, times: 1 });
    const body = await (await client.get('orders', query)).text();
    expect(body).toContain(`,${text},${text},`);
    expect(keys((JSON.parse(body) as Page).data)).toHaveLength(40);
  });

  it('or with other content, of which the truth knows nothing', async () => {
    const before = await client.page('orders');
    sandbox.fault({ kind: 'repeat', patch: { notes: 'twin' }, times: 1 });
    sandbox.fault({
      kind: 'repeat',
      records: 2,
      patch: (record) => void (record.total_price = `${record.total_price as number}!`),
    });
    const [one, two] = [await client.page('orders'), await client.page('orders')];
    expect(one.pagination).toEqual(before.pagination);
    const twin = one.data.findIndex(({ notes }) => notes === 'twin');
    expect(one.data[twin]).toEqual({ ...one.data[twin - 1], notes: 'twin' });
    expect(one.data.filter((_, k) => k !== twin)).toEqual(before.data);
    expect(two.data.filter(({ total_price }) => typeof total_price === 'number')).toEqual(
      before.data,
    );
    expect(two.data).toHaveLength(52);
    expect([...sandbox.truth.records('orders')]).toEqual(before.data);
    expect(sandbox.truth.changes).toEqual([]);
  });

  it('is the same for the same seed', async () => {
    const repeated = async (seed: number) => {
      await sandbox.close();
      sandbox = await startSandbox({ seed, records: { orders: 50 } });
      client = await connect(sandbox);
      sandbox.fault({ kind: 'repeat', records: 5 });
      const found = keys((await client.page('orders')).data);
      return found.filter((key, k) => key === found[k - 1]);
    };
    const first = await repeated(1);
    expect(await repeated(1)).toEqual(first);
    expect(await repeated(2)).not.toEqual(first);
  });
});

describe('an empty page', () => {
  it('has the pagination as it would be', async () => {
    const query = { offset: 10, pageSize: 20 };
    const { pagination } = await client.page('orders', query);
    sandbox.fault({ kind: 'empty', times: 1 });
    expect(await client.page('orders', query)).toEqual({ data: [], pagination });
    expect((await client.page('orders', query)).data).toHaveLength(20);
  });

  it('or that of an empty list', async () => {
    sandbox.fault({ kind: 'empty', pagination: 'empty' });
    const { data, pagination } = await client.page('orders', { pageSize: 20 });
    expect(data).toEqual([]);
    expect(pagination).toMatchObject({ total_records: 0, total_pages: 0, has_next_page: false });
    const one = await client.page('orders', { orderNumber: 100_001 });
    expect(one).toMatchObject({ data: [], pagination: { total_records: 0 } });
    expect(sandbox.truth.count('orders')).toBe(50);
  });
});

it('logins are not struck by what goes wrong with pages, and use none of it up', async () => {
  sandbox.fault({ kind: 'empty', times: 1 });
  expect((await login(sandbox)).status).toBe(200);
  expect((await client.page('orders')).data).toEqual([]);
  expect((await client.page('orders')).data).toHaveLength(50);
});

it('takes as long as it is told', async () => {
  sandbox.setLatency([40, 50]);
  const before = performance.now();
  expect(await status()).toBe(200);
  expect(performance.now() - before).toBeGreaterThan(38);
});

it('closes while answers are under way, and may be closed twice', async () => {
  sandbox.setLatency(10_000);
  const answer = client.get('orders');
  while (sandbox.truth.requests('orders').length === 0) await new Promise(setImmediate);
  const failed = expect(answer).rejects.toThrow();
  await sandbox.close();
  await sandbox.close();
  await failed;
});

describe('a cache in front of the API', () => {
  it('sends a page of before, with its age and the Date of then, for as long as it is kept', async () => {
    const clock = handClock();
    await sandbox.close();
    sandbox = await startSandbox({
      records: { orders: 1 },
      now: clock.now,
      tokenLifeMs: 3_600_000,
    });
    client = await connect(sandbox);
    sandbox.fault({ kind: 'cached', ms: 300_000 });
    const first = await client.get('orders');
    const text = await first.text();
    sandbox.setStatus(100_001, 'payment_status', 'refunded');
    clock.pass(120_500);
    const cached = await client.get('orders');
    expect(await cached.text()).toBe(text);
    expect(cached.headers.get('age')).toBe('120');
    expect(cached.headers.get('date')).toBe(first.headers.get('date'));
    expect(await (await client.get('orders', { pageSize: 5 })).text()).not.toBe(text);
    clock.pass(180_000);
    expect(await (await client.get('orders')).text()).not.toBe(text);
    expect((await login(sandbox)).status).toBe(200);
  });

  it('sends a page of before whose status is 203, too', async () => {
    await sandbox.close();
    sandbox = await startSandbox({ records: { orders: 1 }, readings: { success: 'other' } });
    client = await connect(sandbox);
    sandbox.fault({ kind: 'cached', ms: 300_000 });
    const first = await client.get('orders');
    const text = await first.text();
    sandbox.setStatus(100_001, 'payment_status', 'refunded');
    const cached = await client.get('orders');
    expect([first.status, cached.status]).toEqual([203, 203]);
    expect(await cached.text()).toBe(text);
  });
});

describe('a replica that lags', () => {
  it('answers every second request with the list as it was', async () => {
    const clock = handClock();
    await sandbox.close();
    sandbox = await startSandbox({ records: { orders: 1 }, now: clock.now, replicaLagMs: 3_000 });
    client = await connect(sandbox);
    const seen = async () =>
      (await client.page('orders')).data.map(({ order_number, notes }) => [order_number, notes]);
    sandbox.change('orders', 100_001, { notes: 'one' });
    clock.pass(3_000);
    sandbox.change('orders', 100_001, { notes: 'two' });
    const added = sandbox.create('orders', { notes: 'new' });
    const both = [
      [100_001, 'two'],
      [added, 'new'],
    ];
    expect([await seen(), await seen(), await seen()]).toEqual([both, [[100_001, 'one']], both]);
    clock.pass(3_000);
    sandbox.remove('orders', 100_001);
    expect([await seen(), await seen()]).toEqual([both, [[added, 'new']]]);
    clock.pass(3_000);
    expect([await seen(), await seen()]).toEqual([[[added, 'new']], [[added, 'new']]]);
  });
});
