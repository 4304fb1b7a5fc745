// @ts-check
import { setTimeout as delay } from 'node:timers/promises';
import { isAnswered, isPoll, maxInAMinute, pace, refused } from '../support/requests.mjs';
import { firstReadDone } from '../support/service.mjs';
import { withService } from '../support/with-service.mjs';

const LATENCIES_MS = [50, 600, 2_000, 5_000];
const MINUTE_MS = 60_000;
const QUOTA = 100;
const MINUTES = 2;
/** For what does not use all of the quota: it takes longer to come to as many requests. */
const SPARE_MS = 15_000;
/** The quota is full at the start, and soon it is not: what is measured is the pace that lasts. */
const SETTLED_MS = 65_000;
const READ_MS = SETTLED_MS + MINUTES * MINUTE_MS + SPARE_MS;
/** Small: the pages of four services at once are not to keep the processors busy. */
const PAGE_SIZE = 100;
/** More than any of them can read meanwhile. */
const ORDERS = 100_000;

/** @typedef {import('../support/measure.mjs').Context} Context */
/** @typedef {{ readonly used: number, readonly most: number, readonly refused: number }} Use */

/**
 * One initial snapshot: requests a minute that were answered, in percent of the quota; the most in any minute; and those over the
 * quota.
 *
 * @param {Context} context
 * @param {number} latencyMs
 * @returns {Promise<Use>}
 */
async function firstReadAt(context, latencyMs) {
  const options = {
    sandbox: { records: { orders: ORDERS }, latencyMs },
    settings: { RESOURCES: 'orders', PAGE_SIZE: String(PAGE_SIZE) },
  };
  return withService(context, options, async ({ sandbox, service }) => {
    await service.logged(({ event }) => event === 'ready');
    await delay(READ_MS);
    const requests = await sandbox.call('requests', 'orders', 0);
    if (service.lines().some(firstReadDone('orders')))
      throw new Error('the initial snapshot is over');
    const from = (requests[0]?.at ?? NaN) + SETTLED_MS;
    const used = pace(requests.filter(isAnswered), from, MINUTES * QUOTA);
    if (Number.isNaN(used)) throw new Error(`too few requests at ${latencyMs} ms`);
    const within = requests.filter(({ at }) => at >= from);
    const ofTheRead = within.filter((request) => !isPoll(request)).length / within.length;
    context.keep(`quota at ${latencyMs} ms`, {
      perMinute: used,
      firstReadPerMinute: used * ofTheRead,
    });
    return {
      used,
      most: maxInAMinute(requests),
      refused: refused(requests),
    };
  });
}

/** @type {import('../support/measure.mjs').Measure} */
export const quota = {
  name: 'quota',
  what: 'quota used during an initial snapshot, by how long answers take',
  limit: '100 pages a minute',
  form: 'full',
  figures: [
    ...LATENCIES_MS.map((ms) => ({
      name: `used-${ms}`,
      what: `used at ${ms} ms`,
      unit: '%',
      digits: 1,
      target: { atLeast: 97 },
    })),
    {
      name: 'most',
      what: 'requests in any 60 s, at most',
      unit: '',
      target: { atMost: 100 },
      isPromise: true,
    },
    { name: 'refused', what: 'answers 429', unit: '', target: { atMost: 0 }, isPromise: true },
  ],
  run: async (context) => {
    context.tell(`four initial snapshots at once, for ${READ_MS / 1_000} s`);
    const uses = await Promise.all(LATENCIES_MS.map((ms) => firstReadAt(context, ms)));
    return {
      ...Object.fromEntries(LATENCIES_MS.map((ms, nth) => [`used-${ms}`, uses[nth]?.used ?? NaN])),
      most: Math.max(...uses.map(({ most }) => most)),
      refused: uses.reduce((sum, use) => sum + use.refused, 0),
    };
  },
};
