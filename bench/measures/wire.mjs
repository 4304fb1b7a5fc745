// @ts-check
import { firstRead } from '../support/first-read.mjs';

/** @type {import('../support/measure.mjs').Measure} */
export const wire = {
  name: 'wire',
  what: 'bytes of an event on the wire, batches compressed',
  limit: 'the bytes of its key and value',
  form: 'short',
  figures: [
    { name: 'bytes', what: 'on the wire', unit: 'B' },
    { name: 'raw', what: 'key and value', unit: 'B' },
  ],
  run: async (context) => {
    const { wireBytes, rawBytes } = await context.once(firstRead);
    return { bytes: wireBytes, raw: rawBytes };
  },
};
