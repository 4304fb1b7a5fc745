import { assign } from './assignment.ts';
import type { Assignment, AssignmentOptions } from './assignment.ts';

/** Fraction of the mean load by which a member's load must deviate from the mean to count as out of balance. */
const MAX_DEVIATION = 0.2;
/**
 * Minimum improvement for which accounts move while the members stay the same, as a fraction of a member's deviation from the mean load. At
 * 0.25, moves must reduce the deviation of a member that is out of balance from 0.4 to 0.3 or less; otherwise no account moves.
 */
const MIN_IMPROVEMENT = 0.25;

/**
 * Whether accounts should move although no member joined or left: a member is out of balance, and moving accounts would bring it
 * considerably closer to the mean.
 */
export function isImbalanced(fleet: Omit<AssignmentOptions, 'mayMove'>): boolean {
  const now = deviations(assign({ ...fleet, mayMove: false }), fleet.weights);
  const moved = deviations(assign({ ...fleet, mayMove: true }), fleet.weights);
  return [...now].some(
    ([id, off]) => off > MAX_DEVIATION && moved.get(id)! <= (1 - MIN_IMPROVEMENT) * off,
  );
}

/** Returns the deviation of each member's load from the mean, as a fraction of the mean, by member id. */
function deviations(
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
