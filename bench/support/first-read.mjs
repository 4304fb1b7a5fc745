// @ts-check
// An initial snapshot of all orders without a quota, as fast as it goes: what several rows are taken from.
import { setTimeout as delay } from 'node:timers/promises';
import { now } from './clock.mjs';
import { startReadingOrders } from './reading-orders.mjs';
import { firstReadDone } from './service.mjs';
import { metric } from './metrics.mjs';
import { plainRead } from './plain-read.mjs';

/** @typedef {import('./measure.mjs').Context} Context */

/**
 * @typedef {object} InitialSnapshot
 * @property {import('./reading-orders.mjs').Known} known What it has left.
 * @property {number} cpuMicros Of the service, a record.
 * @property {number} perSecond Records.
 * @property {number} lagMs p99 of the event loop's delay meanwhile.
 * @property {number} wireBytes An event, as Kafka has it.
 * @property {number} rawBytes An event's key and value.
 */

/** @param {Pick<Context, 'isShort' | 'orders'>} sizes */
export const firstReadOrders = ({ isShort, orders }) => orders ?? (isShort ? 60_000 : 100_000);

/** So many are read before anything is measured: until then the code is being compiled. */
const WARM_UP_ORDERS = 8_000;
/** How often it is asked how far it is: what it tells is a second old at most. */
const ASK_EVERY_MS = 1_050;

/**
 * From the time that the code is warm to the end. What it leaves behind stays until the run is over.
 *
 * @param {Context} context
 * @param {readonly string[]} [nodeFlags] Default none.
 * @param {boolean} [isNumbered] Whether they are read from numbered pages, by a description. Default from the sandbox.
 * @returns {Promise<InitialSnapshot>}
 */
export async function firstRead(context, nodeFlags = [], isNumbered = false) {
  const { scope } = context;
  const orders = firstReadOrders(context);
  const { known, service } = await startReadingOrders(context, scope, {
    orders,
    pollIntervalMs: 60_000,
    nodeFlags,
    isNumbered,
  });
  const begin = await warm(service, orders);
  const line = await service.logged(firstReadDone('orders'));
  const cpu = await service.cpu();
  const metrics = await service.metrics();
  await service.end();
  const records = orders - begin.read;
  const { events, wireBytes, rawBytes } = await plainRead(context, `${known.prefix}.orders`);
  if (events !== orders) throw new Error(`${events} events of ${orders} orders`);
  return {
    known,
    cpuMicros: ((cpu - begin.cpu) * 1e6) / records,
    perSecond: records / ((line.at - begin.at) / 1_000),
    lagMs: metric(metrics, 'nodejs_eventloop_lag_p99_seconds') * 1_000,
    wireBytes: wireBytes / events,
    rawBytes: rawBytes / events,
  };
}

/**
 * Waits until the code is. Asking also has the event loop's delays counted from then on.
 *
 * @param {import('./service.mjs').Service} service
 * @param {number} orders There are.
 */
async function warm(service, orders) {
  await service.logged(({ event }) => event === 'ready');
  for (;;) {
    const read = metric(await service.metrics(), 'cellarstream_first_read_records');
    const at = now();
    if (read >= orders)
      throw new Error('all was read before the code was warm: more orders, please');
    if (read >= WARM_UP_ORDERS) return { read, at, cpu: await service.cpu() };
    await delay(ASK_EVERY_MS);
  }
}
