import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { oneAccount } from '../../src/commands/one-account.ts';

const SHARED = {
  API_BASE_URL: 'https://api.example',
  KAFKA_BROKERS: 'kafka:9092',
  SCHEMA_REGISTRY_URL: 'http://registry:8081',
};

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'one-account-'))));
afterEach(() => rmSync(folder, { recursive: true }));

describe('with ACCOUNTS_DIR', () => {
  const load = (account?: string) =>
    oneAccount({ env: { ...SHARED, ACCOUNTS_DIR: folder }, cwd: folder }, account, ['api']);
  const write = (account: string, text = `API_KEY=key-of-${account}\n`) =>
    writeFileSync(join(folder, `${account}.env`), text);

  it('has the settings of the file', () => {
    write('east');
    const config = load('east');
    expect(config.api.credentials.api_key!.reveal()).toBe('key-of-east');
    expect(config.account).toBe('east');
    expect(config.topics).toMatchObject({ prefix: 'wine.east', sharedPrefix: 'wine' });
  });

  it('asks no more of the file than the command needs', () => {
    write('east', 'RESOURCES=orders\n');
    const source = { env: { ...SHARED, ACCOUNTS_DIR: folder }, cwd: folder };
    expect(oneAccount(source, 'east', ['kafka']).resources).toEqual(['orders']);
    expect(() => oneAccount(source, 'east', ['api'])).toThrow(/^east\.env: .*\n- API_KEY is not/);
  });

  it('needs a name, and says which there are', () => {
    expect(() => load()).toThrow('--account is needed: ACCOUNTS_DIR has no file <account>.env');
    write('east');
    write('west');
    expect(() => load()).toThrow(
      '--account is needed: the accounts of ACCOUNTS_DIR are east, west',
    );
    expect(() => load('north')).toThrow('--account north: the accounts of ACCOUNTS_DIR are east');
    expect(() => load('../east')).toThrow('--account ../east: the accounts');
  });

  it('names ten of many', () => {
    for (let n = 100; n < 150; n += 1) write(`a${n}`);
    expect(() => load()).toThrow(/are a100, .*a109, and 40 more$/);
  });
});

describe('without ACCOUNTS_DIR', () => {
  const load = (account?: string, env = {}) =>
    oneAccount({ env: { ...SHARED, API_KEY: 'k', ...env }, cwd: folder }, account, ['api']);

  it('knows the account of the environment alone', () => {
    expect(load().account).toBe('default');
    expect(load('default').account).toBe('default');
    expect(load('east', { ACCOUNT_NAME: 'east' }).account).toBe('east');
    expect(() => load('east')).toThrow(
      '--account east: the settings have only the account default (ACCOUNT_NAME)',
    );
  });

  it('says all that is wrong at once, what is missing too', () => {
    expect(() => load('east', { API_KEY: '', PAGE_SIZE: 'many' })).toThrow(
      /^2 settings are wrong:[^]*PAGE_SIZE[^]*API_KEY/,
    );
  });
});
