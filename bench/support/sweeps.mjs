// @ts-check
// What it costs to read a list again of which nothing has changed, or little.
import { metric } from './metrics.mjs';
import { WITHOUT_QUOTA } from './reading-orders.mjs';
import { UNLIMITED } from './sandbox.mjs';
import { withService } from './with-service.mjs';

/** Until the code is compiled: V8 takes a sixth of all CPU for that in the next eight behind two. */
const WARM_UP = 8;
/** From the beginning of a sweep to that of the next, ms: less than one takes; and so much more that changes are made between two. */
const WITHOUT_A_PAUSE_MS = 100;
const TIME_TO_CHANGE_MS = 3_000;
const PAGE = 1_000;
/** From sweep to sweep another order of each page changes. */
const STEP = 37;
/** Of the changes that were made behind a sweep: the first ones may come too late for the next, and the one behind it has them. */
const LEAST_SEEN = 0.8;

/** @typedef {import('./measure.mjs').Context} Context */
/** @typedef {import('./with-service.mjs').Running} Running */

/**
 * CPU of the service from the end of one complete reading to that of another, a record in µs.
 *
 * @param {Context} context
 * @param {'orders' | 'wine-club-members'} resource
 */
export async function sweepCost(context, resource) {
  const { cpuMicros } = await sweepsOf(context, resource, WITHOUT_A_PAUSE_MS);
  return cpuMicros;
}

/** The same of orders of which one in every page has changed since the reading before. @param {Context} context */
export async function changedSweepCost(context) {
  const change = (/** @type {Running} */ { sandbox }, /** @type {number} */ nth) =>
    sandbox.call('noteOneOf', PAGE, (nth * STEP) % PAGE, `sweep ${nth}`);
  const { cpuMicros, updates } = await sweepsOf(context, 'orders', TIME_TO_CHANGE_MS, change);
  context.keep('events for each page of a sweep', updates * PAGE);
  if (updates * PAGE < LEAST_SEEN) throw new Error(`only ${updates * PAGE} events for each page`);
  return cpuMicros;
}

/**
 * @param {Context} context
 * @param {'orders' | 'wine-club-members'} resource
 * @param {number} intervalMs From the beginning of a sweep to that of the next.
 * @param {(running: Running, nth: number) => Promise<void>} [between] What is done at the end of each sweep. Default nothing.
 * @returns {Promise<{ readonly cpuMicros: number, readonly updates: number }>} of a record; `updates`: events of changes.
 */
async function sweepsOf(context, resource, intervalMs, between = () => Promise.resolve()) {
  const records = context.isShort ? 10_000 : 30_000;
  const [warmUp, sweeps] = context.isShort ? [2, 2] : [WARM_UP, 8];
  context.tell(`${resource}, ${records} of them, read whole ${warmUp + sweeps} times`);
  const options = {
    sandbox: { records: { [resource]: records }, ...UNLIMITED },
    settings: {
      ...WITHOUT_QUOTA,
      RESOURCES: resource,
      // Lists without polls are swept as often as they would be polled.
      POLL_INTERVAL_MS: resource === 'orders' ? '600000' : '100',
      SWEEP_INTERVAL_MS: String(intervalMs),
      LOG_LEVEL: 'debug', // tells the end of each
    },
  };
  return withService(context, options, async (running) => {
    const { service } = running;
    const isSwept = (/** @type {import('./service.mjs').Line} */ { event }) => event === 'swept';
    /** From the end of so many sweeps to that of so many. @param {number} from @param {number} to */
    const swept = async (from, to) => {
      for (let nth = from; nth < to; nth++) {
        await service.logged(() => service.lines().filter(isSwept).length > nth);
        await between(running, nth);
      }
      const cpu = await service.cpu();
      const metrics = await service.metrics();
      return { cpu, updates: metric(metrics, 'cellarstream_events_published_total', { op: 'u' }) };
    };
    const begin = await swept(0, warmUp);
    const end = await swept(warmUp, warmUp + sweeps);
    const read = sweeps * records;
    return {
      cpuMicros: ((end.cpu - begin.cpu) * 1e6) / read,
      updates: (end.updates - begin.updates) / read,
    };
  });
}
