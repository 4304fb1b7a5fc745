import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { parse } from 'dotenv';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { LOG_LEVELS } from '../../src/config/config.ts';
import { settingsFor } from '../../src/config/settings.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import type { Config, ConfigWith, Need } from '../../src/config/config.ts';
import { CellarstreamError } from '../../src/core/errors.ts';
import { Secret } from '../../src/core/secret.ts';
import { authority } from '../support/certificates.ts';
import { WINE } from '../../src/description/wine/wine.ts';
import { RESOURCES } from '../../src/sandbox/resources.ts';

const ALL: readonly Need[] = ['api', 'kafka', 'registry'];
const COMPLETE = {
  API_BASE_URL: 'https://api.example',
  API_KEY: 'k3y',
  KAFKA_BROKERS: 'a.example:9092',
  SCHEMA_REGISTRY_URL: 'http://registry.example:8081',
};
const AUTHORITY = authority('our authority');
const PEM = AUTHORITY.cert;
const CLIENT = AUTHORITY.issue();

/** The registry's password, where it takes one. */
const registryPasswordOf = ({ registry }: Config) =>
  registry?.auth?.kind === 'basic' ? registry.auth.password : undefined;

let cwd: string;
beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), 'config-'));
});
afterEach(() => rmSync(cwd, { recursive: true }));

const file = (name: string, text: string) => writeFileSync(join(cwd, name), text);
/** The password at the brokers. */
const kafkaPasswordOf = ({ kafka }: Config): Secret | undefined =>
  kafka?.sasl && 'password' in kafka.sasl ? kafka.sasl.password : undefined;
const load = (env: Record<string, string | undefined> = {}): Config => loadConfig({ env, cwd });

/** What is wrong with settings: name -> advice; empty when nothing is. */
function wrong(
  env: Record<string, string | undefined>,
  needs: readonly Need[] = [],
): Record<string, string> {
  try {
    loadConfig({ env, cwd, needs });
    return {};
  } catch (error) {
    expect(error).toBeInstanceOf(CellarstreamError);
    expect(error).toMatchObject({ code: 'SETTINGS' });
    const [count, ...lines] = (error as Error).message.split('\n');
    expect(count).toBe(
      lines.length === 1 ? '1 setting is wrong:' : `${lines.length} settings are wrong:`,
    );
    return Object.fromEntries(
      lines.map((line) => {
        const [, name = '', advice = ''] = /^- (\S+) (.+)$/.exec(line) ?? [];
        return [name, advice];
      }),
    );
  }
}

describe('loadConfig', () => {
  it('has a default for what can have one', () => {
    expect(load()).toEqual({
      description: WINE,
      api: undefined,
      kafka: undefined,
      registry: undefined,
      account: 'default',
      topics: { prefix: 'wine', sharedPrefix: 'wine', partitions: 6, replication: undefined },
      accountsDir: undefined,
      instanceName: undefined,
      resources: [
        ...['orders', 'customers', 'inventory'],
        ...['wine-clubs', 'wine-club-members', 'products'],
      ],
      poll: {
        intervalMs: undefined,
        lookbackMs: 60_000,
        sweepIntervalMs: 86_400_000,
        startFrom: undefined,
        pageSize: 1000,
        deleteLimitPercent: 5,
        deleteProofMs: 60_000,
      },
      certificateIntervalMs: 60_000,
      quota: { perMinute: 100, loginsPerMinute: 10, scope: 'endpoint', firstReadPercent: 73 },
      pii: { drop: [], mask: [], hmac: [], hmacKey: undefined },
      volatileFields: [],
      keyFormat: 'text',
      keyFields: Object.fromEntries(RESOURCES.map((resource) => [resource, undefined])),
      stateDir: join(cwd, '.cellarstream'),
      http: { host: '127.0.0.1', port: 9464 },
      logLevel: 'info',
    });
  });

  it('reads every setting', () => {
    file('ca.pem', PEM);
    file('client.pem', CLIENT.cert);
    file('client-key.pem', CLIENT.key);
    const config: ConfigWith<Need> = loadConfig({
      cwd,
      needs: ALL,
      env: {
        API_BASE_URL: 'https://api.example/wine/v1/',
        API_LOGIN_URL: 'https://login.example/v1/auth/public/login/',
        API_CA_FILE: 'ca.pem',
        API_KEY: 'k3y',
        API_KEY_PATIENCE_MS: '0',
        ACCOUNT_NAME: 'north.1',
        KAFKA_BROKERS: ' a.example:9092, 10.0.0.1:9093,',
        KAFKA_SSL: 'true',
        KAFKA_SSL_CA_FILE: join(cwd, 'ca.pem'),
        KAFKA_SASL_MECHANISM: 'SCRAM-SHA-512',
        KAFKA_SASL_USERNAME: 'user',
        KAFKA_SASL_PASSWORD: 'pass',
        SCHEMA_REGISTRY_URL: 'https://registry.example/apis/ccompat/v7/',
        SCHEMA_REGISTRY_USERNAME: 'reader',
        SCHEMA_REGISTRY_PASSWORD: 'word',
        SCHEMA_REGISTRY_CA_FILE: 'ca.pem',
        SCHEMA_REGISTRY_CERT_FILE: 'client.pem',
        SCHEMA_REGISTRY_KEY_FILE: 'client-key.pem',
        SCHEMA_REGISTRY_HEADERS: 'X-Tenant: wines',
        TOPIC_PREFIX: 'cellar_1',
        TOPIC_PARTITIONS: '12',
        TOPIC_REPLICATION: '2',
        RESOURCES: 'orders, products,orders',
        POLL_INTERVAL_MS: '100',
        LOOKBACK_MS: '0',
        SWEEP_INTERVAL_MS: '3600000',
        START_FROM: '2025-01-31T08:00+02:00',
        QUOTA_PER_MINUTE: '50',
        LOGIN_QUOTA_PER_MINUTE: '5',
        QUOTA_SCOPE: 'key',
        INITIAL_SNAPSHOT_PERCENT: '90',
        PAGE_SIZE: '21',
        DELETE_LIMIT_PERCENT: '2.5',
        DELETE_PROOF_MS: '30000',
        CERTIFICATE_INTERVAL_MS: '5000',
        PII_DROP: 'orders.email,orders.tender_info.last_four',
        PII_MASK: 'customers.phone',
        PII_HMAC: 'wine-club-members.email',
        PII_HMAC_KEY: 'sixteen letters.',
        VOLATILE_FIELDS: 'products:/image_url, inventory:/a~1b/images/url',
        KEY_FORMAT: 'avro',
        KEY_FIELDS_ORDERS: 'order_number',
        KEY_FIELDS_CUSTOMERS: 'id',
        KEY_FIELDS_INVENTORY: 'sku, location',
        KEY_FIELDS_WINE_CLUBS: 'club id',
        KEY_FIELDS_WINE_CLUB_MEMBERS: 'member',
        KEY_FIELDS_PRODUCTS: 'handle',
        ACCOUNTS_DIR: 'accounts',
        INSTANCE_NAME: 'host-1.a',
        STATE_DIR: 'state',
        HTTP_HOST: '::1',
        HTTP_PORT: '0',
        LOG_LEVEL: 'Debug',
      },
    });

    expect(config).toEqual({
      description: WINE,
      api: {
        baseUrl: 'https://api.example/wine',
        loginUrl: 'https://login.example/v1/auth/public/login/',
        credentials: { api_key: expect.any(Secret) as Secret },
        keyPatienceMs: 0,
        ca: PEM,
      },
      kafka: {
        brokers: ['a.example:9092', '10.0.0.1:9093'],
        ssl: { ca: PEM, client: undefined },
        sasl: {
          mechanism: 'scram-sha-512',
          username: 'user',
          password: expect.any(Secret) as Secret,
        },
      },
      registry: {
        url: 'https://registry.example/apis/ccompat/v7',
        auth: { kind: 'basic', username: 'reader', password: expect.any(Secret) as Secret },
        headers: { 'x-tenant': expect.any(Secret) as Secret },
        ca: PEM,
        client: { cert: CLIENT.cert, key: expect.any(Secret) as Secret },
      },
      account: 'north.1',
      topics: { prefix: 'cellar_1', sharedPrefix: 'cellar_1', partitions: 12, replication: 2 },
      accountsDir: join(cwd, 'accounts'),
      instanceName: 'host-1.a',
      resources: ['orders', 'products'],
      poll: {
        intervalMs: 100,
        lookbackMs: 0,
        sweepIntervalMs: 3_600_000,
        startFrom: Date.UTC(2025, 0, 31, 6),
        pageSize: 21,
        deleteLimitPercent: 2.5,
        deleteProofMs: 30_000,
      },
      certificateIntervalMs: 5_000,
      quota: { perMinute: 50, loginsPerMinute: 5, scope: 'key', firstReadPercent: 90 },
      pii: {
        drop: [
          { resource: 'orders', path: ['email'] },
          { resource: 'orders', path: ['tender_info', 'last_four'] },
        ],
        mask: [{ resource: 'customers', path: ['phone'] }],
        hmac: [{ resource: 'wine-club-members', path: ['email'] }],
        hmacKey: expect.any(Secret) as Secret,
      },
      volatileFields: [
        { resource: 'products', path: ['image_url'] },
        { resource: 'inventory', path: ['a/b', 'images', 'url'] },
      ],
      keyFormat: 'avro',
      keyFields: {
        orders: ['order_number'],
        customers: ['id'],
        inventory: ['sku', 'location'],
        'wine-clubs': ['club id'],
        'wine-club-members': ['member'],
        products: ['handle'],
      },
      stateDir: join(cwd, 'state'),
      http: { host: '::1', port: 0 },
      logLevel: 'debug',
    });
    expect(config.api.credentials.api_key!.reveal()).toBe('k3y');
    expect(kafkaPasswordOf(config)?.reveal()).toBe('pass');
    expect(registryPasswordOf(config)?.reveal()).toBe('word');
    expect(config.pii.hmacKey?.reveal()).toBe('sixteen letters.');
  });

  it('is frozen all the way down', () => {
    const thawed: string[] = [];
    const visit = (value: unknown, path: string): void => {
      if (typeof value !== 'object' || value === null) return;
      if (!Object.isFrozen(value)) thawed.push(path);
      for (const [name, part] of Object.entries(value)) visit(part, `${path}.${name}`);
    };
    visit(
      loadConfig({ env: { ...COMPLETE, PII_DROP: 'orders.email' }, cwd, needs: ALL }),
      'config',
    );
    expect(thawed).toEqual([]);
  });

  describe('where settings come from', () => {
    it('takes from .env what the environment leaves open', () => {
      file('.env', 'TOPIC_PREFIX=file\nACCOUNT_NAME=file # a comment\nPAGE_SIZE=50\n');
      const config = load({ TOPIC_PREFIX: 'env', PAGE_SIZE: '' });
      expect(config.topics.prefix).toBe('env');
      expect(config.account).toBe('file');
      expect(config.poll.pageSize).toBe(50);
    });

    it('counts empty text as unset, for every setting', () => {
      const empty = Object.fromEntries(settingsFor(WINE).names.map((name) => [name, '  ']));
      expect(load(empty)).toEqual(load());
      expect(Object.keys(wrong({ ...COMPLETE, API_KEY: ' ' }, ALL))).toEqual(['API_KEY']);
    });

    it('takes a secret as it is, less the line end that `echo` adds', () => {
      const keyIn = (text: string) =>
        load({ ...COMPLETE, API_KEY: text }).api?.credentials.api_key?.reveal();
      expect(keyIn(' k3y ')).toBe(' k3y ');
      expect(keyIn('k3y\r\n')).toBe('k3y');
    });

    it.each([
      ['API_KEY', (config: Config) => config.api?.credentials.api_key],
      ['KAFKA_SASL_PASSWORD', kafkaPasswordOf],
      ['SCHEMA_REGISTRY_PASSWORD', registryPasswordOf],
      ['PII_HMAC_KEY', (config: Config) => config.pii.hmacKey],
    ])('takes %s from a file', (name, secretOf) => {
      const others = {
        ...COMPLETE,
        KAFKA_SASL_MECHANISM: 'plain',
        KAFKA_SASL_USERNAME: 'user',
        KAFKA_SASL_PASSWORD: 'pass',
        SCHEMA_REGISTRY_USERNAME: 'user',
        SCHEMA_REGISTRY_PASSWORD: 'pass',
        [name]: undefined,
      };
      file('secret', ' of a long file \r\n\n');
      expect(secretOf(load({ ...others, [`${name}_FILE`]: 'secret' }))?.reveal()).toBe(
        ' of a long file ',
      );

      file('.env', `${name}_FILE=secret`); // the environment wins over the twin too
      expect(secretOf(load(others))?.reveal()).toBe(' of a long file ');
      expect(secretOf(load({ ...others, [name]: 'of the environment' }))?.reveal()).toBe(
        'of the environment',
      );

      rmSync(join(cwd, '.env'));
      const twin = `${name}_FILE`;
      const both = wrong({ ...others, [name]: 'planted, and long', [twin]: 'secret' });
      expect(both[name]).toBe(`and ${twin} are both set: keep one of them`);
      expect(wrong({ [twin]: 'absent' }, ['api'])[twin]).toMatch(/^can't be read \(ENOENT\)/);
      file('secret', '\n');
      expect(wrong({ [twin]: 'secret' }, ['api'])[twin]).toBe('names a file that is empty');
      for (const path of ['absent', 'secret']) {
        expect(wrong({ ...others, [twin]: path })[name]).toBeUndefined();
      }
    });

    it('does not call a secret missing whose file is wrong', () => {
      const others = { ...COMPLETE, API_KEY: undefined };
      file('empty', '\n');
      for (const API_KEY_FILE of ['absent', 'empty']) {
        expect(Object.keys(wrong({ ...others, API_KEY_FILE }, ALL))).toEqual(['API_KEY_FILE']);
      }
    });

    it.each(['API_CA_FILE', 'KAFKA_SSL_CA_FILE', 'SCHEMA_REGISTRY_CA_FILE'])(
      'wants certificates in %s',
      (name) => {
        const ssl = { KAFKA_SSL: 'true' };
        file('key.pem', '-----BEGIN PRIVATE KEY-----planted');
        expect(wrong({ ...ssl, [name]: 'absent.pem' })[name]).toMatch(/^can't be read \(ENOENT\)/);
        expect(wrong({ ...ssl, [name]: '.' })[name]).toMatch(/^can't be read \(EISDIR\)/);
        expect(wrong({ ...ssl, [name]: 'key.pem' })[name]).toMatch(/certificates in PEM form/);
      },
    );

    it('says when .env is there and cannot be read', () => {
      expect(wrong({}, [])).toEqual({});
      rmSync(cwd, { recursive: true });
      cwd = mkdtempSync(join(tmpdir(), 'config-'));
      writeFileSync(join(cwd, 'file'), '');
      const inAFile = join(cwd, 'file');
      expect(() => loadConfig({ env: {}, cwd: inAFile })).toThrow(/- \.env can't be read/);
    });
  });

  describe('what a command needs', () => {
    it.each([
      [[], []],
      [['api'], ['API_BASE_URL', 'API_KEY']],
      [['kafka'], ['KAFKA_BROKERS']],
      [['registry'], ['SCHEMA_REGISTRY_URL']],
      [ALL, ['API_BASE_URL', 'API_KEY', 'KAFKA_BROKERS', 'SCHEMA_REGISTRY_URL']],
    ] as [Need[], string[]][])('for %j it misses %j', (needs, names) => {
      expect(Object.keys(wrong({}, needs))).toEqual(names);
      for (const advice of Object.values(wrong({}, needs))) expect(advice).toMatch(/^is not set/);
    });

    it('gives what is there though it is not needed', () => {
      const config = load(COMPLETE);
      expect(config.api?.loginUrl).toBe('https://api.example/v1/auth/public/login');
      expect(config.kafka).toEqual({ brokers: ['a.example:9092'], ssl: false, sasl: undefined });
      expect(config.registry?.auth).toBeUndefined();
      expect(load({ API_KEY: 'k3y' }).api).toBeUndefined();
    });
  });

  it.each([
    ['2025-01-31', Date.UTC(2025, 0, 31)],
    ['2025-01-31T08:00Z', Date.UTC(2025, 0, 31, 8)],
    ['2025-01-31T08:00:01.5Z', Date.UTC(2025, 0, 31, 8, 0, 1, 500)],
    ['2025-01-31T08:00:00-05:30', Date.UTC(2025, 0, 31, 13, 30)],
  ])('starts from %s', (text, time) => {
    expect(load({ START_FROM: text }).poll.startFrom).toBe(time);
  });

  it.each(['', '/', '/v1', '/v1/', '//'])('takes an API_BASE_URL that ends in "%s"', (end) => {
    for (const base of ['https://api.example', 'http://127.0.0.1:8080/staging']) {
      const { api } = load({ ...COMPLETE, API_BASE_URL: base + end });
      expect(api).toMatchObject({ baseUrl: base, loginUrl: `${base}/v1/auth/public/login` });
    }
  });

  it('leaves alone a path that only ends like /v1', () => {
    const { api } = load({ ...COMPLETE, API_BASE_URL: 'https://api.example/apiv1' });
    expect(api?.baseUrl).toBe('https://api.example/apiv1');
  });

  describe('what is wrong', () => {
    it('is reported all at once, by name', () => {
      const env = {
        ...{ API_BASE_URL: 'api.example', KAFKA_BROKERS: 'a.example', PAGE_SIZE: '5000' },
        ...{ LOG_LEVEL: 'loud', RESOURCES: 'oders', PII_HMAC: 'orders.email' },
        ...{ KAFKA_SASL_USERNAME: 'user', KEY_FIELDS_ODERS: 'id', API_KEY_FILE: 'absent' },
      };
      expect(Object.keys(wrong(env, ALL)).sort()).toEqual(
        [...Object.keys(env), 'SCHEMA_REGISTRY_URL'].sort(),
      );
    });

    it('is in the context too, by name alone', () => {
      expect(() => load({ PAGE_SIZE: 'x', HTTP_PORT: 'y' })).toThrow(
        expect.objectContaining({ context: { settings: 'PAGE_SIZE,HTTP_PORT' } }),
      );
    });

    const integers = [
      ['TOPIC_PARTITIONS', 1, 10_000],
      ['TOPIC_REPLICATION', 1, 100],
      ['POLL_INTERVAL_MS', 100, 2 ** 31 - 1],
      ['API_KEY_PATIENCE_MS', 0, 2 ** 31 - 1],
      ['LOOKBACK_MS', 0, 2 ** 31 - 1],
      ['SWEEP_INTERVAL_MS', 100, 2 ** 31 - 1],
      ['QUOTA_PER_MINUTE', 1, 1_000_000],
      ['LOGIN_QUOTA_PER_MINUTE', 1, 1_000_000],
      ['INITIAL_SNAPSHOT_PERCENT', 1, 95],
      ['PAGE_SIZE', 21, 1_000],
      ['DELETE_PROOF_MS', 0, 86_400_000],
      ['HTTP_PORT', 0, 65_535],
    ] as const;
    it.each(integers)('%s is a whole number from %d to %d', (name, least, most) => {
      const advice = expect.stringContaining(
        `must be a whole number from ${least} to ${most}`,
      ) as string;
      for (const value of [least, most]) expect(wrong({ [name]: String(value) })).toEqual({});
      const odd = [
        '1e3',
        '0x50',
        '99.5',
        '50,5',
        '-1',
        'NaN',
        'Infinity',
        '100 ms',
        '9'.repeat(30),
      ];
      for (const value of [String(least - 1), String(most + 1), ...odd]) {
        expect(wrong({ [name]: value })).toEqual({ [name]: advice });
      }
      fc.assert(
        fc.property(fc.integer(), (value) => {
          const fits = value >= least && value <= most;
          expect(Object.keys(wrong({ [name]: String(value) }))).toEqual(fits ? [] : [name]);
        }),
      );
    });

    it.each([
      ['API_BASE_URL', 'api.example', 'must be an http or https address'],
      ['API_BASE_URL', 'localhost:8080', 'must be an http or https address'],
      ['API_BASE_URL', 'ftp://api.example', 'must be an http or https address'],
      ['API_BASE_URL', 'https://user:planted@api.example', 'must not hold a user or a password'],
      ['API_BASE_URL', 'https://planted@api.example', 'must not hold a user or a password'],
      ['API_BASE_URL', 'https://api.example/?key=planted', 'without a query'],
      ['API_LOGIN_URL', 'https://:planted@api.example', 'must not hold a user or a password'],
      ['SCHEMA_REGISTRY_URL', 'http://a:planted@b:8081', 'must not hold a user or a password'],
      ['ACCOUNT_NAME', 'north/south', 'letters, digits'],
      ['TOPIC_PREFIX', 'wine events', 'letters, digits'],
      ['TOPIC_PREFIX', 'weiß', 'letters, digits'],
      ['KAFKA_BROKERS', 'a.example', 'must be host:port'],
      ['KAFKA_BROKERS', 'a.example:0', 'must be host:port'],
      ['KAFKA_BROKERS', 'a.example:9092,b.example:99999', 'must be host:port'],
      ['KAFKA_BROKERS', 'SASL_SSL://a.example:9092', 'must be host:port'],
      ['KAFKA_BROKERS', 'user:planted@a.example:9092', 'must be host:port'],
      ['KAFKA_BROKERS', ',', 'must be host:port'],
      ['KAFKA_SSL', 'yes', 'must be one of true, false'],
      ['KAFKA_SASL_MECHANISM', 'gssapi', 'must be one of plain, scram-sha-256, scram-sha-512'],
      ['QUOTA_SCOPE', 'token', 'must be one of endpoint, key'],
      ['LOG_LEVEL', 'loud', `must be one of ${LOG_LEVELS.join(', ')}`],
      [
        'RESOURCES',
        'oders',
        `contains "oders", but must contain names of lists, separated by commas: ${RESOURCES.join(', ')}`,
      ],
      [
        'RESOURCES',
        ',',
        `contains nothing, but must contain names of lists, separated by commas: ${RESOURCES.join(', ')}`,
      ],
      ['START_FROM', 'yesterday', 'must be an ISO 8601 date'],
      ['START_FROM', '2025-02-30', 'must be an ISO 8601 date'],
      ['START_FROM', '2025-01-31T08:00', 'with its zone'],
      ['DELETE_LIMIT_PERCENT', '101', 'must be a number from 0 to 100'],
      ['DELETE_LIMIT_PERCENT', '5%', 'must be a number from 0 to 100'],
      ['DELETE_LIMIT_PERCENT', '-1', 'must be a number from 0 to 100'],
      ['PII_DROP', 'email', 'must be fields such as orders.email'],
      ['PII_DROP', 'oders.email', 'the first word is one of orders'],
      ['PII_MASK', 'orders..email', 'must be fields such as orders.email'],
      ['PII_MASK', 'orders.', 'must be fields such as orders.email'],
      ['PII_DROP', 'orders. email', 'must be fields such as orders.email'],
      ['PII_MASK', 'orders.tender_info .last_four', 'must be fields such as orders.email'],
      ['VOLATILE_FIELDS', 'image_url', 'must be JSON Pointers such as products:/image_url'],
      ['VOLATILE_FIELDS', 'oders:/seen', 'the word before the colon is one of orders'],
      ['VOLATILE_FIELDS', 'products:image_url', 'must be JSON Pointers'],
      ['VOLATILE_FIELDS', 'products:/', 'must be JSON Pointers'],
      ['VOLATILE_FIELDS', 'products:/images/ url', 'must be JSON Pointers'],
      ['VOLATILE_FIELDS', 'products:/a~2b', 'must be JSON Pointers'],
      ['KEY_FIELDS_ORDERS', ',', 'must be names of fields'],
      [
        'KEY_FIELDS_ORDERS',
        'id',
        'must be order_number: single orders are requested by this field',
      ],
      ['KEY_FIELDS_ORDERS', 'order_number, id', 'must be order_number: '],
      [
        'KEY_FIELDS_ODERS',
        'id',
        'belongs to no list: the settings that begin with KEY_FIELDS_ are KEY_FIELDS_ORDERS, ',
      ],
      ['HTTP_HOST', 'http://0.0.0.0', 'must be a host name or an IP address'],
    ])('%s=%s', (name, value, advice) => {
      const found = wrong({ KAFKA_SASL_USERNAME: 'u', KAFKA_SASL_PASSWORD: 'p', [name]: value });
      expect(found[name]).toContain(advice);
      expect(found[name]).not.toContain('planted');
    });

    it.each([
      ...['orders.tender_info[0].last_four', 'orders.tender_info.0.last_four', 'orders./email'],
      ...['orders./tender_info/0', 'customers.*', 'customers.phones.*.number', 'products.0'],
    ])('is a personal field that is written as in other languages: %s', (field) => {
      const { PII_DROP } = wrong({ PII_DROP: `orders.email,${field}` });
      expect(PII_DROP).toMatch(/^must be fields such as .*: no indexes, and no \[ \] \/ \*\)/);
    });

    it.each([
      'products:/images/0/url',
      'products:/images/-',
      'products:/images[0]',
      'products:/*/url',
    ])('is a volatile field with a place in it: %s', (field) => {
      const { VOLATILE_FIELDS } = wrong({ VOLATILE_FIELDS: `products:/image_url,${field}` });
      expect(VOLATILE_FIELDS).toMatch(
        /^must be JSON Pointers such as .*: no indexes, and no \[ \] \*\)/,
      );
    });

    it.each<[string, string]>([
      ['products:/updated_at', "the service depends on it, so its changes can't be ignored"],
      ['orders:/order_number', "the service depends on it, so its changes can't be ignored"],
      ['orders:/payment_status', "the service depends on it, so its changes can't be ignored"],
      [
        'orders:/club_package_info',
        'the service depends on club_package_info.package_status in it; name its other fields instead',
      ],
      ['customers:/id', "KEY_FIELDS_CUSTOMERS uses it as a key, so its changes can't be ignored"],
    ])('is a volatile field whose changes are waited for: %s', (field, why) => {
      const env = { VOLATILE_FIELDS: field, KEY_FIELDS_CUSTOMERS: 'shop, id' };
      expect(wrong(env)).toEqual({ VOLATILE_FIELDS: `names ${field}: ${why}` });
    });

    it.each(['PII_DROPS', 'PII_HASH', 'PII_HMAC_KEYS'])('is %s, which is no setting', (name) => {
      expect(wrong({ [name]: 'orders.email' })).toEqual({
        [name]:
          'is not a setting: the settings that begin with PII_ are PII_DROP, PII_MASK, PII_HMAC, PII_HMAC_KEY, PII_HMAC_KEY_FILE',
      });
    });

    it.each([
      ['KAFKA_SASL_MECHANISM', 'plain', 'needs KAFKA_SASL_PASSWORD'],
      ['KAFKA_SASL_USERNAME', 'user', 'needs KAFKA_SASL_MECHANISM'],
      ['KAFKA_SASL_PASSWORD', 'planted', 'needs KAFKA_SASL_MECHANISM'],
      ['SCHEMA_REGISTRY_USERNAME', 'user', 'needs SCHEMA_REGISTRY_PASSWORD'],
      ['SCHEMA_REGISTRY_PASSWORD', 'planted', 'needs SCHEMA_REGISTRY_USERNAME'],
      ['SCHEMA_REGISTRY_OAUTH_CLIENT_ID', 'a', 'needs SCHEMA_REGISTRY_OAUTH_TOKEN_URL'],
      ['SCHEMA_REGISTRY_OAUTH_SCOPE', 'a', 'needs SCHEMA_REGISTRY_OAUTH_TOKEN_URL'],
      [
        'SCHEMA_REGISTRY_OAUTH_TOKEN_URL',
        'https://idp.example/token',
        'needs SCHEMA_REGISTRY_OAUTH_CLIENT_SECRET',
      ],
      ['PII_HMAC', 'orders.email', 'needs PII_HMAC_KEY'],
    ])('%s without its partner', (name, value, advice) => {
      expect(wrong({ [name]: value })[name]).toContain(advice);
    });

    it('is a second login at the registry', () => {
      const basic = { SCHEMA_REGISTRY_USERNAME: 'a', SCHEMA_REGISTRY_PASSWORD: 'b' };
      expect(wrong({ ...basic, SCHEMA_REGISTRY_TOKEN: 'planted' })).toEqual({
        SCHEMA_REGISTRY_TOKEN: 'and SCHEMA_REGISTRY_USERNAME are both set: keep one of them',
      });
    });

    it('is a header that HTTP does not allow, without showing it', () => {
      for (const planted of ['planted', 'X-Tenant: plänted', 'a b: planted', ',', 'a: b\u0000']) {
        const { SCHEMA_REGISTRY_HEADERS: advice } = wrong({ SCHEMA_REGISTRY_HEADERS: planted });
        expect(advice).toBe(
          'must be one or more HTTP headers, separated by commas, such as "X-Tenant: wines, X-Region: eu"',
        );
      }
    });

    it('is a certificate authority for a connection without TLS', () => {
      file('ca.pem', PEM);
      expect(wrong({ KAFKA_SSL_CA_FILE: 'ca.pem' })).toEqual({
        KAFKA_SSL_CA_FILE: 'needs KAFKA_SSL=true',
      });
      const http = { API_BASE_URL: 'http://a.example', SCHEMA_REGISTRY_URL: 'HTTP://b.example' };
      const ca = { API_CA_FILE: 'ca.pem', SCHEMA_REGISTRY_CA_FILE: 'ca.pem' };
      expect(wrong({ ...http, API_LOGIN_URL: 'http://c.example', ...ca })).toEqual({
        API_CA_FILE: 'needs API_BASE_URL (or API_LOGIN_URL) to begin with https://',
        SCHEMA_REGISTRY_CA_FILE: 'needs SCHEMA_REGISTRY_URL to begin with https://',
      });
      const login = { ...http, API_LOGIN_URL: 'https://c.example' };
      expect(wrong({ ...login, API_CA_FILE: 'ca.pem' })).toEqual({});
      expect(wrong(ca)).toEqual({}); // there may be no need of either
    });

    it.each<[Record<string, string>, Record<string, string>]>([
      [
        { PII_DROP: 'orders.email,orders.phone', PII_MASK: 'orders.notes, orders.email' },
        { PII_MASK: 'names orders.email, which is also in PII_DROP: remove one of them' },
      ],
      [
        { PII_DROP: 'customers.address', PII_MASK: 'customers.address.zip' },
        {
          PII_MASK:
            'names customers.address.zip, which is part of customers.address in PII_DROP: remove one of them',
        },
      ],
      [
        { PII_DROP: 'orders.order_number' },
        { PII_DROP: "names orders.order_number: the service depends on it, so it can't be hidden" },
      ],
      [
        { PII_MASK: 'products.updated_at' },
        { PII_MASK: "names products.updated_at: the service depends on it, so it can't be hidden" },
      ],
      [
        { PII_DROP: 'orders.club_package_info' },
        {
          PII_DROP:
            'names orders.club_package_info: the service depends on club_package_info.package_status in it; name its other fields instead',
        },
      ],
      [
        { PII_DROP: 'customers.id.text', KEY_FIELDS_CUSTOMERS: 'shop, id' },
        {
          PII_DROP:
            "names customers.id.text: KEY_FIELDS_CUSTOMERS uses it as a key, so it can't be hidden",
        },
      ],
      [
        { PII_MASK: 'orders.date_of_birth' },
        {
          PII_MASK:
            'names orders.date_of_birth, which is not text in the schema: name it in PII_DROP',
        },
      ],
      [
        { PII_MASK: 'orders.tender_info' },
        {
          PII_MASK:
            'names orders.tender_info, which has fields of its own: name those that are text, or name it in PII_DROP',
        },
      ],
      [{ PII_HMAC_KEY: 'planted' }, { PII_HMAC_KEY: 'must be 16 characters or more, and random' }],
    ])('is what is to be hidden, and can’t be: %j', (env, advice) => {
      expect(wrong(env)).toEqual(advice);
    });

    it.each([
      ...['orders.order_edit.created_at', 'orders.order_edit', 'orders.order_edit.status'],
      ...['orders.fulfillment_info.fulfillment_id', 'orders.fulfillment_info.shipment_status'],
      ...['orders.fulfillment_info.updated_at', 'orders.payment_status', 'orders.payment_status.x'],
      ...['orders.created_at', 'wine-clubs.created_at', 'inventory.updated_at'],
    ])('is %s among the personal fields, by whatever setting', (field) => {
      for (const name of ['PII_DROP', 'PII_MASK', 'PII_HMAC']) {
        const env = { [name]: `orders.email,${field}`, PII_HMAC_KEY: 'sixteen letters.' };
        expect(wrong(env)[name]).toContain(`names ${field}: the service depends on`);
      }
    });
  });

  it('takes personal fields of all kinds', () => {
    const env = {
      PII_DROP: 'orders.date_of_birth,orders.tender_info,orders.fulfillment_info.tracking',
      PII_MASK:
        'orders.customer_tags,orders.order_edit.summary,orders.unheard.of,customers.birthday',
      PII_HMAC: 'orders.email,orders.order_items.sku,customers.created_at_shop,products.id',
      PII_HMAC_KEY: 'sixteen letters.',
    };
    const { pii } = load(env);
    expect([pii.drop.length, pii.mask.length, pii.hmac.length]).toEqual([3, 4, 4]);
  });

  it('never shows a secret, wherever it was put', () => {
    const secrets = [
      ...['API_KEY', 'KAFKA_SASL_PASSWORD', 'SCHEMA_REGISTRY_PASSWORD', 'PII_HMAC_KEY'],
      // Put there by mistake: the setting beside the right one.
      ...['PII_HMAC', 'API_BASE_URL', 'KAFKA_SASL_MECHANISM', 'KEY_FIELDS_ORDERS'],
    ];
    const odd = fc.constantFrom(
      ...settingsFor(WINE).names.filter((name) => !secrets.includes(name)),
    );
    const planted = fc.stringMatching(/^[a-zA-Z0-9#'"$ ]{4,20}$/).map((text) => `pl4nt${text}ed!`);
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.constantFrom(...secrets)),
        fc.dictionary(odd, fc.constantFrom('', 'oops', 'true', '::')),
        planted,
        (names, others, secret) => {
          const env = { ...others, ...Object.fromEntries(names.map((name) => [name, secret])) };
          let shown: string;
          try {
            const config = loadConfig({ env, cwd });
            shown = inspect(config, { depth: 9, showHidden: true }) + JSON.stringify(config);
          } catch (error) {
            shown = inspect(error, { depth: 9, showHidden: true }) + String(error);
          }
          expect(shown).not.toContain(secret);
        },
      ),
      { numRuns: 500 },
    );
  });
});

describe('what is written of the settings', () => {
  const read = (path: string) => readFileSync(new URL(path, import.meta.url), 'utf8');
  const example = read('../../.env.example');
  const inExample = [...example.matchAll(/^#([A-Z_]+)=(.*)$/gm)];
  const rows = [
    ...read('../../docs/settings.md').matchAll(/^\| `([A-Z_]+)`(?: \*)? \| (.*?) \| (.+) \|$/gm),
  ].map(([, name, value = '']) => [name, value === 'unset' ? '' : value.replace(/^`(.*)`$/, '$1')]);

  it('both have every setting, once, with the same default', () => {
    expect(rows.map(([name]) => name).sort()).toEqual([...settingsFor(WINE).names].sort());
    expect(inExample.map(([, name, value]) => [name, value])).toEqual(rows);
  });

  it('.env.example changes nothing, with its lines commented out or not', () => {
    const plain = load();
    file('.env', example);
    expect(parse(example)).toEqual({});
    expect(load()).toEqual(plain);
    file('.env', example.replace(/^#(?=[A-Z_]+=)/gm, ''));
    expect(load()).toEqual(plain);
  });

  it('.env.example explains every setting', () => {
    for (const [line] of inExample) expect(example).toMatch(new RegExp(`\n# .+\n${line}\n`));
  });
});
