// @ts-check
// How long a status change takes from the API to a reader of Kafka, one at a time at random moments.
import { setTimeout as delay } from 'node:timers/promises';
import { isPoll, perMinute } from './requests.mjs';
import { percentile } from './statistics.mjs';
import { readStatusChanges } from './status-reader.mjs';

/** Between two changes, on the average. */
const MEAN_MS = 1_000;
/** What is not seen by then after the last change is lost. */
const PATIENCE_MS = 60_000;
/** Has no common divisor with the number of orders: no order comes twice. */
const STRIDE = 7_919;
const FIRST_ORDER = 100_001;
const MINUTE_MS = 60_000;

/**
 * @typedef {object} Freshness
 * @property {number} p50 ms.
 * @property {number} p99 ms.
 * @property {number} pollsPerMinute Requests of the list of orders that look for what is new, in whole minutes.
 * @property {number} othersPerMinute Those that read it whole.
 */

/**
 * @param {import('./measure.mjs').Context} context
 * @param {object} of
 * @param {import('./scope.mjs').Scope} of.scope
 * @param {import('./sandbox.mjs').Sandbox} of.sandbox
 * @param {string} of.prefix
 * @param {number} of.orders Known ones, the first of the list: not a multiple of 7,919.
 * @param {number} of.samples Fewer than orders.
 * @returns {Promise<Freshness>}
 */
export async function freshness(context, { scope, sandbox, prefix, orders, samples }) {
  /** @type {Map<string, number>} */
  const seen = new Map();
  let told = () => undefined;
  await readStatusChanges(context, scope, prefix, ({ to, at }) => {
    if (to === null || seen.has(to)) return;
    seen.set(to, at);
    told();
  });
  /** @type {Map<string, number>} */
  const changed = new Map();
  let began = 0;
  let ended = 0;
  for (let nth = 0; nth < samples; nth++) {
    const order = FIRST_ORDER + ((nth * STRIDE) % orders);
    const value = `seen-${nth}`;
    ended = await sandbox.call('setStatus', order, 'payment_status', value);
    began ||= ended;
    changed.set(value, ended);
    // Exponential: no rhythm of the service's own can fall in with it.
    await delay(-Math.log(1 - Math.random()) * MEAN_MS);
  }
  await new Promise((resolve, reject) => {
    const check = () => void (seen.size === samples && resolve(undefined));
    told = () => void check();
    setTimeout(
      () => reject(new Error(`${samples - seen.size} of ${samples} changes are not seen`)),
      PATIENCE_MS,
    ).unref();
    check();
  });
  const delays = [...changed].map(([value, at]) => (seen.get(value) ?? NaN) - at);
  // A quota that was used at one go comes back at one go: a part of a minute may hold most of it, or none.
  const minutes = Math.max(1, Math.floor((ended - began) / MINUTE_MS));
  const until = began + minutes * MINUTE_MS;
  const requests = (await sandbox.call('requests', 'orders', began)).filter(({ at }) => at < until);
  const ofMinutes = (/** @type {typeof requests} */ some) => perMinute(some, minutes * MINUTE_MS);
  return {
    p50: percentile(delays, 50),
    p99: percentile(delays, 99),
    pollsPerMinute: ofMinutes(requests.filter(isPoll)),
    othersPerMinute: ofMinutes(requests.filter((request) => !isPoll(request))),
  };
}
