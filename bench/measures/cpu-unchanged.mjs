// @ts-check
import { parseLimit, parseMembersLimit } from '../support/limits.mjs';
import { sweepCost } from '../support/sweeps.mjs';

/** @type {import('../support/measure.mjs').Measure} */
export const cpuUnchanged = {
  name: 'cpu-unchanged',
  what: 'CPU per record, unchanged records read again',
  limit: 'JSON.parse of the same pages',
  form: 'short',
  figures: [
    { name: 'ratio', what: 'orders, of the limit', unit: 'x', digits: 2, target: { atMost: 1.5 } },
    { name: 'cpu', what: 'orders, CPU a record', unit: 'µs', digits: 1 },
    { name: 'limit', what: 'orders, the limit', unit: 'µs', digits: 1 },
    { name: 'members', what: 'memberships, of the limit', unit: 'x', digits: 2 },
    { name: 'membersCpu', what: 'memberships, CPU a record', unit: 'µs', digits: 1 },
  ],
  run: async (context) => {
    const { cpuMicros: limit } = await context.once(parseLimit);
    const cpu = await sweepCost(context, 'orders');
    if (context.isShort) return { ratio: cpu / limit, cpu, limit };
    const { cpuMicros: membersLimit } = await context.once(parseMembersLimit);
    const members = await sweepCost(context, 'wine-club-members');
    return { ratio: cpu / limit, cpu, limit, members: members / membersLimit, membersCpu: members };
  },
};
