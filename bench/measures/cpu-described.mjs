// @ts-check
import { firstRead } from '../support/first-read.mjs';

/** @typedef {import('../support/measure.mjs').Context} Context */

/** @param {Context} context */
const numbered = (context) => firstRead(context, [], true);

/** @type {import('../support/measure.mjs').Measure} */
export const cpuDescribed = {
  name: 'cpu-described',
  what: 'CPU per record, new records of an API with numbered pages and no schema',
  limit: 'the same records through the built-in API',
  form: 'short',
  figures: [
    { name: 'ratio', what: 'of the limit', unit: 'x', digits: 2, target: { atMost: 1.3 } },
    { name: 'cpu', what: 'CPU a record', unit: 'µs', digits: 1 },
    { name: 'limit', what: 'the limit', unit: 'µs', digits: 1 },
  ],
  run: async (context) => {
    const { cpuMicros: limit } = await context.once(firstRead);
    const { cpuMicros: cpu } = await context.once(numbered);
    return { ratio: cpu / limit, cpu, limit };
  },
};
