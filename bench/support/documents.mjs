// @ts-check
// Results as the generated part of docs/performance.md, and the plot beside it.
import { logSlope, median } from './statistics.mjs';
import { plot } from './plot.mjs';
import { markdownTable } from './table.mjs';

/** @typedef {import('./growth.mjs').Point} Point */

/**
 * @typedef {object} Results As `--json` has them.
 * @property {import('./machine.mjs').Machine} machine
 * @property {'full' | 'short'} form
 * @property {readonly Row[]} rows
 * @property {readonly { readonly details: Readonly<Record<string, unknown>> }[]} runs
 */

/** @typedef {import('./result.mjs').RowResult & { readonly measured?: string }} Row `measured`: at which revision, when, and on which machine. */

/** @typedef {'records' | 'resources' | 'changes'} Growing */

const BEGIN = '<!-- results: written by `npm run bench:docs` -->';
const END = '<!-- /results -->';

/** What grows: the title of its curve, of its x axis and of the y axis. @type {Readonly<Record<Growing, readonly [string, string, string]>>} */
const TITLES = {
  records: ['Initial snapshot', 'orders', 'CPU, s'],
  resources: ['Initial snapshots, 20,000 records each', 'lists', 'CPU, s'],
  changes: ['A minute of changes', 'changes a second', 'CPU, s'],
};

/**
 * Rows that were measured in several runs of the bench, as if it had been one: a row that is in two of them is
 * taken from the later one. They may be of different revisions and machines: the document says which.
 *
 * @param {readonly Results[]} parts At least one.
 * @returns {Results}
 * @throws Error when they are of different forms.
 */
export function joined(parts) {
  const [first, ...others] = parts;
  if (!first) throw new Error('there are no results');
  if (parts.some(({ rows }) => rows === undefined)) {
    throw new Error('a comparison of revisions (--against) has no rows for the document');
  }
  const other = others.find(({ form }) => form !== first.form);
  if (other) throw new Error(`results that can't be put together: ${first.form}, ${other.form}`);
  const last = /** @type {Results} */ (parts.at(-1));
  return {
    ...first,
    machine: last.machine,
    rows: [...new Map(parts.flatMap(dated)).values()],
    runs: (parts.findLast(({ runs }) => runs.some(({ details }) => details.growth)) ?? last).runs,
  };
}

/** @param {Results} results @returns {(readonly [name: string, row: Row])[]} */
const dated = ({ machine, rows }) =>
  rows.map((row) => [row.name, { ...row, measured: row.measured ?? measuredAt(machine) }]);

/** @param {Results['machine']} machine */
const measuredAt = ({ revision, date, system, load, cpu, cores, memoryGb, node, kafka }) =>
  `revision ${revision}, ${date.slice(0, 10)}, on ${cpu}, ${cores} cores, ${memoryGb} GB, ${system}; Node ${node}, Kafka ${kafka}; load at the end ${load.toFixed(1)}`;

/**
 * The document with its generated part anew.
 *
 * @param {string} document
 * @param {Results} results
 * @returns {string}
 * @throws Error when it has no such part.
 */
export function withResults(document, results) {
  const [begin, end] = [document.indexOf(BEGIN), document.indexOf(END)];
  if (begin < 0 || end < begin) throw new Error(`the document has no part from ${BEGIN} to ${END}`);
  const part = [
    BEGIN,
    '',
    machineText(results),
    '',
    markdownTable(withoutNaN(results.rows)),
    '',
    ...growthText(results),
    END,
  ];
  return document.slice(0, begin) + part.join('\n') + document.slice(end + END.length);
}

/** @param {Results} results */
function machineText({ machine, form, rows }) {
  const when = (/** @type {Row} */ row) => `${runsOf(row)}, ${row.measured ?? measuredAt(machine)}`;
  const lines = [...new Set(rows.map(when))].map((each) => {
    const names = rows.filter((row) => when(row) === each).map(({ name }) => `\`${name}\``);
    return `- ${names.join(', ')}: ${each}`;
  });
  return [
    `The ${form} form. Medians, with the least and the most of the runs; ratios compare what was measured on one machine in one run:`,
    '',
    ...lines,
  ].join('\n');
}

/** @param {Row} row */
function runsOf({ figures }) {
  const runs = Math.max(0, ...figures.map(({ values }) => values.length));
  return runs === 1 ? '1 run' : `${runs} runs`;
}

/** @param {Results} results */
function growthText(results) {
  const curves = growthOf(results);
  if (!curves) return [];
  const rows = Object.entries(curves).flatMap(([name, points]) => {
    const [, what] = TITLES[/** @type {Growing} */ (name)];
    const idle = points.find(({ x }) => x === 0)?.cpu;
    return points.map((point, nth) => {
      const { x, cpu, memory } = point;
      const slope = slopeBetween(points[nth - 1], point, idle);
      return `| ${what} | ${x.toLocaleString('en-US')} | ${cpu.toFixed(2)} | ${slope} | ${memory.toFixed(0)} |`;
    });
  });
  return [
    '| what grows | to | CPU, s | slope from the line above | RssAnon, MB |',
    '| --- | ---: | ---: | ---: | ---: |',
    ...rows,
    '',
    '![CPU over orders, lists and changes, beside a line that is linear](performance-growth.svg)',
    '',
  ];
}

/** Less what is used where nothing grows, if that is known. @param {Point | undefined} from @param {Point} to @param {number} [idle] */
function slopeBetween(from, to, idle = 0) {
  if (!from || from.x === 0) return '';
  return logSlope([from, to].map(({ x, cpu }) => [x, cpu - idle])).toFixed(2);
}

/**
 * The plot of growth, if that was measured.
 *
 * @param {Results} results
 * @returns {string | undefined}
 */
export function growthPlot(results) {
  const curves = growthOf(results);
  if (!curves) return undefined;
  return plot(
    Object.entries(curves).map(([name, points]) => {
      const [title, xLabel, yLabel] = TITLES[/** @type {Growing} */ (name)];
      const drawn = points.filter(({ x, cpu }) => x > 0 && cpu > 0);
      return { title, xLabel, yLabel, points: drawn.map(({ x, cpu }) => [x, cpu]) };
    }),
  );
}

/** Medians over the runs, point by point. @param {Results} results @returns {Record<Growing, Point[]> | undefined} */
function growthOf({ runs }) {
  const all = runs.flatMap(({ details }) => {
    const of = /** @type {Record<Growing, Point[]> | undefined} */ (details.growth);
    return of ? [of] : [];
  });
  const [first] = all;
  if (!first) return undefined;
  const over = (/** @type {Growing} */ name) =>
    first[name].map(({ x }, nth) => ({
      x,
      cpu: median(all.map((curves) => curves[name][nth]?.cpu ?? NaN)),
      memory: median(all.map((curves) => curves[name][nth]?.memory ?? NaN)),
    }));
  return { records: over('records'), resources: over('resources'), changes: over('changes') };
}

/** Figures that were not measured are null in JSON. @param {Results['rows']} rows */
const withoutNaN = (rows) =>
  rows.map((row) => ({
    ...row,
    figures: row.figures.map((figure) => ({
      ...figure,
      median: figure.median ?? NaN,
      least: figure.least ?? NaN,
      most: figure.most ?? NaN,
    })),
  }));
