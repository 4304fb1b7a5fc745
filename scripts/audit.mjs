// `node scripts/audit.mjs`: known vulnerabilities of what the package depends on at run time, by `npm audit`. Exits
// with 1 when there are any, whatever their severity, and when the audit itself goes wrong. A registry that knows no
// audits (a mirror), or that can't be reached, is said loudly, and is no failure: nothing was found out then.
import { spawnSync } from 'node:child_process';
import { resolve } from 'node:path';
import { stdout } from 'node:process';

/**
 * @typedef {{ name: string, severity: string, range: string, via: (string | { title: string, url: string })[] }} Finding
 * @typedef {{ vulnerabilities?: Record<string, Finding>, metadata?: { dependencies: { prod: number } },
 *   message?: string, statusCode?: number, error?: { code?: string, summary: string } }} Report
 */

const args = ['audit', '--omit=dev', '--audit-level=low', '--json'];
const root = resolve(import.meta.dirname, '..');
const npm = spawnSync('npm', args, { cwd: root, encoding: 'utf8', maxBuffer: 2 ** 26 });
const { stdout: text, stderr } = npm;
/** What a registry answers that knows no audits. */
const NO_AUDITS = [404, 405, 501];
/** What npm says when it reaches none: nothing else, or a refused login would pass for it. */
const NO_NETWORK =
  /ECONN(REFUSED|RESET)|E(HOST|NET)UNREACH|ENOTFOUND|EAI_AGAIN|TIMEDOUT|network timeout/;

process.exitCode = tell(parse(text));

/** @param {Report | undefined} report */
function tell(report) {
  if (report?.vulnerabilities) {
    const found = Object.values(report.vulnerabilities);
    for (const { name, severity, range, via } of found) {
      const why = via.map((each) =>
        typeof each === 'string' ? each : `${each.title} ${each.url}`,
      );
      stdout.write(`${severity}: ${name} ${range}: ${why.join('; ')}\n`);
    }
    const count = report.metadata?.dependencies.prod ?? 0;
    stdout.write(`${found.length} vulnerable of ${count} dependencies\n`);
    return found.length === 0 ? 0 : 1;
  }
  const { message = '', statusCode } = report ?? {};
  const isOutOfReach =
    statusCode === undefined ? NO_NETWORK.test(message) : NO_AUDITS.includes(statusCode);
  if (isOutOfReach) {
    stdout.write(
      `WARNING: NOTHING WAS AUDITED: the registry gives no answer (${message})\n` +
        'WARNING: run `npm run audit` where it does before a release\n',
    );
    return 0;
  }
  const reason = message || report?.error?.summary || stderr || npm.error?.message;
  stdout.write(`the audit went wrong: ${reason}\n`);
  return 1;
}

/**
 * @param {string} json
 * @returns {Report | undefined}
 */
function parse(json) {
  try {
    const report = /** @type {unknown} */ (JSON.parse(json));
    return /** @type {Report} */ (report);
  } catch {
    return undefined; // what npm said instead is on its stderr
  }
}
