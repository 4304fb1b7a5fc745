// @ts-check
import { byChanges, byRecords, byResources } from '../support/growth.mjs';
import { logSlope } from '../support/statistics.mjs';

/** @typedef {import('../support/growth.mjs').Point} Point */

const RECORDS = [10_000, 100_000, 1_000_000, 5_000_000];
const RESOURCES = [1, 2, 4, 6];
/** A second. */
const CHANGES = [0, 5, 50, 500];
/** Linear, with room for the noise of points that are measured once. */
const STEEPEST = 1.05;

/** What the process costs when it is idle is in each point: a point at 0 has no logarithm. @param {readonly Point[]} points */
const slopeOf = (points) => logSlope(points.filter(({ x }) => x > 0).map(({ x, cpu }) => [x, cpu]));

/** @type {import('../support/measure.mjs').Measure} */
export const growth = {
  name: 'growth',
  what: 'cost as work grows: the slope of CPU over records, lists and changes; 1 is linear',
  limit: '',
  form: 'full',
  figures: [
    {
      name: 'records',
      what: 'slope over records, from 10,000',
      unit: '',
      digits: 2,
      target: { atMost: STEEPEST },
    },
    {
      name: 'resources',
      what: 'slope over 1 to 6 lists',
      unit: '',
      digits: 2,
      target: { atMost: STEEPEST },
    },
    {
      name: 'changes',
      what: 'slope over changes, from 5 a second',
      unit: '',
      digits: 2,
      target: { atMost: STEEPEST },
    },
  ],
  run: async (context) => {
    const most = 5 * (context.orders ?? 1_000_000);
    const curves = {
      records: await each(
        RECORDS.filter((records) => records <= most),
        (records) => byRecords(context, records),
      ),
      resources: await each(RESOURCES, (count) => byResources(context, count)),
      changes: await each(CHANGES, (perSecond) => byChanges(context, perSecond)),
    };
    context.keep('growth', curves);
    return {
      records: slopeOf(curves.records),
      resources: slopeOf(curves.resources),
      changes: slopeOf(curves.changes),
    };
  },
};

/**
 * One after the other: each has the machine for itself.
 *
 * @param {readonly number[]} values
 * @param {(value: number) => Promise<Point>} measure
 */
async function each(values, measure) {
  /** @type {Point[]} */
  const points = [];
  for (const value of values) points.push(await measure(value));
  return points;
}
