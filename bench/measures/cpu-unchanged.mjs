// @ts-check
import { parseLimit, parseMembersLimit } from '../support/limits.mjs';
import { changedSweepCost, sweepCost } from '../support/sweeps.mjs';

/** @type {import('../support/measure.mjs').Measure} */
export const cpuUnchanged = {
  name: 'cpu-unchanged',
  what: 'CPU per record, unchanged records read again',
  limit: 'JSON.parse of the same pages',
  form: 'short',
  figures: [
    { name: 'ratio', what: 'orders, of the limit', unit: 'x', digits: 2, target: { atMost: 0.7 } },
    { name: 'cpu', what: 'orders, CPU a record', unit: 'µs', digits: 1 },
    { name: 'limit', what: 'orders, the limit', unit: 'µs', digits: 1 },
    {
      name: 'changed',
      what: 'orders, one change in every page, of the limit',
      unit: 'x',
      digits: 2,
      target: { atMost: 1.33 },
    },
    { name: 'members', what: 'memberships, of the limit', unit: 'x', digits: 2 },
    {
      name: 'membersCpu',
      what: 'memberships, CPU a record',
      unit: 'µs',
      digits: 1,
      target: { atMost: 4 },
    },
  ],
  run: async (context) => {
    const { cpuMicros: limit } = await context.once(parseLimit);
    const cpu = await sweepCost(context, 'orders');
    const changed = (await changedSweepCost(context)) / limit;
    const { cpuMicros: membersLimit } = await context.once(parseMembersLimit);
    const membersCpu = await sweepCost(context, 'wine-club-members');
    const members = membersCpu / membersLimit;
    return { ratio: cpu / limit, cpu, limit, changed, members, membersCpu };
  },
};
