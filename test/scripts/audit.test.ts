import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';

const SCRIPT = fileURLToPath(new URL('../../scripts/audit.mjs', import.meta.url));

/** Runs the script with an `npm` that prints this and ends with 1, as it does for all but an empty report. */
function audit(printed: string) {
  const folder = mkdtempSync(join(tmpdir(), 'cellarstream-audit-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, 'answer'), printed);
  writeFileSync(join(folder, 'npm'), `#!/bin/sh\ncat '${join(folder, 'answer')}'\nexit 1\n`, {
    mode: 0o755,
  });
  const PATH = [folder, dirname(process.execPath), process.env.PATH].join(delimiter);
  const { status, stdout } = spawnSync(process.execPath, [SCRIPT], {
    env: { ...process.env, PATH },
    encoding: 'utf8',
  });
  return { status, stdout };
}

const metadata = { dependencies: { prod: 61 } };

it('passes when nothing is found', () => {
  expect(audit(JSON.stringify({ vulnerabilities: {}, metadata }))).toEqual({
    status: 0,
    stdout: '0 vulnerable of 61 dependencies\n',
  });
});

it('fails on a finding, even a low one, and names it', () => {
  const via = [{ title: 'It leaks', url: 'https://advisories.example/1' }];
  const finding = { name: 'left', severity: 'low', range: '<2', via };
  expect(audit(JSON.stringify({ vulnerabilities: { left: finding }, metadata }))).toEqual({
    status: 1,
    stdout:
      'low: left <2: It leaks https://advisories.example/1\n1 vulnerable of 61 dependencies\n',
  });
});

const error = { summary: '', detail: '' };

it.each([
  { message: '404 Not Found', statusCode: 404 },
  { message: '405 Method Not Allowed', statusCode: 405 },
  { message: '501 Not Implemented', statusCode: 501 },
  { message: 'request to https://a.example failed, reason: connect ECONNREFUSED 10.0.0.1:443' },
  { message: 'request to https://a.example failed, reason: getaddrinfo ENOTFOUND a.example' },
  { message: 'network timeout at: https://a.example' },
])('says loudly that nothing was audited where no registry audits: %j', (answer) => {
  const { status, stdout } = audit(JSON.stringify({ ...answer, error }));
  expect(status).toBe(0);
  expect(stdout).toContain(
    `WARNING: NOTHING WAS AUDITED: the registry gives no answer (${answer.message})`,
  );
});

it.each([
  { message: '401 Unauthorized', statusCode: 401 },
  { message: '403 Forbidden', statusCode: 403 },
  { message: '500 Internal Server Error', statusCode: 500 },
  { message: 'request to https://a.example failed, reason: self-signed certificate' },
])('fails where one could have audited: %j', (answer) => {
  expect(audit(JSON.stringify({ ...answer, error }))).toEqual({
    status: 1,
    stdout: `the audit went wrong: ${answer.message}\n`,
  });
});

it('reads a long report to its end', () => {
  const calm = { vulnerabilities: {}, metadata, advisories: 'x'.repeat(2_000_000) };
  expect(audit(JSON.stringify(calm)).status).toBe(0);
});

it.each([
  ['no lock file', JSON.stringify({ error: { code: 'ENOLOCK', summary: 'no lock file' } })],
  ['no JSON', 'npm is broken'],
])('fails when the audit itself goes wrong: %s', (_, printed) => {
  expect(audit(printed).status).toBe(1);
});
