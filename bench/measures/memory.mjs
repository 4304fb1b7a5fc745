// @ts-check
import { aMillion, costsOf } from '../support/known-orders.mjs';

const MIB = 2 ** 20;

/** @type {import('../support/measure.mjs').Measure} */
export const memory = {
  name: 'memory',
  what: 'memory of the service, without files that are mapped (RssAnon), with 1 and 5 million orders known',
  limit: '',
  form: 'full',
  figures: [
    { name: 'one', what: 'with 1 million, at most', unit: 'MB', target: { atMost: 300 } },
    { name: 'five', what: 'with 5 million, at most', unit: 'MB', target: { atMost: 300 } },
    // Flat: of a part that grew with the orders, a tenth of 300 MB would make it 1.4.
    {
      name: 'growth',
      what: 'the second of the first',
      unit: 'x',
      digits: 2,
      target: { atMost: 1.2 },
    },
  ],
  run: async (context) => {
    const { peakBytes: one } = await costsOf(context, aMillion(context));
    const { peakBytes: five } = await costsOf(context, 5 * aMillion(context));
    if (Number.isNaN(one + five)) throw new Error('this system does not tell RssAnon');
    return { one: one / MIB, five: five / MIB, growth: five / one };
  },
};
