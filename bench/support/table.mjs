// @ts-check
// Results as tables, for a terminal and for the documents.

/** @typedef {import('./result.mjs').RowResult} RowResult */
/** @typedef {import('./result.mjs').FigureResult} FigureResult */

/**
 * A number as it is read: `1.25 x`, `4,210`, `96 %`.
 *
 * @param {number} value
 * @param {Pick<FigureResult, 'digits' | 'unit'>} as
 */
export function shown(value, { digits, unit }) {
  if (!Number.isFinite(value)) return '-';
  const text = value.toLocaleString('en-US', {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
  return unit === '' ? text : `${text} ${unit}`;
}

/** @param {Pick<FigureResult, 'target' | 'unit' | 'digits'>} figure */
function targetOf({ target, ...as }) {
  if (target === null) return '';
  return 'atMost' in target ? `<= ${shown(target.atMost, as)}` : `>= ${shown(target.atLeast, as)}`;
}

const WORDS = { met: 'met', near: 'not met, within the noise', missed: 'not met', told: '' };

const HEAD = ['row', 'figure', 'median', 'min to max', 'target', ''];

/** The cells, a list each line. @param {readonly RowResult[]} rows */
function cells(rows) {
  return rows.flatMap(({ name, figures, failures }) => {
    const lines = figures.map((figure, place) => [
      place === 0 ? name : '',
      figure.what,
      shown(figure.median, figure),
      `${shown(figure.least, { ...figure, unit: '' })} to ${shown(figure.most, { ...figure, unit: '' })}`,
      targetOf(figure),
      WORDS[figure.verdict],
    ]);
    return [...lines, ...failures.map((failure) => [lines.length > 0 ? '' : name, failure])];
  });
}

/** For a terminal. @param {readonly RowResult[]} rows */
export function textTable(rows) {
  const lines = [HEAD, ...cells(rows)];
  // What could not be measured is told in a line of its own, as long as it is.
  const widths = HEAD.map((_, place) =>
    Math.max(
      ...lines.map((line) =>
        line.length < HEAD.length && place > 0 ? 0 : (line[place] ?? '').length,
      ),
    ),
  );
  const isNumber = (/** @type {number} */ place) => place >= 2 && place <= 4;
  return lines
    .map((line) =>
      line
        .map((cell, place) =>
          isNumber(place) ? cell.padStart(widths[place] ?? 0) : cell.padEnd(widths[place] ?? 0),
        )
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** For the documents. @param {readonly RowResult[]} rows */
export function markdownTable(rows) {
  const lines = [HEAD, HEAD.map(() => '---'), ...cells(rows)];
  return lines
    .map(
      (line) =>
        `| ${HEAD.map((_, place) => (line[place] ?? '').replaceAll('|', '\\|')).join(' | ')} |`,
    )
    .join('\n');
}

const FORMS = { short: ' (short form too)', full: '', named: ' (only where it is named)' };

/** The rows that there are, with what is asked of them. @param {readonly import('./measure.mjs').Measure[]} measures */
export function listing(measures) {
  return measures
    .map(({ name, what, limit, form, figures }) => {
      const targets = figures.flatMap(({ what: figure, target, unit, digits = 0 }) =>
        target ? [`    ${figure} ${targetOf({ target, unit, digits })}`] : [],
      );
      const head = `${name}${FORMS[form]}: ${what}`;
      return [head, ...(limit === '' ? [] : [`    beside: ${limit}`]), ...targets].join('\n');
    })
    .join('\n');
}
