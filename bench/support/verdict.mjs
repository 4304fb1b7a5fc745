// @ts-check
// Whether a figure meets its target, and whether it is so far from it that a check has to fail.
import { summary } from './statistics.mjs';

/**
 * `met`: the median is within the target. `near`: it is not, but by no more than the noise, so that
 * nobody can tell. `missed`: by more. `told`: there is no target.
 *
 * @typedef {'met' | 'near' | 'missed' | 'told'} Verdict
 */

/**
 * @param {readonly number[]} values Of one figure, a run each. Without any it is missed.
 * @param {import('./measure.mjs').Target | undefined} target
 * @returns {Verdict}
 */
export function verdict(values, target) {
  if (target === undefined) return 'told';
  const { median, spread } = summary(values);
  const beyond = 'atMost' in target ? median - target.atMost : target.atLeast - median;
  if (beyond <= 0) return 'met';
  return beyond <= spread ? 'near' : 'missed';
}
