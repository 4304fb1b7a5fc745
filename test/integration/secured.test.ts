import type { logCreator } from 'kafkajs';
import { lastValueFrom, ReplaySubject, toArray } from 'rxjs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { run } from '../../src/app.ts';
import { checkAccount } from '../../src/commands/check.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import { replay } from '../../src/consumers/replay.ts';
import { topicsUnder } from '../../src/consumers/wine-topics.ts';
import { openKafkaClients } from '../../src/sinks/open-kafka.ts';
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
import { cliForTest, folderForTest } from './support/service.ts';
import type { Env } from './support/service.ts';

const { plainPassword, scramPassword } = SECRETS;

const quiet: logCreator = () => () => undefined;

let secured: Secured;
beforeAll(async () => {
  if (canBeSecured) secured = await startSecured();
});
afterAll(() => secured?.stop());

/** What `check` finds wrong with these settings. */
async function wrong(env: Env): Promise<readonly string[]> {
  const found = await checkAccount({
    env: { ...plainSettings(secured, 'wrong'), ...env },
    cwd: '/',
  });
  return found.filter(({ fine }) => !fine).map(({ what, detail }) => `${what}: ${detail}`);
}

describe.skipIf(!canBeSecured)('a secured connection', () => {
  const plainToKafka = (listener: string): Env => ({
    KAFKA_BROKERS: secured.services.listeners[listener]!,
  });
  it.each<[string, string, () => Env]>([
    ['TLS', 'tls', () => kafkaTls(secured, 'TLS')],
    [
      'SCRAM-SHA-256 without TLS',
      'scram-256',
      () => ({ ...plainToKafka('LOGIN'), ...kafkaLogin('scram-sha-256', scramPassword) }),
    ],
    [
      'SCRAM-SHA-512 without TLS',
      'scram-512',
      () => ({ ...plainToKafka('LOGIN'), ...kafkaLogin('scram-sha-512', scramPassword) }),
    ],
    [
      'PLAIN over TLS, and a registry with TLS and a login',
      'tls-plain',
      () => ({
        ...kafkaTls(secured, 'BOTH'),
        ...kafkaLogin('plain', plainPassword),
        ...registryTls(secured, 'good'),
        ...registryLogin(),
      }),
    ],
    [
      'SCRAM-SHA-256 over TLS, and the API over TLS',
      'tls-256',
      () => ({
        ...kafkaTls(secured, 'BOTH'),
        ...kafkaLogin('scram-sha-256', scramPassword),
        ...apiTls(secured, 'good'),
      }),
    ],
  ])('serves check, run and replay: %s', async (_, prefix, special) => {
    const state = folderForTest();
    const env = { ...plainSettings(secured, prefix), ...special(), STATE_DIR: state };
    expect((await checkAccount({ env, cwd: '/' })).filter(({ fine }) => !fine)).toEqual([]);

    const config = loadConfig({ env, cwd: '/', needs: ['api', 'kafka', 'registry'] });
    const stop$ = new ReplaySubject<void>(1);
    const retries: unknown[] = [];
    await run({
      config,
      stop$,
      kafkaLog: quiet,
      hooks: {
        onProgress: ({ done }) => done && stop$.next(),
        onRetry: (retry) => retries.push(retry),
      },
    });
    expect(retries).toEqual([]);

    const links = openKafkaClients(config, { log: quiet });
    const topic = topicsUnder(prefix).orders;
    const events = await lastValueFrom(replay({ ...links, topic }).pipe(toArray()));
    expect(events).toHaveLength(20);
    await links.registry.close();
  });

  it('serves the commands, with all that there is at once', async () => {
    const env: Env = {
      ...plainSettings(secured, 'everything'),
      ...kafkaTls(secured, 'BOTH'),
      ...kafkaLogin('scram-sha-512', scramPassword),
      ...registryTls(secured, 'good'),
      ...registryLogin(),
      ...apiTls(secured, 'good'),
      STATE_DIR: folderForTest(),
    };
    const check = cliForTest(['check'], env);
    await check.succeeded();
    const service = cliForTest(['run'], env);
    await service.logged(({ event, done }) => event === 'first-read' && done === true);
    expect(await service.end('SIGTERM')).toBe(0);
    const reader = cliForTest(['replay', 'orders'], env);
    await reader.succeeded();
    expect(reader.stdout().trim().split('\n')).toHaveLength(20);
    expect(check.stdout()).not.toContain('FAIL');
    expect(service.stderr().split('\n').filter(isTrouble)).toEqual([]);
  });
});

const UNTRUSTED = 'is not signed by a trusted authority';

// Some wait for seconds for a port that does not answer: beside each other.
describe.skipIf(!canBeSecured)(
  'what is wrong is one line that names the setting',
  { concurrent: true },
  () => {
    it.each<[string, () => Env, RegExp]>([
      [
        'a wrong password, PLAIN',
        () => ({ ...kafkaTls(secured, 'BOTH'), ...kafkaLogin('plain', 'wrong') }),
        /^kafka: Kafka refuses: check KAFKA_SASL_USERNAME and KAFKA_SASL_PASSWORD: .*Invalid username or password$/,
      ],
      [
        'a wrong password, SCRAM',
        () => ({ ...kafkaTls(secured, 'BOTH'), ...kafkaLogin('scram-sha-512', 'wrong') }),
        /^kafka: Kafka refuses: check KAFKA_SASL_USERNAME and KAFKA_SASL_PASSWORD: .*invalid credentials/,
      ],
      [
        'an unknown user, PLAIN',
        () => ({ ...kafkaTls(secured, 'BOTH'), ...kafkaLogin('plain', plainPassword, 'eve') }),
        /^kafka: Kafka refuses: check KAFKA_SASL_USERNAME and KAFKA_SASL_PASSWORD/,
      ],
      [
        'an unknown user, SCRAM',
        () => ({
          ...kafkaTls(secured, 'BOTH'),
          ...kafkaLogin('scram-sha-256', scramPassword, 'eve'),
        }),
        /^kafka: Kafka refuses: check KAFKA_SASL_USERNAME and KAFKA_SASL_PASSWORD/,
      ],
      [
        'a mechanism that the listener does not have',
        () => ({
          KAFKA_BROKERS: secured.services.listeners.LOGIN!,
          ...kafkaLogin('plain', plainPassword),
        }),
        /^kafka: Kafka refuses: check KAFKA_SASL_MECHANISM/,
      ],
      [
        'a login to a port that takes none',
        () => kafkaLogin('plain', plainPassword),
        /^kafka: no answer from Kafka \(the port accepts no login: unset KAFKA_SASL_MECHANISM/,
      ],
      [
        'no login to a port that wants one',
        () => kafkaTls(secured, 'BOTH'),
        /^kafka: no answer from Kafka \(if this persists, .* a login \(KAFKA_SASL_MECHANISM\)\)/,
      ],
      [
        'TLS to a plain port',
        () => ({ ...kafkaTls(secured, 'TLS'), KAFKA_BROKERS: secured.services.brokers.join() }),
        /^kafka: no answer from Kafka \(if this persists, the port may not use TLS: set KAFKA_SSL=false/,
      ],
      [
        'plain text to a TLS port',
        () => ({ KAFKA_BROKERS: secured.services.listeners.TLS! }),
        /^kafka: no answer from Kafka \(if this persists, the port may require TLS \(KAFKA_SSL\)/,
      ],
      [
        'the wrong CA',
        () => ({ ...kafkaTls(secured, 'TLS'), KAFKA_SSL_CA_FILE: secured.otherCa }),
        new RegExp(
          `^kafka: the certificate of Kafka at 127\\.0\\.0\\.1:\\d+ ${UNTRUSTED}: KAFKA_SSL_CA_FILE must name the file`,
        ),
      ],
      [
        'no CA at all',
        () => ({ KAFKA_BROKERS: secured.services.listeners.TLS!, KAFKA_SSL: 'true' }),
        new RegExp(`^kafka: the certificate of Kafka at \\S+ ${UNTRUSTED}: KAFKA_SSL_CA_FILE must`),
      ],
      [
        'an expired certificate',
        () => kafkaTls(secured, 'EXPIRED'),
        /^kafka: the certificate of Kafka at \S+ has expired: it must be renewed there$/,
      ],
      [
        "another host's certificate",
        () => kafkaTls(secured, 'ELSEWHERE'),
        /^kafka: the certificate of Kafka at \S+ is for another host: KAFKA_BROKERS .*127\.0\.0\.1 is not in the cert's list\)$/,
      ],
      [
        'a client certificate wanted',
        () => kafkaTls(secured, 'MUTUAL'),
        /^kafka: Kafka at \S+ requires a client certificate: set KAFKA_SSL_CERT_FILE and KAFKA_SSL_KEY_FILE/,
      ],
    ])('Kafka: %s', async (_, env, line) => {
      expect(await wrong(env())).toEqual([expect.stringMatching(line)]);
    });

    it.each<[string, () => Env, RegExp]>([
      [
        'a wrong password',
        () => ({ ...registryTls(secured, 'good'), ...registryLogin('wrong') }),
        /^registry: wrong\.orders-value: .* answered 401: check SCHEMA_REGISTRY_USERNAME and SCHEMA_REGISTRY_PASSWORD$/,
      ],
      [
        'no login',
        () => registryTls(secured, 'good'),
        /answered 401: check SCHEMA_REGISTRY_USERNAME and SCHEMA_REGISTRY_PASSWORD$/,
      ],
      [
        'TLS to a plain port',
        () => ({ SCHEMA_REGISTRY_URL: secured.services.registryUrl.replace('http:', 'https:') }),
        /^registry: the schema registry at \S+ does not use TLS at that port: begin SCHEMA_REGISTRY_URL with http:\/\//,
      ],
      [
        'plain text to a TLS port',
        () => ({ SCHEMA_REGISTRY_URL: secured.registry.good.replace('https:', 'http:') }),
        /^registry: no answer from \S+ \S+ \S+ \S+ \S+ \(if the port uses TLS, begin SCHEMA_REGISTRY_URL with https:\/\//,
      ],
      [
        'the wrong CA',
        () => ({
          ...registryTls(secured, 'selfSigned'),
          SCHEMA_REGISTRY_CA_FILE: secured.otherCa,
        }),
        new RegExp(`${UNTRUSTED}: SCHEMA_REGISTRY_CA_FILE must name the file`),
      ],
      [
        'an expired certificate',
        () => registryTls(secured, 'expired'),
        /^registry: the certificate of the schema registry at \S+ has expired/,
      ],
      [
        "another host's certificate",
        () => registryTls(secured, 'elsewhere'),
        /^registry: the certificate of .* is for another host: SCHEMA_REGISTRY_URL must name/,
      ],
    ])('the registry: %s', async (_, env, line) => {
      expect(await wrong(env())).toEqual([expect.stringMatching(line)]);
    });

    it.each<[string, () => Env, RegExp]>([
      ['a wrong key', () => ({ API_KEY: 'wrong' }), /refused the API key \(400\): check API_KEY/],
      [
        'TLS to a plain port',
        () => ({ API_BASE_URL: secured.sandbox.url.replace('http:', 'https:') }),
        /^login: \S+ does not use TLS at that port: begin API_BASE_URL with http:\/\//,
      ],
      [
        'the wrong CA',
        () => ({ ...apiTls(secured, 'good'), API_CA_FILE: secured.otherCa }),
        new RegExp(`^login: the certificate of \\S+ ${UNTRUSTED}: API_CA_FILE must name the file`),
      ],
      [
        'an expired certificate',
        () => apiTls(secured, 'expired'),
        /^login: the certificate of \S+ has expired/,
      ],
      [
        'one that is not valid yet',
        () => apiTls(secured, 'early'),
        /^login: the certificate of \S+ is not valid yet: the clock/,
      ],
      [
        "another host's certificate",
        () => apiTls(secured, 'elsewhere'),
        /^login: the certificate of \S+ is for another host: API_BASE_URL must name/,
      ],
      [
        "another host's certificate, at a login of its own",
        () => {
          const { API_BASE_URL: url, ...ca } = apiTls(secured, 'elsewhere');
          return { ...ca, API_LOGIN_URL: `${url}/v1/auth/public/login` };
        },
        /^login: the certificate of \S+ is for another host: API_LOGIN_URL must name/,
      ],
    ])('the API: %s', async (_, env, line) => {
      expect(await wrong(env())).toEqual([expect.stringMatching(line)]);
    });
  },
);

describe.skipIf(!canBeSecured)('run', () => {
  const start = (env: Env) =>
    cliForTest(['run'], {
      ...plainSettings(secured, 'run-wrong'),
      ...env,
      STATE_DIR: folderForTest(),
    });

  it('ends with 1 and one line where a setting must change', async () => {
    const cases: readonly (readonly [Env, RegExp])[] = [
      [
        { ...kafkaTls(secured, 'BOTH'), ...kafkaLogin('plain', 'wrong') },
        /^cellarstream: Kafka refuses: check KAFKA_SASL_USERNAME and KAFKA_SASL_PASSWORD/,
      ],
      [
        { ...kafkaTls(secured, 'TLS'), KAFKA_SSL_CA_FILE: secured.otherCa },
        /^cellarstream: the certificate of Kafka at \S+ is not signed by a trusted authority/,
      ],
      [apiTls(secured, 'elsewhere'), /^cellarstream: the certificate of \S+ is for another host/],
      [
        { ...registryTls(secured, 'good'), ...registryLogin('wrong') },
        /^cellarstream: .* answered 401: check SCHEMA_REGISTRY_USERNAME/,
      ],
    ];
    const services = cases.map(([env, line]) => ({ service: start(env), line }));
    for (const { service, line } of services) {
      expect(await service.ended).toBe(1);
      const [last, ...others] = service.stderr().trim().split('\n').reverse();
      expect(last).toMatch(line);
      expect(others.filter(isTrouble)).toEqual([]);
    }
  });

  it('waits, and says so at each try, while a certificate is out of its time', async () => {
    const service = start(registryTls(secured, 'expired'));
    const retries = () => service.lines().filter(({ event }) => event === 'retry');
    await service.logged(() => retries().length >= 2);
    const message =
      /^the certificate of the schema registry at \S+ has expired: it must be renewed there$/;
    for (const retry of retries()) {
      expect(retry).toMatchObject({
        what: 'registry',
        level: 'warn',
        err: {
          code: 'REGISTRY_UNREACHABLE',
          message: expect.stringMatching(message),
          context: { tls: 'CERT_HAS_EXPIRED' },
        },
      });
    }
    expect(await service.end('SIGTERM')).toBe(0);
  });
});

/** Whether a line of the log says that something is wrong; that it is not ready yet is no news. */
function isTrouble(line: string): boolean {
  return /"level":"(warn|error)"/.test(line) && !line.includes('"event":"readiness"');
}
