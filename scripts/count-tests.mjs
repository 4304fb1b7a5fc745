// `node scripts/count-tests.mjs REPORT [MORE-REPORTS...]`: what vitest's JSON reports say, as one line for
// people and programs: `N passed, N failed`, and `, N skipped` if there are any. The numbers are those of the
// first report; failures of the others are added, so that none is hidden. A report that is not there, and a
// test file that could not be loaded, count as one failure each.
import { existsSync, readFileSync } from 'node:fs';
import { argv, stdout } from 'node:process';

/**
 * @typedef {{ status: string, assertionResults: { status: string }[] }} TestFile
 * @param {string} path
 */
function count(path) {
  if (!existsSync(path)) return { passed: 0, failed: 1, skipped: 0 };
  const report = /** @type {{ testResults: TestFile[] }} */ (readJson(path));
  const tally = { passed: 0, failed: 0, skipped: 0 };
  for (const { status, assertionResults } of report.testResults) {
    const failed = assertionResults.filter((test) => test.status === 'failed').length;
    const passed = assertionResults.filter((test) => test.status === 'passed').length;
    tally.passed += passed;
    tally.failed += status === 'failed' ? Math.max(1, failed) : failed;
    tally.skipped += assertionResults.length - passed - failed;
  }
  return tally;
}

/**
 * @param {string} path
 * @returns {unknown}
 */
function readJson(path) {
  return JSON.parse(readFileSync(path, 'utf8'));
}

const [first, ...others] = argv.slice(2).map(count);
const { passed, failed, skipped } = first ?? { passed: 0, failed: 1, skipped: 0 };
const allFailed = others.reduce((sum, other) => sum + other.failed, failed);
stdout.write(`${passed} passed, ${allFailed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}\n`);
