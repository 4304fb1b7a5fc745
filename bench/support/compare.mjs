// @ts-check
// Two revisions, measured in turn: what the machine does meanwhile befalls both alike.
import { runOnce } from './run.mjs';
import { median, summary } from './statistics.mjs';
import { shown } from './table.mjs';

/** @typedef {import('./measure.mjs').Measure} Measure */
/** @typedef {import('./run.mjs').Run} Run */

/**
 * @typedef {object} Comparison A figure of both.
 * @property {string} row
 * @property {string} figure
 * @property {string} what
 * @property {string} unit
 * @property {number} digits
 * @property {readonly number[]} a Of the other revision, a pair each.
 * @property {readonly number[]} b Of what is built here.
 * @property {number} ratio Median of b / a over the pairs.
 * @property {readonly [least: number, most: number]} ratios
 */

/**
 * Runs A B A B and so on.
 *
 * @param {readonly Measure[]} measures
 * @param {import('./run.mjs').Common} common `cli` is that of B.
 * @param {import('./revision.mjs').Revision} other A.
 * @param {number} pairs
 */
export async function compare(measures, common, other, pairs) {
  /** @type {[a: Run, b: Run][]} */
  const done = [];
  for (let nth = 1; nth <= pairs; nth++) {
    common.tell(`pair ${nth} of ${pairs}: ${other.name}`);
    const a = await runOnce(measures, { ...common, cli: other.cli });
    common.tell(`pair ${nth} of ${pairs}: as built here`);
    done.push([a, await runOnce(measures, common)]);
  }
  const comparisons = comparisonsOf(measures, done);
  const failures = done.flatMap(([a, b]) => [
    ...failuresOf(other.name, a),
    ...failuresOf('as built here', b),
  ]);
  return {
    text: [...comparisonLines(other.name, comparisons), ...new Set(failures)].join('\n'),
    json: { against: other.name, comparisons, pairs: done },
  };
}

/**
 * Figures that both runs of a pair have.
 *
 * @param {readonly Measure[]} measures
 * @param {readonly (readonly [a: Pick<Run, 'figures'>, b: Pick<Run, 'figures'>])[]} pairs
 * @returns {Comparison[]}
 */
export function comparisonsOf(measures, pairs) {
  return measures.flatMap(({ name: row, figures }) =>
    figures.flatMap(({ name: figure, what, unit, digits = 0 }) => {
      const both = pairs.flatMap(([first, second]) => {
        const a = first.figures[row]?.[figure];
        const b = second.figures[row]?.[figure];
        return a === undefined || b === undefined ? [] : [{ a, b }];
      });
      if (both.length === 0) return [];
      const ratios = both.map(({ a, b }) => b / a);
      const { least, most } = summary(ratios);
      return {
        ...{ row, figure, what, unit, digits },
        a: both.map(({ a }) => a),
        b: both.map(({ b }) => b),
        ratio: median(ratios),
        ratios: /** @type {const} */ ([least, most]),
      };
    }),
  );
}

/** @param {string} name @param {readonly Comparison[]} comparisons */
function comparisonLines(name, comparisons) {
  return comparisons.map((comparison) => {
    const side = (/** @type {readonly number[]} */ values) => {
      const { median: middle, least, most } = summary(values);
      const bare = { ...comparison, unit: '' };
      return `${shown(middle, comparison)} (${shown(least, bare)} to ${shown(most, bare)})`;
    };
    const { row, what, a, b, ratio, ratios } = comparison;
    const [least, most] = ratios.map((value) => value.toFixed(3));
    return `${row}, ${what}: ${name} ${side(a)}; here ${side(b)}; x ${ratio.toFixed(3)} (${least} to ${most}), pairs: ${a.length}`;
  });
}

/** @param {string} name @param {Run} run */
const failuresOf = (name, { failures }) =>
  Object.entries(failures).map(([row, why]) => `${row} could not be measured, ${name}: ${why}`);
