// @ts-check
// What the command line asks for.
import { parseArgs } from 'node:util';

/**
 * @typedef {object} Options
 * @property {boolean} help
 * @property {boolean} list
 * @property {readonly string[] | undefined} only Names of rows; undefined: all of the form.
 * @property {number} runs
 * @property {boolean} short
 * @property {boolean} check
 * @property {boolean} profile
 * @property {number | undefined} orders
 * @property {string} json
 * @property {string | undefined} against
 */

export const DEFAULT_RUNS = { full: 3, short: 2 };
export const DEFAULT_JSON = 'bench/results/latest.json';

export const HELP = `npm run bench -- [options]

  --only ROWS     these rows alone, with commas between (--list names them)
  --runs N        how often each row is measured, one run after the other; default ${DEFAULT_RUNS.full}, short ${DEFAULT_RUNS.short}
  --short         small sizes, and only the rows that need no long waiting: about two minutes
  --orders N      orders of the initial snapshots of cpu-new, throughput, event-loop, memory, restart, rebuild and growth (its 5 million are 5 N)
  --check         ends with 1 when a row misses its target by more than the noise
  --json FILE     where the results go; default ${DEFAULT_JSON}
  --against REV   a revision of git beside what is built here, in pairs
  --profile       an initial snapshot with a profile: where the time goes; nothing else
  --list          the rows, with their targets
  --help          this`;

/** Something about the arguments that is wrong, in one line. */
export class UsageError extends Error {}

/**
 * @param {readonly string[]} args
 * @param {readonly string[]} rows Names that there are.
 * @returns {Options}
 * @throws {UsageError}
 */
export function parseOptions(args, rows) {
  const {
    help = false,
    list = false,
    short = false,
    check = false,
    profile = false,
    ...rest
  } = valuesOf(args);
  const only = rest.only?.split(',').map((name) => name.trim());
  const unknown = only?.filter((name) => !rows.includes(name)) ?? [];
  if (unknown.length > 0) {
    throw new UsageError(`--only: no row ${unknown.join(', ')}; there are ${rows.join(', ')}`);
  }
  if (rest.against === '') throw new UsageError('--against: give a revision of git');
  if (rest.against !== undefined && (profile || check)) {
    throw new UsageError(`--against and --${profile ? 'profile' : 'check'}: one of them at a time`);
  }
  return {
    ...{ help, list, short, check, profile, only, against: rest.against },
    runs: whole('--runs', rest.runs, 1) ?? DEFAULT_RUNS[short ? 'short' : 'full'],
    orders: whole('--orders', rest.orders, 20_000),
    json: rest.json ?? DEFAULT_JSON,
  };
}

/** @param {readonly string[]} args */
function valuesOf(args) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        help: { type: 'boolean', short: 'h' },
        list: { type: 'boolean' },
        short: { type: 'boolean' },
        check: { type: 'boolean' },
        profile: { type: 'boolean' },
        only: { type: 'string' },
        runs: { type: 'string' },
        orders: { type: 'string' },
        json: { type: 'string' },
        against: { type: 'string' },
      },
    }).values;
  } catch (error) {
    // Of its advice about positional arguments the first sentence is enough.
    const [line = ''] = /** @type {Error} */ (error).message.split(/\. |\n/);
    throw new UsageError(line);
  }
}

/** @param {string} flag @param {string | undefined} text @param {number} least */
function whole(flag, text, least) {
  if (text === undefined) return undefined;
  if (/^\d{1,9}$/.test(text) && Number(text) >= least) return Number(text);
  throw new UsageError(`${flag}: a whole number is needed, ${least} or more`);
}
