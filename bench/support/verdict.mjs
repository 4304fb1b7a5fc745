// @ts-check
// Whether a figure meets its target, and whether it is so far from it that a check has to fail.
import { summary } from './statistics.mjs';

/**
 * `met`: the median is within the target. `near`: it is not, but by no more than the noise, so that
 * nobody can tell. `missed`: by more. `told`: there is no target. Where the target is a promise every run
 * has to be within it, and none is near.
 *
 * @typedef {'met' | 'near' | 'missed' | 'told'} Verdict
 */

/**
 * @param {readonly number[]} values Of one figure, a run each. Without any it is missed.
 * @param {import('./measure.mjs').Target | undefined} target
 * @param {boolean} [isPromise] Default false.
 * @returns {Verdict}
 */
export function verdict(values, target, isPromise = false) {
  if (target === undefined) return 'told';
  const { median, least, most, spread } = summary(values);
  const beyond = (/** @type {number} */ value) =>
    'atMost' in target ? value - target.atMost : target.atLeast - value;
  if (isPromise) return Math.max(beyond(least), beyond(most)) <= 0 ? 'met' : 'missed';
  if (beyond(median) <= 0) return 'met';
  return beyond(median) <= spread ? 'near' : 'missed';
}
