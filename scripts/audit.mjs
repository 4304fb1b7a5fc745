// `node scripts/audit.mjs`: known vulnerabilities of what the package depends on at run time, by `npm audit`. Exits
// with 1 when there are any, whatever their severity, and when the audit itself goes wrong. A registry that answers
// no audits (a mirror, or no network) is said loudly, and is no failure: nothing was found out then.
import { spawnSync } from 'node:child_process';
import { stdout } from 'node:process';

/**
 * @typedef {{ name: string, severity: string, range: string, via: (string | { title: string, url: string })[] }} Finding
 * @typedef {{ vulnerabilities?: Record<string, Finding>, metadata?: { dependencies: { prod: number } },
 *   message?: string, error?: { code?: string, summary: string } }} Report
 */

const args = ['audit', '--omit=dev', '--audit-level=low', '--json'];
const { stdout: text, stderr } = spawnSync('npm', args, { encoding: 'utf8' });
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
  if (report?.message !== undefined) {
    stdout.write(
      `WARNING: NOTHING WAS AUDITED: the registry gives no answer (${report.message})\n` +
        'WARNING: run `npm run audit` where it does before a release\n',
    );
    return 0;
  }
  stdout.write(`the audit went wrong: ${report?.error?.summary ?? stderr}\n`);
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
