import { expect, it } from 'vitest';
import { loadConfig } from '../../src/config/load-config.ts';
import { settingWarnings } from '../../src/config/setting-warnings.ts';

/** What is doubted of these settings: by name. */
const doubted = (env: Record<string, string>) => {
  const source = { env, cwd: import.meta.dirname };
  return settingWarnings(loadConfig(source), source).map(({ name, advice }) => `${name} ${advice}`);
};

it('doubts a personal field of orders that their schema does not describe', () => {
  const names = 'orders.emial,orders.email.domain,orders.tender_info.last_four,customers.emial';
  const advice = 'which is not a field of the schema: a misspelled name hides nothing';
  expect(doubted({ PII_DROP: names, PII_MASK: 'orders.phone,orders.fone' })).toEqual([
    `PII_DROP names orders.emial, ${advice}`,
    `PII_DROP names orders.email.domain, ${advice}`,
    `PII_MASK names orders.fone, ${advice}`,
  ]);
});

it('doubts names that begin as settings do, and are none', () => {
  const env = {
    KAFKA_SSL_CA: 'ca.pem',
    SCHEMA_REGISTRY_USER: 'me',
    SCHEMA_REGISTRY_SERVICE_HOST: '10.0.0.1',
  };
  expect(doubted(env)).toEqual([
    'KAFKA_SSL_CA is not a setting and is ignored: check its spelling',
    'SCHEMA_REGISTRY_USER is not a setting and is ignored: check its spelling',
  ]);
});

it('doubts a volatile field of orders that their schema does not describe', () => {
  const names = 'orders:/fulfillment_info/tracking/seen,orders:/notes,customers:/emial';
  expect(doubted({ VOLATILE_FIELDS: names })).toEqual([
    'VOLATILE_FIELDS names orders:/fulfillment_info/tracking/seen, which is not a field of the schema: a misspelled name does nothing',
  ]);
});

it.each<[string, string | undefined, readonly string[]]>([
  ['https://api.example', undefined, []],
  ['http://127.0.0.1:8080', undefined, []],
  ['http://localhost:8080', 'http://[::1]:8080/login', []],
  ['http://api.localhost', undefined, []],
  ['http://api.example', undefined, ['API_BASE_URL']],
  ['http://127.0.0.1.example', undefined, ['API_BASE_URL']],
  ['https://api.example', 'http://10.0.0.1/login', ['API_LOGIN_URL']],
  ['http://api.example', 'http://10.0.0.1/login', ['API_BASE_URL', 'API_LOGIN_URL']],
])('doubts a key in clear text beyond this machine: %s, %s', (base, login, names) => {
  const api = { API_BASE_URL: base, API_KEY: 'planted' };
  expect(doubted({ ...api, ...(login !== undefined && { API_LOGIN_URL: login }) })).toEqual(
    names.map(
      (name) =>
        `${name} begins with http://: the API key or its tokens cross the network in clear text`,
    ),
  );
});

const KAFKA_OAUTH = {
  KAFKA_BROKERS: 'kafka.example:9093',
  KAFKA_SSL: 'true',
  KAFKA_SASL_MECHANISM: 'oauthbearer',
  KAFKA_OAUTH_TOKEN_URL: 'https://idp.example/token',
  KAFKA_OAUTH_CLIENT_ID: 'cellarstream',
  KAFKA_OAUTH_CLIENT_SECRET: 'planted',
};
const KAFKA_PLAIN = {
  KAFKA_BROKERS: 'kafka.example:9092',
  KAFKA_SASL_MECHANISM: 'plain',
  KAFKA_SASL_USERNAME: 'cellarstream',
  KAFKA_SASL_PASSWORD: 'planted',
};
const REGISTRY_OAUTH = {
  SCHEMA_REGISTRY_URL: 'https://registry.example',
  SCHEMA_REGISTRY_OAUTH_TOKEN_URL: 'https://idp.example/token?tenant=a',
  SCHEMA_REGISTRY_OAUTH_CLIENT_ID: 'cellarstream',
  SCHEMA_REGISTRY_OAUTH_CLIENT_SECRET: 'planted',
};
const AT_TOKEN_ENDPOINT =
  'begins with http://: the client secret and the tokens cross the network in clear text';
const AT_REGISTRY =
  'SCHEMA_REGISTRY_URL begins with http://: the credentials cross the network in clear text';
const PLAIN_HTTP = { SCHEMA_REGISTRY_URL: 'http://registry.example:8081' };

it.each<[string, Record<string, string>, readonly string[]]>([
  ['tokens for Kafka over TLS', KAFKA_OAUTH, []],
  [
    "Kafka's token endpoint",
    { ...KAFKA_OAUTH, KAFKA_OAUTH_TOKEN_URL: 'http://idp.example/token' },
    [`KAFKA_OAUTH_TOKEN_URL ${AT_TOKEN_ENDPOINT}`],
  ],
  [
    'a token endpoint on this machine',
    { ...KAFKA_OAUTH, KAFKA_OAUTH_TOKEN_URL: 'http://127.0.0.1:8080/token' },
    [],
  ],
  [
    'a token to the brokers',
    { ...KAFKA_OAUTH, KAFKA_SSL: 'false' },
    [
      'KAFKA_SASL_MECHANISM oauthbearer without KAFKA_SSL=true: the token crosses the network in clear text',
    ],
  ],
  [
    'a password to the brokers',
    KAFKA_PLAIN,
    [
      'KAFKA_SASL_MECHANISM plain without KAFKA_SSL=true: the password crosses the network in clear text',
    ],
  ],
  ['a password over TLS', { ...KAFKA_PLAIN, KAFKA_SSL: 'true' }, []],
  [
    'a password to a broker here',
    { ...KAFKA_PLAIN, KAFKA_BROKERS: 'LocalHost:9092,127.0.0.1:9093' },
    [],
  ],
  ['SCRAM', { ...KAFKA_PLAIN, KAFKA_SASL_MECHANISM: 'scram-sha-512' }, []],
  ['tokens for the registry over TLS', REGISTRY_OAUTH, []],
  [
    "the registry's token endpoint",
    { ...REGISTRY_OAUTH, SCHEMA_REGISTRY_OAUTH_TOKEN_URL: 'http://idp.example/token' },
    [`SCHEMA_REGISTRY_OAUTH_TOKEN_URL ${AT_TOKEN_ENDPOINT}`],
  ],
  ['tokens to the registry', { ...REGISTRY_OAUTH, ...PLAIN_HTTP }, [AT_REGISTRY]],
  ['a token to the registry', { ...PLAIN_HTTP, SCHEMA_REGISTRY_TOKEN: 'planted' }, [AT_REGISTRY]],
  [
    'a password to the registry',
    { ...PLAIN_HTTP, SCHEMA_REGISTRY_USERNAME: 'user', SCHEMA_REGISTRY_PASSWORD: 'planted' },
    [AT_REGISTRY],
  ],
  [
    'a header to the registry',
    { ...PLAIN_HTTP, SCHEMA_REGISTRY_HEADERS: 'X-Key: planted' },
    [AT_REGISTRY],
  ],
  ['a registry without a login', PLAIN_HTTP, []],
])('doubts credentials in clear text beyond this machine: %s', (_, env, warnings) => {
  expect(doubted(env)).toEqual(warnings);
});
