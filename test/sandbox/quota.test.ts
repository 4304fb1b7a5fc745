import { afterEach, describe, expect, it } from 'vitest';
import { startSandbox } from '../../src/sandbox/index.ts';
import type { Sandbox, SandboxOptions } from '../../src/sandbox/index.ts';
import { connect, handClock, login } from './client.ts';

let sandbox: Sandbox;
const clock = handClock();

async function start(options: SandboxOptions): Promise<Awaited<ReturnType<typeof connect>>> {
  sandbox = await startSandbox({ now: clock.now, records: { orders: 10 }, ...options });
  return connect(sandbox);
}

afterEach(() => sandbox.close());

/** Statuses of so many requests, one after another. */
async function statuses(count: number, request: () => Promise<Response>): Promise<number[]> {
  const found: number[] = [];
  for (let k = 0; k < count; k++) found.push((await request()).status);
  return found;
}

const ok = (count: number) => Array<number>(count).fill(200);

describe('the quota of lists', () => {
  it('is 100 in a minute for each list', async () => {
    const { get } = await start({});
    expect(await statuses(101, () => get('orders', { pageSize: 1 }))).toEqual([...ok(100), 429]);
    expect((await get('products')).status).toBe(200);
    expect(sandbox.truth.refused('orders')).toBe(1);
    expect(sandbox.truth.mostInAnyWindow('orders', 60_000)).toBe(101);
  });

  it('slides: a burst across the edge of a minute gains nothing', async () => {
    const { get } = await start({ quotaPerMinute: 4, windowMs: 1_000 });
    const orders = () => get('orders', { pageSize: 1 });
    expect(await statuses(1, orders)).toEqual([200]);
    clock.pass(900);
    expect(await statuses(3, orders)).toEqual(ok(3));
    clock.pass(99);
    expect(await statuses(1, orders)).toEqual([429]);
    clock.pass(1); // the first is a whole window old
    expect(await statuses(2, orders)).toEqual([200, 429]);
    clock.pass(900);
    expect(await statuses(4, orders)).toEqual([...ok(3), 429]);
  });

  it('counts pages that fail as well', async () => {
    await start({ quotaPerMinute: 2 });
    const orders = () => fetch(`${sandbox.url}/v1/orders`);
    expect(await statuses(3, orders)).toEqual([401, 401, 429]);
  });

  it('counts by arrival, not by answer', async () => {
    const { get } = await start({ quotaPerMinute: 2, latencyMs: 30 });
    const answers = await Promise.all([get('orders'), get('orders'), get('orders')]);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 429]);
  });

  it('can be one for all lists', async () => {
    const { get } = await start({ quotaPerMinute: 2, quotaScope: 'key' });
    const seen = [await get('orders'), await get('products'), await get('customers')];
    expect(seen.map(({ status }) => status)).toEqual([200, 200, 429]);
  });

  it('can count what it refused', async () => {
    const { get } = await start({
      quotaPerMinute: 1,
      windowMs: 100,
      readings: { refusedCount: true },
    });
    const orders = () => get('orders', { pageSize: 1 });
    expect(await statuses(1, orders)).toEqual([200]);
    for (let k = 0; k < 3; k++) {
      clock.pass(60);
      expect(await statuses(1, orders)).toEqual([429]);
    }
    clock.pass(100);
    expect(await statuses(1, orders)).toEqual([200]);
  });

  it('says when to come again where a refused request counts too', async () => {
    const { get } = await start({ quotaPerMinute: 2, readings: { refusedCount: true } });
    const orders = () => get('orders', { pageSize: 1 });
    await orders();
    clock.pass(10_000);
    await orders();
    clock.pass(10_000);
    expect((await orders()).headers.get('retry-after')).toBe('50');
    clock.pass(50_000);
    expect(await statuses(1, orders)).toEqual([200]);
  });

  it('says when to come again, unless told not to', async () => {
    const { get } = await start({ quotaPerMinute: 1 });
    await get('orders');
    clock.pass(18_500);
    expect((await get('orders')).headers.get('retry-after')).toBe('42');
    await sandbox.close();

    const rateLimited = { status: 503, retryAfter: false, body: 'html' } as const;
    const other = await start({ quotaPerMinute: 1, readings: { rateLimited } });
    await other.get('orders');
    const answer = await other.get('orders');
    expect(answer.status).toBe(503);
    expect(answer.headers.get('retry-after')).toBeNull();
    expect(await answer.text()).toContain('<h1>');
  });
});

it('allows 10 logins in a minute', async () => {
  await start({}); // the first
  expect(await statuses(10, () => login(sandbox))).toEqual([...ok(9), 429]);
  clock.pass(60_000);
  expect(await statuses(1, () => login(sandbox, 'wrong'))).toEqual([400]);
  expect(sandbox.truth.requests('login')).toHaveLength(12);
});

it('keeps arrivals with time, status and query', async () => {
  const { get } = await start({ requestLogLimit: 2 });
  await get('orders');
  await get('orders', { pageSize: 2_000 });
  await get('orders', { offset: 5 });
  expect(sandbox.truth.requests('orders')).toEqual([
    { at: clock.now(), status: 400, query: 'pageSize=2000' },
    { at: clock.now(), status: 200, query: 'offset=5' },
  ]);
});
