// @ts-check
// A service that knows many orders, made once a run: for the rows that begin there.
import { setTimeout as delay } from 'node:timers/promises';
import { metric } from './metrics.mjs';
import { startReadingOrders } from './reading-orders.mjs';
import { firstReadDone } from './service.mjs';

/** @typedef {import('./measure.mjs').Context} Context */

/** @typedef {import('./reading-orders.mjs').Known} Known */

/**
 * @typedef {object} Costs
 * @property {number} peakBytes Most memory that no file stands behind, of the service, from the time that four
 * fifths were read to some seconds after the end; NaN where the system does not tell.
 * @property {number} cpuSeconds Of the service, up to the end of the initial snapshot.
 */

const SAMPLE_EVERY_MS = 500;
const LAST_PART = 0.8;
const AFTER_MS = 10_000;
/** Arrivals that are remembered: the first polls are looked for among them. */
const REQUESTS = 10_000;

/**
 * Reads so many orders for the first time, and stops.
 *
 * @param {Context} context
 * @param {import('./scope.mjs').Scope} scope Ends the sandbox and removes topics and folder.
 * @param {number} orders
 * @returns {Promise<Known & Costs>}
 */
async function knownOrders(context, scope, orders) {
  const { known, service } = await startReadingOrders(context, scope, {
    orders,
    pollIntervalMs: 1_000,
    requestLogLimit: REQUESTS,
  });
  let isMeasured = false;
  let peakBytes = NaN;
  const sampling = setInterval(() => {
    const bytes = isMeasured ? service.memory() : undefined;
    if (bytes !== undefined) peakBytes = Math.max(bytes, peakBytes || 0);
  }, SAMPLE_EVERY_MS);
  const end = scope.add(() => clearInterval(sampling));
  let isDone = false;
  const done = service.logged(firstReadDone('orders')).then(() => (isDone = true));
  while (!isMeasured && !isDone) {
    await Promise.race([done, delay(2_000)]);
    isMeasured =
      metric(await service.metrics(), 'cellarstream_first_read_records') >= LAST_PART * orders;
  }
  await done;
  isMeasured = true; // a short one may have been over before it was asked
  const cpuSeconds = await service.cpu();
  await delay(AFTER_MS);
  await end();
  await service.end();
  return { ...known, peakBytes, cpuSeconds };
}

/** What stands for a million. @param {Pick<Context, 'orders'>} sizes */
export const aMillion = ({ orders }) => orders ?? 1_000_000;

/** @param {Context} context */
export const knowAMillion = (context) => knownOrders(context, context.scope, aMillion(context));

/** @param {Context} context @returns {Promise<Costs>} */
const costsOfFiveMillion = (context) => costsAlone(context, 5 * aMillion(context));

/**
 * What it costs to read so many orders; of a million and of five, that is found out once a run.
 *
 * @param {Context} context
 * @param {number} orders
 * @returns {Promise<Costs>}
 */
export function costsOf(context, orders) {
  if (orders === aMillion(context)) return context.once(knowAMillion);
  if (orders === 5 * aMillion(context)) return context.once(costsOfFiveMillion);
  return costsAlone(context, orders);
}

/** Leaves nothing behind. @param {Context} context @param {number} orders @returns {Promise<Costs>} */
async function costsAlone(context, orders) {
  const scope = context.scope.inner();
  try {
    const { peakBytes, cpuSeconds } = await knownOrders(context, scope, orders);
    return { peakBytes, cpuSeconds };
  } finally {
    await scope.close();
  }
}
