// @ts-check
// The rows, run one after the other.
import { describeError } from '../../dist/core/errors.js';

/** @typedef {import('./measure.mjs').Measure} Measure */
/** @typedef {import('./measure.mjs').Context} Context */

/**
 * What one run has found out.
 *
 * @typedef {object} Run
 * @property {Readonly<Record<string, Readonly<Record<string, number>>>>} figures By row and name.
 * @property {Readonly<Record<string, unknown>>} details What else was kept.
 * @property {Readonly<Record<string, string>>} failures By row, why it could not be measured.
 * @property {number} seconds It took.
 */

/** @typedef {Pick<Context, 'cli' | 'services' | 'isShort' | 'orders' | 'tell' | 'scope' | 'prefix'>} Common Of all runs. */

/**
 * Every row once. A row that fails is noted, and the others go on.
 *
 * @param {readonly Measure[]} measures
 * @param {Common} common
 * @returns {Promise<Run>}
 */
export async function runOnce(measures, common) {
  const began = performance.now();
  const scope = common.scope.inner();
  /** @type {Record<string, Readonly<Record<string, number>>>} */
  const figures = {};
  /** @type {Record<string, unknown>} */
  const details = {};
  /** @type {Record<string, string>} */
  const failures = {};
  /** @type {Map<Function, Promise<unknown>>} */
  const done = new Map();
  /** @type {Context} */
  const context = {
    ...common,
    scope,
    keep: (note, value) => (details[note] = value),
    once: (work) => {
      const result = /** @type {ReturnType<typeof work>} */ (done.get(work) ?? work(context));
      done.set(work, result);
      return result;
    },
  };
  try {
    for (const measure of measures) {
      common.tell(`${measure.name}: ${measure.what}`);
      try {
        figures[measure.name] = await measure.run(context);
      } catch (error) {
        failures[measure.name] = describeError(error);
        common.tell(`${measure.name} could not be measured: ${failures[measure.name]}`);
      }
    }
  } finally {
    await scope.close();
  }
  return { figures, details, failures, seconds: (performance.now() - began) / 1_000 };
}
