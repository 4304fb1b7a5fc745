// @ts-check
// The few statistics that the table needs. Of no values each is NaN.

/** @param {readonly number[]} values */
const sorted = (values) => [...values].sort((a, b) => a - b);

/** @param {readonly number[]} values */
export function median(values) {
  const all = sorted(values);
  const at = (/** @type {number} */ place) => all[place] ?? NaN;
  return (at(Math.floor((all.length - 1) / 2)) + at(Math.floor(all.length / 2))) / 2;
}

/**
 * The least value that so many percent are not above (nearest rank).
 *
 * @param {readonly number[]} values
 * @param {number} percent Above 0, up to 100.
 */
export function percentile(values, percent) {
  return sorted(values)[Math.ceil((percent / 100) * values.length) - 1] ?? NaN;
}

/**
 * @typedef {object} Summary
 * @property {number} median
 * @property {number} least
 * @property {number} most
 * @property {number} spread From the least to the most: the noise of these values.
 */

/**
 * @param {readonly number[]} values
 * @returns {Summary}
 */
export function summary(values) {
  if (values.length === 0) return { median: NaN, least: NaN, most: NaN, spread: NaN };
  const least = Math.min(...values);
  const most = Math.max(...values);
  return { median: median(values), least, most, spread: most - least };
}

/**
 * The slope of the line that fits best through the logarithms: 1 is linear, less is flatter.
 *
 * @param {readonly (readonly [x: number, y: number])[]} points Above 0; two of them at least.
 */
export function logSlope(points) {
  const logs = points.map(([x, y]) => /** @type {const} */ ([Math.log(x), Math.log(y)]));
  const mean = (/** @type {readonly number[]} */ values) =>
    values.reduce((sum, value) => sum + value, 0) / values.length;
  const x0 = mean(logs.map(([x]) => x));
  const y0 = mean(logs.map(([, y]) => y));
  const above = logs.reduce((sum, [x, y]) => sum + (x - x0) * (y - y0), 0);
  const below = logs.reduce((sum, [x]) => sum + (x - x0) ** 2, 0);
  return above / below;
}

/**
 * The most of these times that lie within any half-open window.
 *
 * @param {readonly number[]} times In their order.
 * @param {number} windowMs
 */
export function mostInAnyWindow(times, windowMs) {
  let first = 0;
  return times.reduce((most, at, place) => {
    while ((times[first] ?? at) <= at - windowMs) first += 1;
    return Math.max(most, place - first + 1);
  }, 0);
}
