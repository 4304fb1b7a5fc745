// @ts-check
// What a process has used, as the system counts it. Undefined where the system does not tell.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** Ticks a second in `/proc`. */
const TICKS = ticksPerSecond();

/**
 * Its CPU time, user's and system's, all threads, in seconds.
 *
 * @param {number} pid
 * @returns {number | undefined}
 */
export function cpuSeconds(pid) {
  const stat = read(`/proc/${pid}/stat`);
  if (stat === undefined) return undefined;
  // The second field is the name, in parentheses, whatever is in it; the 14th and 15th are the times.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / TICKS;
}

/**
 * Its memory that no file stands behind, in bytes: what it needs for itself. Pages of a file that it
 * has mapped are left out: the system takes them back when it likes.
 *
 * @param {number} pid
 * @returns {number | undefined}
 */
export function anonymousBytes(pid) {
  const kilobytes = /^RssAnon:\s+(\d+) kB$/m.exec(read(`/proc/${pid}/status`) ?? '')?.[1];
  return kilobytes === undefined ? undefined : Number(kilobytes) * 1_024;
}

/** @param {string} file */
function read(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined; // another system, or the process has ended
  }
}

function ticksPerSecond() {
  try {
    return Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }));
  } catch {
    return 100;
  }
}
