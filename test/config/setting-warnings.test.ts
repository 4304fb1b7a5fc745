import { expect, it } from 'vitest';
import { loadConfig } from '../../src/config/load-config.ts';
import { settingWarnings } from '../../src/config/setting-warnings.ts';

/** What is doubted of these settings: by name. */
const doubted = (env: Record<string, string>) => {
  const source = { env, cwd: import.meta.dirname };
  return settingWarnings(loadConfig(source), source).map(({ name, advice }) => `${name} ${advice}`);
};

const shareOf = (env: Record<string, string>) =>
  loadConfig({ env, cwd: import.meta.dirname }).quota.firstReadPercent;

it('doubts a personal field of orders that their schema does not describe', () => {
  const names = 'orders.emial,orders.email.domain,orders.tender_info.last_four,customers.emial';
  const advice = 'which is no field of the schema: a name that is spelled wrong hides nothing';
  expect(doubted({ PII_DROP: names, PII_MASK: 'orders.phone,orders.fone' })).toEqual([
    `PII_DROP names orders.emial, ${advice}`,
    `PII_DROP names orders.email.domain, ${advice}`,
    `PII_MASK names orders.fone, ${advice}`,
  ]);
});

it('doubts a volatile field of orders that their schema does not describe', () => {
  const names = 'orders:/fulfillment_info/tracking/seen,orders:/notes,customers:/emial';
  expect(doubted({ VOLATILE_FIELDS: names })).toEqual([
    'VOLATILE_FIELDS names orders:/fulfillment_info/tracking/seen, which is no field of the schema: a name that is spelled wrong does nothing',
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

it('takes a former name, and names the new one', () => {
  const env = { FIRST_READ_PERCENT: '40' };
  expect(shareOf(env)).toBe(40);
  expect(doubted(env)).toEqual([
    'FIRST_READ_PERCENT has a new name: set INITIAL_SNAPSHOT_PERCENT in its place',
  ]);
});

it('goes by the new name where both are set, and says so unless they agree', () => {
  const env = { FIRST_READ_PERCENT: '40', INITIAL_SNAPSHOT_PERCENT: '60' };
  expect(shareOf(env)).toBe(60);
  expect(doubted(env)).toEqual([
    'FIRST_READ_PERCENT is not used: its new name INITIAL_SNAPSHOT_PERCENT is set to another value. Remove FIRST_READ_PERCENT',
  ]);
  expect(doubted({ ...env, FIRST_READ_PERCENT: '60' })).toEqual([
    'FIRST_READ_PERCENT has a new name: set INITIAL_SNAPSHOT_PERCENT in its place',
  ]);
  expect(doubted({ INITIAL_SNAPSHOT_PERCENT: '60' })).toEqual([]);
});

it('refuses a wrong value under a former name, by the name that was set', () => {
  expect(() => shareOf({ FIRST_READ_PERCENT: '96' })).toThrow(
    '1 setting is wrong:\n- FIRST_READ_PERCENT (now INITIAL_SNAPSHOT_PERCENT) must be a whole number from 1 to 95',
  );
});
