import { assign } from './assignment.ts';
import type { Assignment, AssignmentOptions } from './assignment.ts';

/** A member that carries so much more or less than the mean, as a part of it, is off. */
const OFF_BY = 0.2;
/** So much closer to the mean it has to come for accounts to move, as a part of how far it is off. */
const WORTH = 0.25;

/** Whether accounts are to move though nobody came or went: a member is off, and comes a good deal closer to the mean. */
export function isUneven(fleet: Omit<AssignmentOptions, 'mayMove'>): boolean {
  const now = offBy(assign({ ...fleet, mayMove: false }), fleet.weights);
  const moved = offBy(assign({ ...fleet, mayMove: true }), fleet.weights);
  return [...now].some(([id, off]) => off > OFF_BY && moved.get(id)! <= (1 - WORTH) * off);
}

/** How far each member is from the mean, as a part of it. */
function offBy(
  assignment: Assignment,
  weights: ReadonlyMap<string, number>,
): ReadonlyMap<string, number> {
  const loads = [...assignment].map(([id, accounts]) => {
    const load = accounts.reduce((sum, account) => sum + (weights.get(account) ?? 1), 0);
    return [id, load] as const;
  });
  const mean = loads.reduce((sum, [, load]) => sum + load, 0) / loads.length;
  return new Map(loads.map(([id, load]) => [id, mean > 0 ? Math.abs(load - mean) / mean : 0]));
}
