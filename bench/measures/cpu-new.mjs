// @ts-check
import { firstRead } from '../support/first-read.mjs';
import { newRecordLimit } from '../support/limits.mjs';

/** @type {import('../support/measure.mjs').Measure} */
export const cpuNew = {
  name: 'cpu-new',
  what: 'CPU per record, new records, through Avro, transaction and image',
  limit: 'JSON.parse + avsc encode + kafkajs send of ready bytes, each alone, added',
  form: 'short',
  figures: [
    { name: 'ratio', what: 'of the limit', unit: 'x', digits: 2, target: { atMost: 1 } },
    { name: 'cpu', what: 'CPU a record', unit: 'µs', digits: 1 },
    { name: 'limit', what: 'the limit', unit: 'µs', digits: 1 },
  ],
  run: async (context) => {
    const limit = await newRecordLimit(context);
    const { cpuMicros } = await context.once(firstRead);
    return { ratio: cpuMicros / limit.cpuMicros, cpu: cpuMicros, limit: limit.cpuMicros };
  },
};
