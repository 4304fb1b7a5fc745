// @ts-check
// The table of docs/performance.md, measured: each row as a ratio to a limit of the same run.
//
//     npm run bench -- --help
import { randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { BOUNDS } from './bounds.mjs';
import { MEASURES } from './measures/index.mjs';
import { compare } from './support/compare.mjs';
import { machineFacts } from './support/machine.mjs';
import { HELP, parseOptions, UsageError } from './support/options.mjs';
import { profile } from './support/profile.mjs';
import { misses, resultsOf } from './support/result.mjs';
import { buildRevision } from './support/revision.mjs';
import { runOnce } from './support/run.mjs';
import { Scope } from './support/scope.mjs';
import { startServices } from './support/services.mjs';
import { listing, textTable } from './support/table.mjs';

/** @typedef {import('./support/options.mjs').Options} Options */

const CLI = fileURLToPath(new URL('../dist/cli.js', import.meta.url));
/** What goes on, with the seconds since the start. @param {string} line */
const tell = (line) =>
  console.error(`${(performance.now() / 1_000).toFixed(0).padStart(5)} s  ${line}`);

const scope = new Scope();
let isInterrupted = false;
/** Ends all that runs, and then this: nothing is measured any more. */
const interrupt = (/** @type {NodeJS.Signals} */ signal) => {
  isInterrupted = true;
  for (const again of SIGNALS) process.once(again, () => process.exit(1));
  void scope.close().finally(() => process.exit(signal === 'SIGINT' ? 130 : 143));
};
const SIGNALS = /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP']);
for (const signal of SIGNALS) process.once(signal, interrupt);

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  if (error instanceof UsageError) {
    console.error(error.message);
    process.exitCode = 2;
  } else if (!isInterrupted) throw error; // else it is of what was ended
} finally {
  await scope.close();
}

/**
 * @param {readonly string[]} args
 * @returns {Promise<number>} the exit code.
 */
async function main(args) {
  const options = parseOptions(
    args,
    MEASURES.map(({ name }) => name),
  );
  const { only, short: isShort, orders, against, runs } = options;
  const forms = isShort ? ['short'] : ['short', 'full'];
  const measures = MEASURES.filter(
    ({ name, form }) => only?.includes(name) ?? forms.includes(form),
  );
  if (options.help) return said(HELP);
  if (options.list) return said(listing(only ? measures : MEASURES));

  const other = against === undefined ? undefined : await buildRevision(scope, against, tell);
  const services = await startServices(scope, tell);
  const prefix = () => `bench-${randomBytes(4).toString('hex')}`;
  const common = { services, isShort, orders, scope, tell, prefix, cli: CLI };
  if (options.profile) return said(await profile(common));

  if (other !== undefined) {
    const comparison = await compare(measures, common, other, runs);
    save(options, { ...comparison.json, machine: machineFacts(common) });
    return said(comparison.text);
  }
  const done = [];
  for (let nth = 1; nth <= runs; nth++) {
    tell(`run ${nth} of ${runs}`);
    done.push(await runOnce(measures, common));
  }
  const rows = resultsOf(measures, done);
  save(options, {
    machine: machineFacts(common),
    form: isShort ? 'short' : 'full',
    rows,
    runs: done,
  });
  said(textTable(rows));
  if (!options.check) return 0;
  const missed = misses(rows, BOUNDS);
  if (missed.length > 0) console.error(`missed: ${missed.join('; ')}`);
  return missed.length > 0 ? 1 : 0;
}

/** @param {string} text */
function said(text) {
  console.log(text);
  return 0;
}

/** @param {Options} options @param {object} results */
function save({ json }, results) {
  mkdirSync(dirname(json), { recursive: true });
  writeFileSync(json, `${JSON.stringify(results, undefined, 2)}\n`);
  tell(`results: ${json}`);
}
