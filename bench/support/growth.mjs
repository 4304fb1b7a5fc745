// @ts-check
// Points of the curves of growth: what the service costs as one thing grows and all else stays.
import { setTimeout as delay } from 'node:timers/promises';
import { costsOf } from './known-orders.mjs';
import { WITHOUT_QUOTA } from './reading-orders.mjs';
import { UNLIMITED } from './sandbox.mjs';
import { firstReadDone } from './service.mjs';
import { withService } from './with-service.mjs';

/** @typedef {import('./measure.mjs').Context} Context */
/** @typedef {{ readonly x: number, readonly cpu: number, readonly memory: number }} Point `memory`: RssAnon, MB. */

const MIB = 2 ** 20;
const RESOURCES = [
  'orders',
  'customers',
  'inventory',
  'wine-club-members',
  'products',
  'wine-clubs',
];
/** Of each list where their number grows. The longest records come first: each of the others costs less. */
const RECORDS = 20_000;
const SETTLED_MS = 20_000;
const CHANGES_MS = 60_000;
/** Orders where their changes grow. */
const ORDERS = 20_000;

/**
 * CPU seconds of an initial snapshot, by records.
 *
 * @param {Context} context
 * @param {number} records
 * @returns {Promise<Point>}
 */
export async function byRecords(context, records) {
  const { cpuSeconds, peakBytes } = await costsOf(context, records);
  return { x: records, cpu: cpuSeconds, memory: peakBytes / MIB };
}

/**
 * CPU seconds of the initial snapshots of several lists of the same length, by how many they are.
 *
 * @param {Context} context
 * @param {number} count
 * @returns {Promise<Point>}
 */
export async function byResources(context, count) {
  const resources = RESOURCES.slice(0, count);
  context.tell(`initial snapshots of ${count} lists of ${RECORDS} records`);
  const options = {
    sandbox: {
      records: Object.fromEntries(resources.map((name) => [name, RECORDS])),
      ...UNLIMITED,
    },
    settings: { ...WITHOUT_QUOTA, RESOURCES: resources.join(), POLL_INTERVAL_MS: '60000' },
  };
  return withService(context, options, async ({ service }) => {
    const isDone = (/** @type {import('./service.mjs').Line} */ { event, done }) =>
      event === 'first-read' && done === true;
    await service.logged(() => service.lines().filter(isDone).length >= count);
    return { x: count, cpu: await service.cpu(), memory: (service.memory() ?? NaN) / MIB };
  });
}

/**
 * CPU seconds of a minute in which so much changes, at the true quota.
 *
 * @param {Context} context
 * @param {number} perSecond
 * @returns {Promise<Point>}
 */
export async function byChanges(context, perSecond) {
  context.tell(`${perSecond} changes a second`);
  const options = { sandbox: { records: { orders: ORDERS } } };
  return withService(context, options, async ({ service, sandbox }) => {
    await service.logged(firstReadDone('orders'));
    await sandbox.call('setRate', perSecond);
    await delay(SETTLED_MS);
    const before = await service.cpu();
    await delay(CHANGES_MS);
    const cpu = (await service.cpu()) - before;
    return { x: perSecond, cpu, memory: (service.memory() ?? NaN) / MIB };
  });
}
