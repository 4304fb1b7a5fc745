// @ts-check
import { firstRead } from '../support/first-read.mjs';
import { newRecordLimit } from '../support/limits.mjs';

/** @type {import('../support/measure.mjs').Measure} */
export const throughput = {
  name: 'throughput',
  what: 'records a second end to end without a quota, one process',
  limit: 'the same three, one after the other: their time added',
  form: 'short',
  figures: [
    { name: 'percent', what: 'of the limit', unit: '%', target: { atLeast: 100 } },
    { name: 'rate', what: 'records a second', unit: '' },
    { name: 'limit', what: 'the limit', unit: '' },
  ],
  run: async (context) => {
    const limit = 1e6 / (await newRecordLimit(context)).wallMicros;
    const { perSecond } = await context.once(firstRead);
    return { percent: (100 * perSecond) / limit, rate: perSecond, limit };
  },
};
