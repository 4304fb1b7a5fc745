import { afterEach, expect, it } from 'vitest';
import { startSandbox } from '../../src/sandbox/index.ts';
import type { JsonObject, Sandbox, SandboxOptions, Sort } from '../../src/sandbox/index.ts';
import { connect, handClock, readAll } from './client.ts';

let sandbox: Sandbox;
afterEach(() => sandbox.close());

async function start(options: SandboxOptions = {}) {
  sandbox = await startSandbox({ now: handClock().now, quotaPerMinute: 1_000, ...options });
  return connect(sandbox);
}

const numbers = (orders: readonly JsonObject[]) => orders.map((order) => order.order_number);

it.each<Sort>(['key-asc', 'key-desc', 'updated-asc', 'updated-desc'])(
  '%s: a list hides a share of its records as if they were gone, until it is lifted',
  async (sort) => {
    const { page } = await start({ sort });
    const before = await readAll(page, 'orders', 90);
    const truth = [...sandbox.truth.records('orders')];
    const show = sandbox.hide('orders', 0.3);

    const after = await readAll(page, 'orders', 90);
    const shown = new Set(numbers(after));
    expect(after).toEqual(before.filter((order) => shown.has(order.order_number)));
    expect(shown.size).toBeGreaterThan(640);
    expect(shown.size).toBeLessThan(760);
    const { pagination } = await page('orders', { offset: 90, pageSize: 90 });
    expect(pagination).toMatchObject({
      total_records: shown.size,
      total_pages: Math.ceil(shown.size / 90),
    });

    const modifiedFromDate = before[400]!.updated_at as string;
    const inWindow = await page('orders', { modifiedFromDate });
    expect(numbers(inWindow.data)).toEqual(
      numbers(after.filter((order) => (order.updated_at as string) >= modifiedFromDate)),
    );
    expect(inWindow.pagination.total_records).toBe(inWindow.data.length);

    for (const { order_number } of before.slice(0, 30)) {
      const one = await page('orders', { orderNumber: order_number as number });
      expect(one.data).toHaveLength(shown.has(order_number) ? 1 : 0);
      expect(one.pagination.total_records).toBe(one.data.length);
    }
    expect([...sandbox.truth.records('orders')]).toEqual(truth);
    expect(sandbox.truth.count('orders')).toBe(1_000);
    expect((await page('customers')).data).toHaveLength(500);

    show();
    expect(await readAll(page, 'orders', 90)).toEqual(before);
  },
);

it('a larger share hides more, all hides all; each is lifted by itself', async () => {
  const { page } = await start({ records: { inventory: 200 } });
  const shown = async () => (await page('inventory')).data.map(({ sku }) => sku);
  const lifts = [sandbox.hide('inventory', 0.2)];
  const most = await shown();
  lifts.push(sandbox.hide('inventory', 0.6));
  const few = await shown();
  expect(few.length).toBeLessThan(most.length);
  expect(most).toEqual(expect.arrayContaining(few));
  lifts.push(sandbox.hide('inventory', 1));
  expect(await page('inventory')).toMatchObject({ data: [], pagination: { total_records: 0 } });
  lifts[2]!();
  expect(await shown()).toEqual(few);
  lifts[1]!();
  lifts[1]!();
  expect(await shown()).toEqual(most);
  lifts[0]!();
  expect(await shown()).toHaveLength(200);
  for (const share of [-0.1, 1.1, NaN]) {
    expect(() => sandbox.hide('inventory', share)).toThrow(RangeError);
  }
});

it('hides the same for the same seed', async () => {
  const hidden = async (seed: number) => {
    const { page } = await start({ seed });
    sandbox.hide('products', 0.5);
    const { data } = await page('products');
    await sandbox.close();
    return data.map(({ id }) => id);
  };
  const first = await hidden(1);
  expect(await hidden(1)).toEqual(first);
  expect(await hidden(2)).not.toEqual(first);
});
