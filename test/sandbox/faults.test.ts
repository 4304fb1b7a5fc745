import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startSandbox } from '../../src/sandbox/index.ts';
import type { Sandbox } from '../../src/sandbox/index.ts';
import { connect, login } from './client.ts';

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
