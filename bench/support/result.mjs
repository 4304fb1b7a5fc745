// @ts-check
// What all runs together come to.
import { summary } from './statistics.mjs';
import { verdict } from './verdict.mjs';

/** @typedef {import('./measure.mjs').Measure} Measure */

/**
 * A figure over all runs; numbers that are none (nothing was measured) are null in JSON.
 *
 * @typedef {object} FigureResult
 * @property {string} name
 * @property {string} what
 * @property {string} unit
 * @property {number} digits
 * @property {import('./measure.mjs').Target | null} target
 * @property {readonly number[]} values A run each.
 * @property {number} median
 * @property {number} least
 * @property {number} most
 * @property {import('./verdict.mjs').Verdict} verdict
 */

/**
 * @typedef {object} RowResult
 * @property {string} name
 * @property {string} what
 * @property {string} limit
 * @property {readonly string[]} failures Why it could not be measured, where it could not.
 * @property {readonly FigureResult[]} figures Those that were measured, and those with a target.
 */

/**
 * @param {readonly Measure[]} measures
 * @param {readonly import('./run.mjs').Run[]} runs
 * @returns {RowResult[]}
 */
export function resultsOf(measures, runs) {
  return measures.map(({ name, what, limit, figures }) => ({
    name,
    what,
    limit,
    failures: [...new Set(runs.flatMap(({ failures }) => failures[name] ?? []))],
    figures: figures.flatMap((figure) => {
      const { digits = 0, target = null, isPromise } = figure;
      const values = runs.flatMap((run) => run.figures[name]?.[figure.name] ?? []);
      if (values.length === 0 && !target) return [];
      const { median, least, most } = summary(values);
      return {
        name: figure.name,
        what: figure.what,
        unit: figure.unit,
        digits,
        target,
        values,
        median,
        least,
        most,
        verdict: verdict(values, target ?? undefined, isPromise),
      };
    }),
  }));
}

/** Other targets, of rows and their figures. @typedef {Readonly<Record<string, Readonly<Record<string, import('./measure.mjs').Target>>>>} Bounds */

/**
 * What a check fails for: rows that could not be measured, and figures that miss their targets by more
 * than the noise; or, where there is one, their bound.
 *
 * @param {readonly RowResult[]} rows
 * @param {Bounds} bounds
 * @returns {string[]} A few words each.
 */
export function misses(rows, bounds) {
  return rows.flatMap(({ name, figures, failures }) => {
    if (failures.length > 0) return [`${name} could not be measured`];
    const missed = figures.filter((figure) => {
      const bound = bounds[name]?.[figure.name];
      return (bound ? verdict(figure.values, bound) : figure.verdict) === 'missed';
    });
    return missed.map((figure) => `${name}: ${figure.what} by more than the noise`);
  });
}
