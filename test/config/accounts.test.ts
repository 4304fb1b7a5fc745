import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { accountNames, loadAccounts } from '../../src/config/accounts.ts';
import type { AccountFile } from '../../src/config/accounts.ts';
import { loadConfig } from '../../src/config/load-config.ts';

const INSTANCE = {
  API_BASE_URL: 'http://localhost:1',
  API_KEY: 'key-of-the-environment',
  KAFKA_BROKERS: 'localhost:2',
  SCHEMA_REGISTRY_URL: 'http://localhost:3',
  POLL_INTERVAL_MS: '5000',
  ACCOUNTS_DIR: 'accounts',
  STATE_DIR: 'state',
};

function folder(files: Readonly<Record<string, string>>): string {
  const cwd = mkdtempSync(join(tmpdir(), 'cellarstream-accounts-'));
  onTestFinished(() => rmSync(cwd, { recursive: true }));
  mkdirSync(join(cwd, 'accounts'));
  for (const [name, text] of Object.entries(files))
    writeFileSync(join(cwd, 'accounts', name), text);
  return cwd;
}

function load(files: Readonly<Record<string, string>>, env: Record<string, string> = INSTANCE) {
  const cwd = folder(files);
  const config = loadConfig({ env, cwd });
  return {
    cwd,
    accounts: loadAccounts({ env, cwd, config: { ...config, accountsDir: config.accountsDir! } }),
  };
}

const configOf = (file: AccountFile | undefined) =>
  file && 'config' in file ? file.config : undefined;
const errorOf = (file: AccountFile | undefined) =>
  file && 'error' in file && file.error instanceof Error ? file.error.message : undefined;

describe('accounts', () => {
  it('have what their file says, then what the environment says', () => {
    const { cwd, accounts } = load({
      'east.env': 'API_KEY=east-key\nPOLL_INTERVAL_MS=700\n',
      'west.env': 'API_KEY=west-key\nTOPIC_PREFIX=western\nRESOURCES=orders\n',
    });
    expect([...accounts.keys()]).toEqual(['east', 'west']);
    const [east, west] = [configOf(accounts.get('east'))!, configOf(accounts.get('west'))!];
    expect(east).toMatchObject({
      account: 'east',
      topics: { prefix: 'wine.east', sharedPrefix: 'wine' },
      poll: { intervalMs: 700 },
      stateDir: join(cwd, 'state', 'east'),
    });
    expect(east.api.credentials.api_key!.reveal()).toBe('east-key');
    expect(west).toMatchObject({
      account: 'west',
      topics: { prefix: 'western', sharedPrefix: 'wine' },
      poll: { intervalMs: 5_000 },
      resources: ['orders'],
    });
  });

  it('are files that end in .env, and do not begin with a dot', () => {
    const cwd = folder({ 'b.env': '', 'a.env': '', '.env': '', '.c.env': '', 'notes.txt': '' });
    expect(accountNames(join(cwd, 'accounts'))).toEqual(['a', 'b']);
  });

  it('take their key from the file though the environment names a file for it', () => {
    const env = { ...INSTANCE, API_KEY: '', API_KEY_FILE: 'accounts/key.txt' };
    const { accounts } = load({ 'east.env': 'API_KEY=east-key\n', 'key.txt': 'another' }, env);
    expect(configOf(accounts.get('east'))?.api.credentials.api_key!.reveal()).toBe('east-key');
  });

  it('are wrong by themselves, in a line that names the file and no secret', () => {
    const { accounts } = load({
      'a.env': 'API_KEY=first-key\n',
      'b.env': 'API_KEY=second-key\nPAGE_SIZE=many\n',
      'c.env': 'API_KEY=third-key\nKAFKA_BROKERS=elsewhere:1\n',
      'd.env': 'API_KEY=first-key\n',
      'e.env': 'API_KEY=fifth-key\nTOPIC_PREFIX=wine.a\n',
      'f g.env': 'API_KEY=sixth-key\n',
    });
    expect(configOf(accounts.get('a'))).toBeDefined();
    expect([...accounts.values()].map(errorOf)).toEqual([
      undefined,
      'b.env: 1 setting is wrong:\n- PAGE_SIZE must be a whole number from 21 to 1000 (pages overlap)',
      "c.env: KAFKA_BROKERS can't be set in the file of an account: these are settings of the instance, which belong in its environment, or misspelled names",
      'd.env: API_KEY has the same value in a.env: each account needs a value of its own',
      'e.env: TOPIC_PREFIX has the same value in a.env: each account needs a value of its own',
      'f g.env: is not a valid name of an account: use letters, digits, dots, hyphens or underscores',
    ]);
  });

  it('need a folder that can be read', () => {
    expect(() => accountNames('/nowhere')).toThrow(
      "ACCOUNTS_DIR can't be read (ENOENT): it must be a folder with a file <account>.env for each account",
    );
  });
});
