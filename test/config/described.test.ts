import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { loadAccount } from '../../src/config/accounts.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import { settingWarnings } from '../../src/config/setting-warnings.ts';
import { CellarstreamError } from '../../src/core/errors.ts';
import { WINE } from '../../src/description/wine/wine.ts';
import { MISTAKES } from '../description/mistakes.ts';

const STORE = join(import.meta.dirname, 'store.yaml');
/** The folder with the schema files that descriptions of the tests name. */
const SRC = fileURLToPath(new URL('../../src/', import.meta.url));
const SHOP = join(import.meta.dirname, '../description/shop.yaml');

const API = {
  API_BASE_URL: 'https://store.example/api/',
  API_KEY: 'k3y',
  API_PARAM_REGION: 'north',
};

/** A working folder with store.yaml. */
function folder(): string {
  const cwd = mkdtempSync(join(tmpdir(), 'cellarstream-described-'));
  onTestFinished(() => rmSync(cwd, { recursive: true }));
  copyFileSync(STORE, join(cwd, 'store.yaml'));
  return cwd;
}

function load(env: Readonly<Record<string, string>> = {}, cwd = folder()) {
  return loadConfig({
    env: { API_DESCRIPTION: 'store.yaml', ...API, ...env },
    cwd,
    needs: ['api'],
  });
}

/** The lines of the error that `work` throws. */
function linesOf(work: () => unknown): string[] {
  try {
    work();
  } catch (error) {
    if (error instanceof CellarstreamError && error.code === 'SETTINGS')
      return error.message.split('\n');
    throw error;
  }
  return [];
}

describe('the settings of a described API', () => {
  it('have the defaults of its description', () => {
    const config = load();
    expect(config).toMatchObject({
      description: { api: 'store' },
      topics: { prefix: 'store', sharedPrefix: 'store' },
      resources: ['sales', 'price-rules'],
      poll: { pageSize: 250 },
      quota: { perMinute: 30, loginsPerMinute: 4, scope: 'key' },
      keyFields: { sales: undefined, 'price-rules': undefined },
    });
    expect(config.api).toMatchObject({
      baseUrl: 'https://store.example', // every path begins with /api
      parameters: { region: 'north' },
    });
  });

  it('are the same with another way to write them', () => {
    const given = load({
      API_BASE_URL: 'https://store.example',
      RESOURCES: 'price-rules',
      KEY_FIELDS_PRICE_RULES: 'code, region',
      KEY_FIELDS_SALES: 'sale_id',
      PAGE_SIZE: '100',
      PII_DROP: 'sales.email,price-rules.contact.phone',
      VOLATILE_FIELDS: 'price-rules:/views',
      TOPIC_PREFIX: 'shop',
    });
    expect(given).toMatchObject({
      api: { baseUrl: 'https://store.example' },
      resources: ['price-rules'],
      keyFields: { 'price-rules': ['code', 'region'], sales: ['sale_id'] },
      poll: { pageSize: 100 },
      pii: {
        drop: [
          { resource: 'sales', path: ['email'] },
          { resource: 'price-rules', path: ['contact', 'phone'] },
        ],
      },
      volatileFields: [{ resource: 'price-rules', path: ['views'] }],
      topics: { prefix: 'shop' },
    });
  });

  it.each([
    [
      { RESOURCES: 'orders' },
      'RESOURCES contains "orders", but must contain names of lists, separated by commas: sales, price-rules',
    ],
    [
      { KEY_FIELDS_ORDERS: 'id' },
      'KEY_FIELDS_ORDERS belongs to no list: the settings that begin with KEY_FIELDS_ are KEY_FIELDS_SALES, KEY_FIELDS_PRICE_RULES',
    ],
    [
      { KEY_FIELDS_SALES: 'id' },
      'KEY_FIELDS_SALES must be sale_id: single sales are requested by this field',
    ],
    [{ PAGE_SIZE: '251' }, 'PAGE_SIZE must be a whole number from 21 to 250 (pages overlap)'],
    [
      { PII_DROP: 'orders.email' },
      'PII_DROP must be fields such as sales.email or sales.addresses.street, separated by commas (a path means every element of an array: no indexes, and no [ ] / *); the first word is one of sales, price-rules',
    ],
    [
      { PII_DROP: 'sales.sale_id' },
      "PII_DROP names sales.sale_id: the service depends on it, so it can't be hidden",
    ],
    [
      { PII_DROP: 'sales.payment' },
      'PII_DROP names sales.payment: the service depends on payment.state in it; name its other fields instead',
    ],
    [
      { PII_MASK: 'sales.changed' },
      "PII_MASK names sales.changed: the service depends on it, so it can't be hidden",
    ],
    [{ PII_DROP: 'sales.updated_at' }, undefined],
    [
      { VOLATILE_FIELDS: 'orders:/a' },
      'VOLATILE_FIELDS must be JSON Pointers such as price-rules:/image_url or price-rules:/images/url, separated by commas (a path means every element of an array: no indexes, and no [ ] *); the word before the colon is one of sales, price-rules',
    ],
    [
      { API_PARAM_REGION: '' },
      'API_PARAM_REGION is not set: store.yaml:3:14 parameters.0: {region} needs API_PARAM_REGION',
    ],
    [
      { API_PARAM_SHOP: 'a' },
      'API_PARAM_SHOP belongs to no parameter of the description: the settings that begin with API_PARAM_ are API_PARAM_REGION',
    ],
  ])('of which some are wrong: %j', (env, line) => {
    const lines = linesOf(() => load(env));
    expect(lines).toEqual(line === undefined ? [] : ['1 setting is wrong:', `- ${line}`]);
  });

  it('warn of nothing that the description allows', () => {
    const cwd = folder();
    const env = { ...API, PII_DROP: 'price-rules.any', API_DESCRIPTION: 'store.yaml' };
    expect(settingWarnings(load(env, cwd), { env, cwd })).toEqual([]);
  });

  it('give no access to the API while a parameter in the address of its login has no value', () => {
    const { API_BASE_URL, API_KEY } = API;
    const env = { API_DESCRIPTION: 'store.yaml', API_BASE_URL, API_KEY };
    expect(loadConfig({ env, cwd: folder() }).api).toBeUndefined();
  });

  it('belong to the instance of a fleet, but for those of an account', () => {
    const cwd = folder();
    const accounts = join(cwd, 'accounts');
    mkdirSync(accounts);
    const { API_BASE_URL, API_KEY } = API;
    const source = {
      env: { API_BASE_URL, API_DESCRIPTION: 'store.yaml', ACCOUNTS_DIR: 'accounts' },
      cwd,
    };
    const { accountsDir = '', ...own } = loadConfig(source);
    const account = (text: string) => {
      writeFileSync(join(accounts, 'a.env'), text);
      return loadAccount('a', { ...source, config: { ...own, accountsDir } }, ['api']);
    };
    const found = account(
      `API_KEY=${API_KEY}\nAPI_PARAM_REGION=south\nKEY_FIELDS_PRICE_RULES=code\n`,
    );
    expect(found).toMatchObject({
      api: { parameters: { region: 'south' } },
      keyFields: { 'price-rules': ['code'] },
      topics: { prefix: 'store.a', sharedPrefix: 'store' },
    });
    expect(found.description).toBe(own.description);
    expect(linesOf(() => account('API_DESCRIPTION=store.yaml\nKEY_FIELDS_ORDERS=id\n'))).toEqual([
      "a.env: API_DESCRIPTION, KEY_FIELDS_ORDERS can't be set in the file of an account: these are settings of the instance, which belong in its environment, or misspelled names",
    ]);
  });
});

describe('API_DESCRIPTION', () => {
  it('is the built-in API if it is unset', () => {
    const { description, topics } = loadConfig({ env: {}, cwd: folder() });
    expect(description).toBe(WINE);
    expect(topics.prefix).toBe('wine');
  });

  it('may be in .env', () => {
    const cwd = folder();
    writeFileSync(join(cwd, '.env'), 'API_DESCRIPTION=store.yaml');
    expect(loadConfig({ env: {}, cwd }).description.api).toBe('store');
  });

  it('must name a file that can be read', () => {
    const cwd = folder();
    const env = { API_DESCRIPTION: 'none.yaml' };
    expect(linesOf(() => loadConfig({ env, cwd }))).toEqual([
      '1 setting is wrong:',
      "- API_DESCRIPTION can't be read (ENOENT): check the path and its permissions",
    ]);
  });

  it.each(MISTAKES)('must name a valid description: %j -> %j', (before, after, ...lines) => {
    const cwd = folder();
    const text = readFileSync(SHOP, 'utf8').replace(before, after);
    writeFileSync(join(cwd, 'shop.yaml'), text.replaceAll('../../src/', SRC));
    const env = { API_DESCRIPTION: 'shop.yaml', RESOURCES: 'wrong' };
    expect(linesOf(() => loadConfig({ env, cwd }))).toEqual(
      lines.map((line) => `shop.yaml:${line}`),
    );
  });
});

describe('a copy of the built-in description', () => {
  /** A folder with a copy of wine.yaml and its schemas. */
  function copied(change: (text: string) => string = (text) => text): string {
    const cwd = folder();
    for (const file of ['wine.yaml', 'order.avsc', 'order-status-change.avsc'])
      writeFileSync(
        join(cwd, file),
        change(readFileSync(join(SRC, 'description/wine', file), 'utf8')),
      );
    return cwd;
  }
  const load = (cwd: string) => loadConfig({ env: { API_DESCRIPTION: 'wine.yaml' }, cwd });

  it('gives the same configuration as the built-in one, so the same bytes', () => {
    const { description, ...settings } = load(copied());
    const { description: builtIn, ...builtInSettings } = loadConfig({ env: {}, cwd: folder() });
    expect({ ...description, settingUses: {} }).toEqual(builtIn); // the places of settings are for messages
    const place = { stateDir: '' };
    expect({ ...settings, ...place }).toEqual({ ...builtInSettings, ...place });
  });

  it('needs one more entry for a seventh list', () => {
    const cwd = copied((text) =>
      text.replace(
        '  products:\n',
        '  vendors: { path: /v1/vendors, dates: *dates, key: id }\n  products:\n',
      ),
    );
    const { resources, keyFields } = load(cwd);
    expect(resources).toContain('vendors');
    expect(resources).toHaveLength(7);
    expect(keyFields).toHaveProperty('vendors');
  });
});
