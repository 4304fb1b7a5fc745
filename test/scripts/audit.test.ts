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

it('says loudly that nothing was audited when the registry does not answer', () => {
  const { status, stdout } = audit(
    JSON.stringify({ message: '405 Method Not Allowed', error: { summary: '', detail: '' } }),
  );
  expect(status).toBe(0);
  expect(stdout).toMatch(/^WARNING: NOTHING WAS AUDITED: .*405 Method Not Allowed/);
});

it.each([
  ['no lock file', JSON.stringify({ error: { code: 'ENOLOCK', summary: 'no lock file' } })],
  ['no JSON', 'npm is broken'],
])('fails when the audit itself goes wrong: %s', (_, printed) => {
  expect(audit(printed).status).toBe(1);
});
