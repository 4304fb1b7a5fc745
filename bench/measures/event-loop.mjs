// @ts-check
import { firstRead } from '../support/first-read.mjs';

/** @type {import('../support/measure.mjs').Measure} */
export const eventLoop = {
  name: 'event-loop',
  what: 'how long the event loop is kept, at full load',
  limit: '',
  isShort: true,
  figures: [
    // Node measures from tick to tick of a timer of 10 ms, which are in it.
    { name: 'p99', what: 'p99 of its delay', unit: 'ms', target: { atMost: 50 } },
  ],
  run: async (context) => ({ p99: (await context.once(firstRead)).lagMs }),
};
