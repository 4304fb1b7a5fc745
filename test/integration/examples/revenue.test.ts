import { expect, it } from 'vitest';
import type { JsonObject, Sandbox } from '../../../src/sandbox/index.ts';
import { cliForTest, folderForTest, sandboxForTest, settings } from '../support/service.ts';
import { runExample } from './run-example.ts';

const PREFIX = 'example-03';

it('shows what the orders of each day and channel have brought in, to the cent', async () => {
  const sandbox = await sandboxForTest({ records: { orders: 150 } });
  const service = cliForTest(['run'], {
    ...settings(sandbox, PREFIX, folderForTest()),
    POLL_INTERVAL_MS: '100',
    SWEEP_INTERVAL_MS: '200',
  });
  await service.logged(({ event }) => event === 'first-read');

  const revenue = runExample('03-revenue.mjs', PREFIX);
  const isTrue = (lines: readonly string[]) => same(sums(lines), truth(sandbox));
  await revenue.until(isTrue);
  const filled = revenue.lines.length;

  const [full, part, gone, dear] = paid(sandbox);
  sandbox.setStatus(full!.order_number, 'payment_status', 'refunded');
  sandbox.change('orders', part!.order_number, {
    payment_status: 'partially_refunded',
    order_edit: [{ custom_refund_amount: 1.1 }, { custom_refund_amount: 0.25 }, {}],
  });
  sandbox.remove('orders', gone!.order_number);
  sandbox.change('orders', dear!.order_number, { total_price: 1_234.56, order_type: 'Phone' });
  sandbox.changeSome(100);
  await revenue.until(isTrue);
  expect(revenue.lines.length).toBeGreaterThan(filled);
  expect(revenue.lines.length - filled).toBeLessThan(filled); // only sums that are new

  expect(await revenue.end('SIGTERM')).toBe(0);
});

type Order = {
  readonly order_number: number;
  readonly order_date: string;
  readonly order_type: string;
  readonly payment_status: string;
  readonly total_price: number;
  readonly order_edit?: JsonObject[];
};

const orders = (sandbox: Sandbox) => [...sandbox.truth.records('orders')] as Order[];

const paid = (sandbox: Sandbox) =>
  orders(sandbox).filter(({ payment_status }) => payment_status === 'paid');

/** Cents by `day channel`; sums of nothing left out. */
function truth(sandbox: Sandbox): Map<string, number> {
  const found = new Map<string, number>();
  for (const order of orders(sandbox)) {
    const { order_date, order_type, payment_status, total_price, order_edit = [] } = order;
    const refunded = order_edit.map((edit) => Number(edit.custom_refund_amount ?? 0));
    const share = new Map([
      ['paid', total_price],
      ['partially_refunded', refunded.reduce((rest, refund) => rest - refund, total_price)],
    ]);
    const place = `${order_date.slice(0, 10)} ${order_type}`;
    const cents = Math.round((share.get(payment_status) ?? 0) * 100);
    found.set(place, (found.get(place) ?? 0) + cents);
  }
  return withoutZeros(found);
}

/** The newest sum of each day and channel, in cents. */
function sums(lines: readonly string[]): Map<string, number> {
  const found = new Map<string, number>();
  for (const line of lines) {
    const [, day, channel, amount] = /^(\S+) +(.+?) +(-?[\d.]+)$/.exec(line)!;
    found.set(`${day!} ${channel!}`, Math.round(Number(amount) * 100));
  }
  return withoutZeros(found);
}

const withoutZeros = (found: Map<string, number>) =>
  new Map([...found].filter(([, cents]) => cents !== 0));

const same = (one: Map<string, number>, other: Map<string, number>) =>
  one.size > 0 &&
  one.size === other.size &&
  [...one].every(([place, cents]) => other.get(place) === cents);
