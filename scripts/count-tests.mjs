// `node scripts/count-tests.mjs REPORT... [--again REPORT...]`: summary of vitest's JSON reports. Prints each failed test with the beginning of its
// message, then one last line for people and programs: `N passed, N failed`, and `, N skipped` if there are any. Reports after `--again` are of
// tests that ran a second time: only their failures are added. A missing report and a test file that could not be loaded count as
// one failure each.
import { existsSync, readFileSync } from 'node:fs';
import { relative } from 'node:path';
import { argv, stdout } from 'node:process';
import { stripVTControlCharacters } from 'node:util';

/** Of a message, as many lines as tell what was expected where. */
const MESSAGE_LINES = 12;

/**
 * @typedef {{ status: string, fullName: string, failureMessages: string[] | null }} Test
 * @typedef {{ status: string, name: string, message: string, assertionResults: Test[] }} TestFile
 */

/** @param {string} path */
function count(path) {
  if (!existsSync(path)) {
    stdout.write(`there is no report ${path}\n\n`);
    return { passed: 0, failed: 1, skipped: 0 };
  }
  const report = /** @type {{ testResults: TestFile[] }} */ (readJson(path));
  const tally = { passed: 0, failed: 0, skipped: 0 };
  for (const { status, name, message, assertionResults } of report.testResults) {
    const failures = assertionResults.filter((test) => test.status === 'failed');
    for (const test of failures) tell(name, test.fullName, (test.failureMessages ?? []).join('\n'));
    if (status === 'failed' && failures.length === 0) tell(name, 'the file itself', message);
    const failed = failures.length;
    const passed = assertionResults.filter((test) => test.status === 'passed').length;
    tally.passed += passed;
    tally.failed += status === 'failed' ? Math.max(1, failed) : failed;
    tally.skipped += assertionResults.length - passed - failed;
  }
  return tally;
}

/**
 * @param {string} file
 * @param {string} test
 * @param {string} message
 */
function tell(file, test, message) {
  const lines = stripVTControlCharacters(message).trim().split('\n').slice(0, MESSAGE_LINES);
  stdout.write(
    `failed: ${relative('.', file)}: ${test}\n${lines.map((line) => `  ${line}\n`).join('')}\n`,
  );
}

/**
 * @param {string} path
 * @returns {unknown}
 */
function readJson(path) {
  return JSON.parse(readFileSync(path, 'utf8'));
}

const reports = argv.slice(2);
const end = reports.indexOf('--again');
const tallies = reports.slice(0, end < 0 ? undefined : end).map(count);
const again = end < 0 ? [] : reports.slice(end + 1).map(count);
if (tallies.length === 0) tallies.push({ passed: 0, failed: 1, skipped: 0 });
/** @param {'passed' | 'failed' | 'skipped'} of @param {typeof tallies} all */
const sum = (of, all) => all.reduce((total, tally) => total + tally[of], 0);
const skipped = sum('skipped', tallies);
const failed = sum('failed', [...tallies, ...again]);
stdout.write(
  `${sum('passed', tallies)} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}\n`,
);
