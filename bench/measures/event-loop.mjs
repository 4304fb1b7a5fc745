// @ts-check
import { firstRead } from '../support/first-read.mjs';

/** Node measures from tick to tick of a timer of so many ms: what is over is the delay. */
const TICK_MS = 50;

/** @type {import('../support/measure.mjs').Measure} */
export const eventLoop = {
  name: 'event-loop',
  what: 'how long the event loop is kept, at full load',
  limit: '',
  form: 'short',
  figures: [{ name: 'p99', what: 'p99 of its delay', unit: 'ms', target: { atMost: 50 } }],
  run: async (context) => ({ p99: (await context.once(firstRead)).lagMs - TICK_MS }),
};
