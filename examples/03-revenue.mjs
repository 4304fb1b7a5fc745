// @ts-check
// Revenue by day and channel, live: a table of all orders, and sums that follow it.
//
//     npm run example:03         # with `npm start` in another terminal; in a pipe, a line for each new sum
//
// Counted is what is paid, less what was refunded. An order that is edited, refunded or deleted takes what
// it had brought in out of its sum before it adds what it brings in now.
import { auditTime, merge, skipUntil, tap } from 'rxjs';
import { table } from 'cellarstream/consume';
import { failed, kafka, registry, stop$, topics } from './connect.mjs';

/** @import { Order } from 'cellarstream/schemas' */
/** @typedef {{ readonly place: string, readonly amount: number }} Sale */

/** Of the API's four decimal places: whole numbers add up exactly. @param {number | null} price */
const tenThousandths = (price) => Math.round((price ?? 0) * 10_000);

/** What an order brings in: nothing before it is paid, nor when all is given back. @param {Order} order */
function amountOf({ payment_status, total_price, order_edit }) {
  if (payment_status !== 'paid' && payment_status !== 'partially_refunded') return 0;
  const refunds = (order_edit ?? []).map((edit) => tenThousandths(edit.custom_refund_amount));
  return refunds.reduce((rest, refund) => rest - refund, tenThousandths(total_price));
}

/** @param {Order} order @returns {Sale} */
function saleOf(order) {
  const { order_date, order_type } = order;
  const day = order_date === null ? 'no date' : new Date(order_date).toISOString().slice(0, 10);
  return { place: `${day}  ${(order_type ?? 'unknown').padEnd(10)}`, amount: amountOf(order) };
}

/** @type {Map<string, number>} */
const sums = new Map();
/** @type {Set<string>} */
const changed = new Set();

/** @param {Sale | undefined} sale @param {1 | -1} sign */
function add(sale, sign) {
  if (!sale?.amount) return;
  sums.set(sale.place, (sums.get(sale.place) ?? 0) + sign * sale.amount);
  changed.add(sale.place);
}

function print() {
  const isTerminal = process.stdout.isTTY;
  if (isTerminal) console.clear();
  const places = isTerminal ? [...sums.keys()].sort().slice(-20) : [...changed].sort();
  for (const place of places) {
    const amount = ((sums.get(place) ?? 0) / 10_000).toFixed(2);
    console.log(`${place} ${amount.padStart(12)}`);
  }
  changed.clear();
}

const sales = table({ kafka, registry, topic: topics.orders }, saleOf);
const moved$ = sales.changes$.pipe(
  tap(({ before, after }) => {
    add(before, -1);
    add(after, 1);
  }),
  skipUntil(sales.ready),
  auditTime(500), // at most two tables a second
);
merge(sales.ready, moved$).subscribe({ next: print, error: failed });
stop$.subscribe(() => sales.close());
