// @ts-check
// On what it was measured.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { arch, cpus, loadavg, platform, release, totalmem } from 'node:os';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/**
 * @typedef {object} Machine
 * @property {string} cpu
 * @property {number} cores
 * @property {number} memoryGb
 * @property {string} system
 * @property {number} load Of the minute before: anything near the number of cores spoils what is measured.
 * @property {string} node
 * @property {string} kafka
 * @property {string} revision Of git, and whether something was changed since; or nothing.
 * @property {string} date ISO 8601.
 */

/**
 * @param {Pick<import('./measure.mjs').Context, 'services'>} context
 * @returns {Machine}
 */
export function machineFacts({ services }) {
  const [cpu] = cpus();
  return {
    cpu: cpu?.model.trim() ?? '',
    cores: cpus().length,
    memoryGb: Math.round(totalmem() / 2 ** 30),
    system: `${platform()} ${release()} ${arch()}`,
    load: loadavg()[0] ?? 0,
    node: process.version,
    kafka: services.origin === 'settings' ? 'of the settings' : kafkaVersion(),
    revision: git(['describe', '--always', '--dirty', '--abbrev=12']),
    date: new Date().toISOString(),
  };
}

/** The one that is started: the pom has it. */
function kafkaVersion() {
  return /<kafka\.version>(.+?)</.exec(readFileSync(`${ROOT}/pom.xml`, 'utf8'))?.[1] ?? '';
}

/** @param {string[]} args @returns what it prints, or nothing where there is no git. */
function git(args) {
  try {
    return execFileSync('git', ['-C', ROOT, ...args], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim();
  } catch {
    return '';
  }
}
