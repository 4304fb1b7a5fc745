import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { lastValueFrom } from 'rxjs';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { settingsFor } from '../../src/config/settings.ts';
import { WINE } from '../../src/description/wine/wine.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import { openKafkaClients } from '../../src/sinks/open-kafka.ts';
import { describeError } from '../../src/core/errors.ts';
import { withAdmin } from '../support/with-admin.ts';
import { login } from '../../src/streams/http/login.ts';
import {
  apiTls,
  canBeSecured,
  kafkaLogin,
  kafkaTls,
  plainSettings,
  registryLogin,
  registryTls,
  SECRETS,
  startSecured,
} from './support/secured.ts';
import type { Secured } from './support/secured.ts';
import { cliForTest, firstReadDone, folderForTest } from './support/service.ts';
import type { Env } from './support/service.ts';

const SETTINGS = settingsFor(WINE).names;

/** What the running service answers on its port. */
const PATHS = ['/', '/status', '/metrics', '/readyz', '/healthz', '/no-such-page?token=x'];

const HMAC_KEY = 'hmac key-jD2 and random';
const WRONG = 'wrong password-vN6';
/** In every personal field of one order and one customer. */
const MARK = 'Xylandra';

const PERSONAL = /(first|last)_name$|email$|phone$|address_line1$|birth/;
/** Shorter texts are in everything. */
const LEAST_LENGTH = 5;

let secured: Secured;
let personal: ReadonlySet<string>;
beforeAll(async () => {
  if (!canBeSecured) return;
  secured = await startSecured();
  const { sandbox } = secured;
  const marked = { first_name: MARK, last_name: MARK, phone: MARK, email: `${MARK}@example.com` };
  sandbox.change('orders', 100_003, marked);
  sandbox.change('customers', 500_003, marked);
  personal = await personalTexts();
});
afterAll(() => secured?.stop());

const everything = (prefix: string): Env => ({
  ...plainSettings(secured, prefix),
  ...kafkaTls(secured, 'BOTH'),
  ...kafkaLogin('plain', SECRETS.plainPassword),
  ...registryTls(secured, 'good'),
  ...registryLogin(),
  ...apiTls(secured, 'good'),
  RESOURCES: 'orders,customers,wine-club-members',
  PII_HMAC: 'customers.email',
  PII_HMAC_KEY: HMAC_KEY,
  POLL_INTERVAL_MS: '500',
  LOG_LEVEL: 'trace',
});

/** Every secret there is, also as it looks when it is sent, and the tokens given out so far. */
function secrets(): string[] {
  const texts = [...Object.values(SECRETS), HMAC_KEY, WRONG];
  return [
    ...texts.flatMap((text) => [text, encodeURIComponent(text)]),
    ...[...texts, `bob:${SECRETS.registryPassword}`].map((text) =>
      Buffer.from(text).toString('base64').replace(/=+$/, ''),
    ),
    ...[...secured.tokens].flatMap((token) => [token, token.split('.')[1]!, token.split('.')[2]!]),
  ];
}

/** The personal fields of all records, as the API serves them. */
async function personalTexts(): Promise<ReadonlySet<string>> {
  const { url, apiKey } = secured.sandbox;
  const answer = await fetch(`${url}/v1/auth/public/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ apiKey }),
  });
  const { accessToken } = (await answer.json()) as { accessToken: string };
  const headers = { authorization: `Bearer ${accessToken}` };
  const texts = new Set<string>();
  for (const list of ['orders', 'customers', 'wine-club-members']) {
    const page = await fetch(`${url}/v1/${list}?pageSize=1000`, { headers });
    JSON.parse(await page.text(), (name, value: unknown) => {
      if (typeof value === 'string' && PERSONAL.test(name) && value.length >= LEAST_LENGTH)
        texts.add(value);
      return value;
    });
  }
  return texts;
}

/** Fails with the name of what shows something, and what it shows. */
function expectHidden(outputs: Readonly<Record<string, string>>, hidden: Iterable<string>): void {
  const all = [...hidden];
  const shown = Object.entries(outputs).flatMap(([output, text]) =>
    all.filter((secret) => text.includes(secret)).map((secret) => `${output} shows ${secret}`),
  );
  expect(shown).toEqual([]);
}

/** Every file of a folder as text, a byte a character; personal fields may be in it, secrets may not. */
function filesOf(folder: string): Record<string, string> {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
  return Object.fromEntries(files.map((file) => [file, readFileSync(file, 'latin1')]));
}

describe.skipIf(!canBeSecured)('secrets and personal fields', () => {
  it('are hidden by run, while all goes well and while it does not, and by its port', async () => {
    const { sandbox } = secured;
    const state = folderForTest();
    const body = { email: `${MARK}@example.com`, accessToken: 'no-token-of-ours' };
    sandbox.fault({ kind: 'status', status: 400, body, endpoint: 'customers', times: 1 });
    sandbox.fault({ kind: 'status', status: 500, body, times: 2 });
    sandbox.fault({ kind: 'truncate', every: 3, times: 2 });
    sandbox.fault({ kind: 'garbage', every: 4, times: 2 });
    sandbox.fault({ kind: 'drop', every: 5, times: 2 });
    sandbox.loseKey('orders', 100_004);
    sandbox.replaceText('orders', 100_005, JSON.stringify([MARK]));
    const service = cliForTest(['run'], { ...everything('hidden'), STATE_DIR: state });
    const { url } = await service.logged(({ event }) => event === 'listening');
    await firstReadDone(service);
    sandbox.revokeTokens();
    sandbox.change('orders', 100_003, { last_name: `${MARK} the Second` });
    await service.logged(({ event }) => event === 'dead-letter');
    await vi.waitUntil(() => secured.tokens.size > 1, { timeout: 30_000 });

    const answers: Record<string, string> = {};
    for (const path of PATHS) answers[path] = await (await fetch(`${String(url)}${path}`)).text();
    expect(await service.end('SIGTERM')).toBe(0);
    expect(service.lines().map(({ event }) => event)).toContain('retry');
    const outputs = { stdout: service.stdout(), stderr: service.stderr(), ...answers };
    expectHidden(outputs, [...secrets(), ...personal]);
    expectHidden(filesOf(state), secrets());
  });

  it('are hidden by the other commands', async () => {
    const env = { ...everything('hidden'), STATE_DIR: folderForTest() };
    const wrong = {
      ...env,
      API_KEY: WRONG,
      ...kafkaLogin('plain', WRONG),
      ...registryLogin(WRONG),
    };
    const started = {
      check: cliForTest(['check'], env),
      'check with what is wrong': cliForTest(['check'], wrong),
      'run with what is wrong': cliForTest(['run'], wrong),
      resync: cliForTest(['resync', '--order', '100003', '--no-wait'], env),
    };
    // Data is what they are for; the rest is not.
    const data = {
      peek: cliForTest(['peek', 'orders', '--limit', '20'], env),
      replay: cliForTest(['replay', 'orders'], env),
      'replay of dead letters': cliForTest(['replay', 'dead-letters'], env),
    };
    for (const [name, cli] of Object.entries({ ...started, ...data })) {
      await cli.ended;
      expectHidden({ [`stderr of ${name}`]: cli.stderr() }, [...secrets(), ...personal]);
      expectHidden({ [`stdout of ${name}`]: cli.stdout() }, secrets());
    }
    for (const [name, cli] of Object.entries(started)) {
      expectHidden({ [`stdout of ${name}`]: cli.stdout() }, personal);
    }
    expect(data.peek.stdout()).toContain(MARK);
    expect(data.replay.stdout()).toContain(MARK);
    await started.check.succeeded();
    expect(started['check with what is wrong'].stdout().match(/FAIL/g)).toHaveLength(3);
    expect(await started['run with what is wrong'].ended).toBe(1);
  });

  it('are in no error, however it is printed', async () => {
    const config = loadConfig({
      env: { ...everything('hidden'), ...kafkaLogin('plain', WRONG), ...registryLogin(WRONG) },
      cwd: '/',
      needs: ['api', 'kafka', 'registry'],
    });
    const { kafka, registry } = openKafkaClients(config, { log: () => () => undefined });
    const errors = await Promise.all([
      caught(withAdmin(kafka, (admin) => admin.listTopics())),
      caught(registry.latest('any')),
      caught(
        lastValueFrom(
          login({
            baseUrl: new URL(secured.sandbox.url),
            description: WINE,
            apiKey: () => WRONG,
            limit: (source) => source,
          }),
        ),
      ),
    ]);
    await registry.close();
    for (const error of errors) expectHidden(printed(error), secrets());
  });
});

describe('secrets', () => {
  const values: Record<string, string> = {
    API_KEY: SECRETS.apiKey,
    API_USERNAME: 'ursula-xQ2',
    API_PASSWORD: 'p:ss %wörd-xQ3',
    API_CLIENT_ID: 'client one-xQ4',
    API_CLIENT_SECRET: 's3cret/+%-xQ5',
    API_REFRESH_TOKEN: 'refresh-0-xQ6',
    KAFKA_SASL_PASSWORD: SECRETS.plainPassword,
    SCHEMA_REGISTRY_PASSWORD: SECRETS.registryPassword,
    PII_HMAC_KEY: HMAC_KEY,
  };
  const texts = Object.values(values);

  it('are not shown by the configuration that holds them, in memory or in an error', () => {
    const config = loadConfig({
      env: {
        ...values,
        API_BASE_URL: 'https://api.example',
        KAFKA_BROKERS: 'localhost:9092',
        KAFKA_SASL_MECHANISM: 'plain',
        KAFKA_SASL_USERNAME: 'alice',
        SCHEMA_REGISTRY_URL: 'https://registry.example',
        SCHEMA_REGISTRY_USERNAME: 'bob',
        PII_HMAC: 'orders.email',
      },
      cwd: '/',
    });
    expectHidden(printed(config), texts);
    expectHidden(
      printed(Object.assign(new Error('with it', { cause: config }), { config })),
      texts,
    );
    const sasl = config.kafka?.sasl;
    expect(sasl && 'password' in sasl && sasl.password.reveal()).toBe(SECRETS.plainPassword); // it was there
  });

  it("are not shown when a setting holds one that it can't be, or all are wrong beside it", () => {
    const folder = folderForTest();
    for (const [secret, text] of Object.entries(values)) writeFileSync(join(folder, secret), text);
    const twins = Object.keys(values).map((secret) => [`${secret}_FILE`, join(folder, secret)]);
    // RESOURCES repeats what nobody knows of it: a list that is not there is no secret.
    for (const name of SETTINGS.filter((setting) => setting !== 'RESOURCES')) {
      for (const text of texts) {
        // Each secret is set twice, which is wrong; and one is in a place that is not for it.
        const env = { ...values, ...Object.fromEntries(twins), [name]: text } as Env;
        const error = failure(() =>
          loadConfig({ env, cwd: folder, needs: ['api', 'kafka', 'registry'] }),
        );
        expectHidden(printed(error), texts);
      }
    }
  });
});

/** A thing as it may come to a log, a crash or a page. */
function printed(thing: unknown): Record<string, string> {
  return {
    describeError: describeError(thing),
    inspect: inspect(thing, { depth: null, showHidden: true }),
    json: JSON.stringify(thing),
    text: String(thing),
  };
}

function failure(work: () => unknown): unknown {
  try {
    work();
  } catch (error) {
    return error;
  }
  throw new Error('it did not fail');
}

async function caught(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => {
      throw new Error('it did not fail');
    },
    (error: unknown) => error,
  );
}
