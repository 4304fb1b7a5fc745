import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { expectNotRefuted } from '../../src/commands/run.ts';
import { loadConfig } from '../../src/config/load-config.ts';

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

const LIST = '{ path: /wines, records: "", paging: none, key: id }';
const DESCRIPTION = `format: 1
api: cellar
auth: { login: { path: /login, body: { key: '{api_key}' }, token: /token } }
quota: 60/min per key
lists: { wines: ${LIST}, casks: ${LIST} }
`;
const REFUTED = `measured:
  date: 2026-05-01
  lists:
    wines: { refuted: [key, one], notRefuted: [order] }
    casks: { refuted: [], notRefuted: [key] }
`;

/** Settings of a folder with these files. */
function settings(files: Readonly<Record<string, string>>, env: Readonly<Record<string, string>>) {
  const cwd = mkdtempSync(join(tmpdir(), 'refuted-'));
  folders.push(cwd);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(cwd, name), text);
  return { cwd, env };
}

const API_DESCRIPTION = 'cellar.yaml';

describe('refuted claims', () => {
  it('of the description end run, a line for each', () => {
    const source = settings({ 'cellar.yaml': DESCRIPTION + REFUTED }, { API_DESCRIPTION });
    expect(() => expectNotRefuted(loadConfig(source))).toThrow(
      [
        'API_DESCRIPTION: lists.wines: key was refuted on 2026-05-01; name the fields that identify a record, and run check --measure again',
        'API_DESCRIPTION: lists.wines: one was refuted on 2026-05-01; correct path, query or gone in it, or remove it from the description, and run check --measure again',
        'To start despite refuted claims, use `cellarstream run --believe`',
      ].join('\n'),
    );
  });

  it('of lists that are not read do not matter', () => {
    const env = { API_DESCRIPTION, RESOURCES: 'casks' };
    const source = settings({ 'cellar.yaml': DESCRIPTION + REFUTED }, env);
    expect(() => expectNotRefuted(loadConfig(source))).not.toThrow();
  });

  it('of the file that MEASURED names count, in place of those of the description', () => {
    const files = {
      'cellar.yaml': DESCRIPTION + REFUTED,
      'new.yaml': `# wines  key  not refuted\n${REFUTED.replace('key, one', '')}`,
      'old.yaml': REFUTED.replace('key, one', 'key'),
    };
    const corrected = settings(files, { API_DESCRIPTION, MEASURED: 'new.yaml' });
    expect(() => expectNotRefuted(loadConfig(corrected))).not.toThrow();
    const refuted = settings(files, { API_DESCRIPTION, MEASURED: 'old.yaml' });
    expect(() => expectNotRefuted(loadConfig(refuted))).toThrow(
      /^MEASURED old\.yaml: lists\.wines: key was refuted on 2026-05-01/,
    );
  });

  it.each([
    [
      undefined,
      'MEASURED cannot be read: ENOENT; write the file with `cellarstream check --measure`',
    ],
    [
      'measured: {date: today, lists: {}}',
      'MEASURED measured.date expected the day of the measurement',
    ],
    [
      'measured: {date: 2026-05-01, lists: {wines: {refuted: [colour]}}}',
      'MEASURED measured.lists.wines.refuted.0 expected a claim: key, order,',
    ],
  ])('a wrong file is refused: %s', (text, message) => {
    const files = { 'cellar.yaml': DESCRIPTION, ...(text !== undefined && { 'm.yaml': text }) };
    const source = settings(files, { API_DESCRIPTION, MEASURED: 'm.yaml' });
    expect(() => expectNotRefuted(loadConfig(source))).toThrow(message);
  });

  it('of a list that the description does not have are a mistake in it', () => {
    const text = DESCRIPTION + REFUTED.replace('casks', 'barrels');
    const source = settings({ 'cellar.yaml': text }, { API_DESCRIPTION });
    expect(() => loadConfig(source)).toThrow(
      'cellar.yaml:10:5 measured.lists.barrels is not the name of a list in `lists`: correct the name, or remove this entry',
    );
  });
});
