// @ts-check
// Points of the curves of growth: what the service costs as one thing grows and all else stays.
import { setTimeout as delay } from 'node:timers/promises';
import { WITHOUT_QUOTA } from './first-read.mjs';
import { knownOrders } from './known-orders.mjs';
import { startSandbox } from './sandbox.mjs';
import { startService, stateFolder } from './service.mjs';
import { deleteTopics } from './topics.mjs';

/** @typedef {import('./measure.mjs').Context} Context */
/** @typedef {{ readonly x: number, readonly cpu: number, readonly memory: number }} Point `memory`: RssAnon, MB. */

const MIB = 2 ** 20;
const RESOURCES = ['orders', 'customers', 'inventory', 'wine-club-members', 'products', 'wine-clubs']; // prettier-ignore
/** Of each list where their number grows, so that they are alike. */
const RECORDS = 20_000;
const SETTLED_MS = 20_000;
const CHANGES_MS = 60_000;
/** Orders where their changes grow. */
const ORDERS = 20_000;

/**
 * CPU seconds of a first read, by records.
 *
 * @param {Context} context
 * @param {number} records
 * @returns {Promise<Point>}
 */
export async function byRecords(context, records) {
  const scope = context.scope.inner();
  try {
    const { cpuSeconds, peakBytes } = await knownOrders(context, scope, records);
    return { x: records, cpu: cpuSeconds, memory: peakBytes / MIB };
  } finally {
    await scope.close();
  }
}

/**
 * CPU seconds of the first reads of several lists of the same length, by how many they are.
 *
 * @param {Context} context
 * @param {number} count
 * @returns {Promise<Point>}
 */
export async function byResources(context, count) {
  const resources = RESOURCES.slice(0, count);
  context.tell(`first reads of ${count} lists of ${RECORDS} records`);
  const records = Object.fromEntries(resources.map((name) => [name, RECORDS]));
  return watched(
    context,
    { records },
    { ...WITHOUT_QUOTA, RESOURCES: resources.join(), POLL_INTERVAL_MS: '60000' },
    async (service) => {
      // prettier-ignore
      const isDone = (/** @type {import('./service.mjs').Line} */ line) =>
      line.event === 'first-read' && line.done === true;
      await service.logged(() => service.lines().filter(isDone).length >= count);
      return { x: count, cpu: await service.cpu(), memory: (service.memory() ?? NaN) / MIB };
    },
  );
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
  return watched(
    context,
    { records: { orders: ORDERS }, quotaPerMinute: 100 },
    {},
    async (service, sandbox) => {
      // prettier-ignore
      await service.logged((line) => line.event === 'first-read' && line.resource === 'orders' && line.done === true); // prettier-ignore
      await sandbox.call('setRate', perSecond);
      await delay(SETTLED_MS);
      const before = await service.cpu();
      await delay(CHANGES_MS);
      const cpu = (await service.cpu()) - before;
      return { x: perSecond, cpu, memory: (service.memory() ?? NaN) / MIB };
    },
  );
}

/**
 * @template T
 * @param {Context} context
 * @param {Parameters<typeof startSandbox>[1]} options
 * @param {Readonly<Record<string, string>>} settings
 * @param {(service: import('./service.mjs').Service, sandbox: import('./sandbox.mjs').Sandbox) => Promise<T>} work
 */
async function watched(context, options, settings, work) {
  const scope = context.scope.inner();
  const prefix = context.prefix();
  try {
    const quota = { quotaPerMinute: Number(WITHOUT_QUOTA.QUOTA_PER_MINUTE), loginQuotaPerMinute: 1_000 }; // prettier-ignore
    const sandbox = await startSandbox(scope, { ...quota, ...options });
    const state = stateFolder(scope);
    const service = await startService(context, scope, { sandbox, prefix, state, settings });
    return await work(service, sandbox);
  } finally {
    await scope.close();
    await deleteTopics(context, prefix);
  }
}
