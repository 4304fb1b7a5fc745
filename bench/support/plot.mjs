// @ts-check
// Curves as an SVG, both axes logarithmic: what is linear is a line of the slope 1.

/**
 * @typedef {object} Curve
 * @property {string} title
 * @property {string} xLabel
 * @property {string} yLabel
 * @property {readonly (readonly [x: number, y: number])[]} points Above 0.
 */

const WIDTH = 380;
const HEIGHT = 300;
const MARGIN = { left: 58, right: 16, top: 36, bottom: 44 };
const TICKS = [1, 2, 5];

/**
 * The curves beside each other, each with a dashed line through its first point that is linear.
 *
 * @param {readonly Curve[]} curves
 * @returns {string} The file's text.
 */
export function plot(curves) {
  const panels = curves.map(
    (curve, nth) => `<g transform="translate(${nth * WIDTH},0)">${panel(curve)}</g>`,
  );
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${curves.length * WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="11">`,
    '<rect width="100%" height="100%" fill="#fff"/>',
    ...panels,
    '</svg>\n',
  ].join('\n');
}

/** @param {Curve} curve */
function panel({ title, xLabel, yLabel, points }) {
  const [first] = points;
  if (!first) return '';
  const linear = points.map(([x]) => /** @type {const} */ ([x, (first[1] * x) / first[0]]));
  const x = scale(
    points.map(([at]) => at),
    MARGIN.left,
    WIDTH - MARGIN.right,
  );
  const y = scale(
    [...points, ...linear].map(([, at]) => at),
    HEIGHT - MARGIN.bottom,
    MARGIN.top,
  );
  const path = (/** @type {Curve['points']} */ of) =>
    of.map(([a, b]) => `${round(x.at(a))},${round(y.at(b))}`).join(' ');
  const middle = (MARGIN.left + WIDTH - MARGIN.right) / 2;
  return [
    `<text x="${middle}" y="20" text-anchor="middle" font-size="13">${escaped(title)}</text>`,
    ...x.ticks.map(
      ([value, at]) =>
        `<path d="M${round(at)} ${MARGIN.top}V${HEIGHT - MARGIN.bottom}" stroke="#ddd"/><text x="${round(at)}" y="${HEIGHT - MARGIN.bottom + 15}" text-anchor="middle">${short(value)}</text>`,
    ),
    ...y.ticks.map(
      ([value, at]) =>
        `<path d="M${MARGIN.left} ${round(at)}H${WIDTH - MARGIN.right}" stroke="#ddd"/><text x="${MARGIN.left - 6}" y="${round(at + 4)}" text-anchor="end">${short(value)}</text>`,
    ),
    `<polyline points="${path(linear)}" fill="none" stroke="#999" stroke-dasharray="4 4"/>`,
    `<polyline points="${path(points)}" fill="none" stroke="#7b1e3a" stroke-width="2"/>`,
    ...points.map(
      ([a, b]) => `<circle cx="${round(x.at(a))}" cy="${round(y.at(b))}" r="3.5" fill="#7b1e3a"/>`,
    ),
    `<text x="${middle}" y="${HEIGHT - 8}" text-anchor="middle">${escaped(xLabel)}</text>`,
    `<text transform="translate(14,${(MARGIN.top + HEIGHT - MARGIN.bottom) / 2}) rotate(-90)" text-anchor="middle">${escaped(yLabel)}</text>`,
  ].join('\n');
}

/**
 * A logarithmic axis from one place to another, with room at both ends.
 *
 * @param {readonly number[]} values
 * @param {number} from
 * @param {number} to
 */
function scale(values, from, to) {
  const low = Math.log10(Math.min(...values) / 1.3);
  const high = Math.log10(Math.max(...values) * 1.3);
  const at = (/** @type {number} */ value) =>
    from + ((Math.log10(value) - low) / (high - low)) * (to - from);
  const decades = Array.from(
    { length: Math.ceil(high) - Math.floor(low) + 1 },
    (_, nth) => Math.floor(low) + nth,
  );
  const steps = high - low > 2 ? [1] : TICKS;
  const ticks = decades
    .flatMap((decade) => steps.map((step) => step * 10 ** decade))
    .filter((value) => Math.log10(value) >= low && Math.log10(value) <= high)
    .map((value) => /** @type {const} */ ([value, at(value)]));
  return { at, ticks };
}

/** @param {number} value */
const round = (value) => Number(value.toFixed(1));

/** @param {number} value */
const short = (value) => {
  if (value >= 1e6) return `${round(value / 1e6)} M`;
  return value >= 1e3 ? `${round(value / 1e3)} k` : String(Number(value.toPrecision(2)));
};

/** @param {string} text */
const escaped = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
