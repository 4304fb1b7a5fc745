// @ts-check
// The same work over and over, until what it costs is known.
import { median } from './statistics.mjs';

/** @typedef {{ readonly cpuMicros: number, readonly wallMicros: number }} Cost Of one record. */

/** Until the compiler has done what it will do. */
const WARM_UP_MS = 1_000;
const PASSES = 7;

/**
 * What a record costs, alone in this process: the median of several passes, after a second in which it
 * warms up.
 *
 * @param {number} records Of one pass.
 * @param {() => unknown} pass May return a promise.
 * @returns {Promise<Cost>}
 */
export async function costOf(records, pass) {
  const warm = performance.now() + WARM_UP_MS;
  do await pass();
  while (performance.now() < warm);
  const cpu = [];
  const wall = [];
  for (let nth = 0; nth < PASSES; nth++) {
    const before = process.cpuUsage();
    const began = performance.now();
    await pass();
    wall.push(((performance.now() - began) * 1_000) / records);
    const { user, system } = process.cpuUsage(before);
    cpu.push((user + system) / records);
  }
  return { cpuMicros: median(cpu), wallMicros: median(wall) };
}
