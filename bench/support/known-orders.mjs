// @ts-check
// A service that knows many orders, made once a run: for the rows that begin there.
import { setTimeout as delay } from 'node:timers/promises';
import { WITHOUT_QUOTA } from './first-read.mjs';
import { metric } from './metrics.mjs';
import { NO_QUOTA, startSandbox } from './sandbox.mjs';
import { firstReadDone, startService, stateFolder } from './service.mjs';
import { deleteTopics } from './topics.mjs';

/** @typedef {import('./measure.mjs').Context} Context */

/**
 * @typedef {object} Known What is left of a service that was stopped.
 * @property {import('./sandbox.mjs').Sandbox} sandbox That still has the orders; its latency is 0, its quota none.
 * @property {string} prefix Of the topics they are in.
 * @property {string} state The folder with their images.
 * @property {Readonly<Record<string, string>>} settings As it ran.
 */

/**
 * @typedef {object} Costs
 * @property {number} peakBytes Most memory that no file stands behind, of the service, from the time that four
 * fifths were read to some seconds after the end; NaN where the system does not tell.
 * @property {number} cpuSeconds Of the service, up to the end of the first read.
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
export async function knownOrders(context, scope, orders) {
  context.tell(`a first read of ${orders} orders`);
  const prefix = context.prefix();
  scope.add(() => deleteTopics(context, prefix));
  const state = stateFolder(scope);
  const sandbox = await startSandbox(scope, {
    records: { orders },
    quotaPerMinute: NO_QUOTA,
    loginQuotaPerMinute: NO_QUOTA,
    requestLogLimit: REQUESTS,
  });
  const settings = { ...WITHOUT_QUOTA, RESOURCES: 'orders', POLL_INTERVAL_MS: '1000' };
  const service = await startService(context, scope, { sandbox, prefix, state, settings });
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
    isMeasured = metric(await service.metrics(), 'cellarstream_first_read_records') >= LAST_PART * orders; // prettier-ignore
  }
  await done;
  isMeasured = true; // a short one may have been over before it was asked
  const cpuSeconds = await service.cpu();
  await delay(AFTER_MS);
  await end();
  await service.end();
  return { sandbox, prefix, state, settings, peakBytes, cpuSeconds };
}

/** What stands for a million. @param {Pick<Context, 'orders'>} sizes */
export const aMillion = ({ orders }) => orders ?? 1_000_000;

/** @param {Context} context */
export const knowAMillion = (context) => knownOrders(context, context.scope, aMillion(context));
