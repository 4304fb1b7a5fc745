import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { loadAccount } from '../../src/config/accounts.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import { settingWarnings } from '../../src/config/setting-warnings.ts';

const API = { API_BASE_URL: 'https://api.example' };
const KEY = 'k\u00e9y-1';
const MARK = Buffer.from('\ufeff');

let cwd: string;
beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), 'cellarstream-settings-'));
});
afterEach(() => rmSync(cwd, { recursive: true }));

const write = (name: string, bytes: Buffer) => writeFileSync(join(cwd, name), bytes);
const load = (env: Record<string, string>) =>
  loadConfig({ env: { ...API, ...env }, cwd, needs: ['api'] });
const keyOf = (env: Record<string, string>) => load(env).api.credentials.api_key!.reveal();
const utf16 = (text: string) => Buffer.from(text, 'utf16le');
const bigEndian = (text: string) => utf16(text).swap16();

it('sends an API key without the byte order mark of its file', () => {
  write('key', Buffer.concat([MARK, Buffer.from(`${KEY}\r\n`)]));
  expect(keyOf({ API_KEY_FILE: 'key' })).toBe(KEY);
});

it.each([
  ['UTF-16 with a mark, as PowerShell writes', utf16(`\ufeff${KEY}`)],
  ['big-endian UTF-16 with a mark', bigEndian(`\ufeff${KEY}`)],
  ['UTF-16 without a mark', utf16('key-1')],
  ['Latin-1', Buffer.from(KEY, 'latin1')],
])('refuses a secret file in %s, by the name of its setting', (_, bytes) => {
  write('key', bytes);
  expect(() => load({ API_KEY_FILE: 'key' })).toThrow(
    /^1 setting is wrong:\n- API_KEY_FILE names a file that is not UTF-8.*: save the file as UTF-8/,
  );
});

it('reads certificates and .env behind a byte order mark', () => {
  write('.env', Buffer.concat([MARK, Buffer.from(`API_KEY=${KEY}\n`)]));
  expect(keyOf({})).toBe(KEY);
});

it('refuses a .env that is not UTF-8', () => {
  write('.env', utf16(`\ufeffAPI_KEY=${KEY}\n`));
  expect(() => load({ API_KEY: KEY })).toThrow('\n- .env is not UTF-8 but UTF-16 or binary');
});

it('reads the file of an account likewise', () => {
  const config = { ...load({ API_KEY: KEY }), accountsDir: cwd };
  const options = { env: {}, cwd, config };
  const text = `API_BASE_URL=https://api.example\nAPI_KEY=${KEY}\n`;
  write('a.env', Buffer.concat([MARK, Buffer.from(text)]));
  expect(loadAccount('a', options, ['api']).api.credentials.api_key!.reveal()).toBe(KEY);
  write('b.env', utf16(`\ufeff${text}`));
  expect(() => loadAccount('b', options, ['api'])).toThrow(
    /^b\.env: is not UTF-8 but UTF-16 or binary/,
  );
});

const QUOTED = 'is in quotes: docker run --env-file and Kubernetes keep them, so remove them there';

it.each([`"${KEY}"`, `'${KEY}'`])('warns of a secret that is still in quotes: %s', (API_KEY) => {
  const source = { env: { ...API, API_KEY }, cwd };
  expect(settingWarnings(load({ API_KEY }), source)).toEqual([{ name: 'API_KEY', advice: QUOTED }]);
});

it.each([`${KEY} `, ` ${KEY}`, `${KEY}\t`, `${KEY}\u00a0`, `\u200b${KEY}`, `${KEY}\n${KEY}`])(
  'warns of a secret with white space that is hardly part of it: %j',
  (text) => {
    write('key', Buffer.from(`${text}\r\n`));
    const API_KEY_FILE = join(cwd, 'key');
    const warnings = settingWarnings(load({ API_KEY_FILE }), {
      env: { ...API, API_KEY_FILE },
      cwd,
    });
    expect(warnings.map(({ name }) => name)).toEqual(['API_KEY']);
    expect(warnings[0]!.advice).toMatch(/^begins or ends with a space, or contains a line break/);
    expect(keyOf({ API_KEY_FILE })).toBe(text);
  },
);

it('says of a wrong value in quotes that the quotes are part of it', () => {
  expect(() => load({ API_KEY: KEY, HTTP_PORT: '"9464"' })).toThrow(
    `- HTTP_PORT must be a whole number from 0 to 65535; it ${QUOTED}`,
  );
});

it('does not warn of quotes within a value, nor of those that .env removes', () => {
  write('.env', Buffer.from(`API_KEY="${KEY}"\n`));
  const source = { env: { ...API, ACCOUNT_NAME: 'a' }, cwd };
  expect(settingWarnings(load({}), source)).toEqual([]);
  expect(keyOf({ API_KEY: `a"b"c` })).toBe(`a"b"c`);
});
