import { setTimeout as pause } from 'node:timers/promises';
import type { logCreator } from 'kafkajs';
import { Subject, Subscription } from 'rxjs';
import { afterAll, beforeAll, describe, expect, inject, it, vi } from 'vitest';
import { checkAccount } from '../../src/commands/check.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import { subscribeGroup } from '../../src/consumers/subscribe-group.ts';
import { topicsUnder } from '../../src/consumers/wine-topics.ts';
import { openKafkaClients } from '../../src/sinks/open-kafka.ts';
import { membershipGroup } from '../../src/kafka/membership/group.ts';
import { membership } from '../../src/kafka/membership/membership.ts';
import { scaled } from '../support/scale.ts';
import { authority } from '../support/certificates.ts';
import { startTokenEndpoint } from '../support/token-endpoint.ts';
import { checkOrders, checkStatusChanges } from './support/checker.ts';
import {
  canBeManaged,
  orderSettings,
  startManagedKafka,
  startOrders,
} from './support/managed-kafka.ts';
import type { ManagedKafka } from './support/managed-kafka.ts';
import { publishedTruth } from './support/published-truth.ts';
import { atEnd, besideEachOther, PATIENCE_MS, TIMEOUT } from './support/running-test.ts';
import { cliForTest, folderForTest } from './support/service.ts';
import type { Env } from './support/service.ts';
import { readTopic } from './support/topic-reader.ts';
import type { Sandbox } from '../../src/sandbox/index.ts';

besideEachOther();

const BESIDE = { ...TIMEOUT, concurrent: true };
const quiet: logCreator = () => () => undefined;

/** Life of the tokens while orders change, in s, and for how long they do, in ms: more than three lives. */
const TOKEN_LIFE_S = scaled(6, 10);
const LOAD_MS = scaled(25_000, 35_000);
/** Session timeout of the groups, in ms. Too small: a busy machine delays heartbeats for longer. Too large: a lost session is not noticed during the load. */
const SESSION_MS = 20_000;

let managed: ManagedKafka;
let sandbox: Sandbox;
beforeAll(async () => {
  if (canBeManaged) [managed, sandbox] = await Promise.all([startManagedKafka(), startOrders()]);
}, 120_000);
afterAll(async () => {
  await sandbox?.close();
  await managed?.stop();
});

const settings = (prefix: string, kafka: Env): Env => ({
  ...orderSettings(sandbox, prefix, folderForTest()),
  ...kafka,
});

async function wrong(kafka: Env): Promise<readonly string[]> {
  const found = await checkAccount({ env: settings('wrong', kafka), cwd: '/' });
  return found.filter(({ fine }) => !fine).map(({ what, detail }) => `${what}: ${detail}`);
}

describe.skipIf(!canBeManaged)(
  'brokers that want a client certificate',
  { concurrent: true },
  () => {
    it('serve check, run and replay with one whose key is encrypted', async () => {
      const env = settings('mutual', managed.withCertificate());
      await cliForTest(['check'], env).succeeded();
      const service = cliForTest(['run'], env);
      await service.logged(({ event, done }) => event === 'first-read' && done === true);
      expect(await service.end('SIGTERM')).toBe(0);
      const reader = cliForTest(['replay', 'orders'], env);
      await reader.succeeded();
      expect(reader.stdout().trim().split('\n')).toHaveLength(20);
    });

    it('are named with the setting of the certificate when none is set, each time', async () => {
      const line =
        /^kafka: Kafka at \S+ requires a client certificate: set KAFKA_SSL_CERT_FILE and KAFKA_SSL_KEY_FILE/;
      for (let time = 0; time < 5; time += 1) {
        expect(await wrong(managed.withCertificate(null))).toEqual([expect.stringMatching(line)]);
      }
    });

    it('are named with the setting of the certificate that they do not trust', async () => {
      expect(await wrong(managed.withCertificate(authority('another').issue()))).toEqual([
        expect.stringMatching(
          /^kafka: Kafka at \S+ (refuses the client certificate in KAFKA_SSL_CERT_FILE|requires a client certificate: .* certificate that the server trusts)/,
        ),
      ]);
    });
  },
);

describe.skipIf(!canBeManaged)('brokers that take OAuth tokens', BESIDE, () => {
  it('get every change once while tokens live for seconds: producer, reader, group, members and admin', async () => {
    const identities = await startTokenEndpoint();
    identities.lifeSeconds = TOKEN_LIFE_S;
    const orders = await startOrders(20, 300);
    const prefix = 'tokens';
    const tokens = managed.withTokens({ KAFKA_OAUTH_TOKEN_URL: identities.url });
    const env = {
      ...orderSettings(orders, prefix, folderForTest()),
      ...tokens,
      ...{ SWEEP_INTERVAL_MS: '1000', DELETE_PROOF_MS: '1000' }, // orders are deleted too
    };
    const service = cliForTest(['run'], env);
    await service.logged(({ event }) => event === 'ready');

    const config = loadConfig({ env, cwd: '/', needs: ['kafka', 'registry'] });
    const links = openKafkaClients(config, { log: quiet });
    const stop$ = new Subject<void>();
    const consumed: bigint[] = [];
    const rebalances: unknown[] = [];
    const generations: number[] = [];
    const failures: unknown[] = [];
    const running = new Subscription();
    running.add(
      subscribeGroup(
        {
          ...links,
          topic: topicsUnder(prefix).orders,
          groupId: `${prefix}-group`,
          sessionTimeoutMs: SESSION_MS,
          onRebalance: (partitions) => rebalances.push(partitions),
          stop$,
        },
        ({ partition, offset }) => {
          consumed.push(BigInt(partition) * 1_000_000n + BigInt(offset));
        },
      ).subscribe({ error: (error: unknown) => failures.push(error) }),
    );
    running.add(
      membership({
        group: membershipGroup(links.kafka, `${prefix}-members`),
        ...{
          sessionTimeoutMs: SESSION_MS,
          heartbeatMs: 500,
          leave$: stop$,
          rejoin$: new Subject(),
        },
        memberMetadata: () => Buffer.from('one'),
        assign: (members) => new Map(members.map(({ id }) => [id, Buffer.from('all')])),
        // The first group of a cluster waits for its coordinator.
        onRetry: (error) => generations.length > 0 && failures.push(error),
      }).subscribe({
        next: ({ number }) => generations.push(number),
        error: (error: unknown) => failures.push(error),
      }),
    );
    const until = performance.now() + LOAD_MS;
    const admin = links.kafka.admin();
    await admin.connect();
    while (performance.now() < until) {
      await admin.fetchTopicOffsets(`${prefix}.orders`);
      await pause(1_000);
    }
    await admin.disconnect();
    orders.setRate(0);
    await publishedTruth([...managed.brokers], inject('registryUrl'), prefix, orders);

    const topic = (name: string) =>
      readTopic(managed.brokers, inject('registryUrl'), `${prefix}.${name}`);
    const events = await topic('orders');
    const found = checkOrders(events, orders);
    expect(found.violations).toEqual([]);
    expect(checkStatusChanges(await topic('order-status-changes'), events).violations).toEqual([]);
    expect(found.ops.u).toBeGreaterThan(100);
    const values = events.filter(({ value }) => value !== null);
    await vi.waitFor(() => expect(consumed.length).toBeGreaterThanOrEqual(values.length), {
      timeout: PATIENCE_MS,
    });
    expect(new Set(consumed).size).toBe(consumed.length);
    stop$.next();
    running.unsubscribe();
    links.connections.close();

    expect(failures).toEqual([]);
    expect(rebalances).toHaveLength(1);
    expect(generations).toHaveLength(1);
    const retries = service.lines().filter(({ event }) => event === 'retry');
    expect(retries).toEqual([]);
    expect(identities.requests.length).toBeGreaterThan(LOAD_MS / 1_000 / TOKEN_LIFE_S);
    expect(await service.end('SIGTERM')).toBe(0);
    await orders.close();
    await identities.close();
  });

  it('are waited for while the token endpoint is down at the start, and later; the reason is named', async () => {
    const absent = await startTokenEndpoint();
    const { url } = absent;
    await absent.close();
    const prefix = 'no-endpoint';
    const orders = await startOrders();
    atEnd(() => orders.close());
    const env = {
      ...orderSettings(orders, prefix, folderForTest()),
      ...managed.withTokens({ KAFKA_OAUTH_TOKEN_URL: url }),
    };
    const service = cliForTest(['run'], env);
    const isNamed = (words: string) => (line: object) =>
      JSON.stringify(line).includes(words) && 'event' in line;
    await service.logged(isNamed('no answer from KAFKA_OAUTH_TOKEN_URL'));
    const identities = await startTokenEndpoint(Number(new URL(url).port));
    atEnd(() => identities.close());
    identities.lifeSeconds = 6;
    await service.logged(({ event }) => event === 'ready');

    identities.answer = () => ({ status: 503, text: '' });
    await service.logged(isNamed('KAFKA_OAUTH_TOKEN_URL answered 503'));
    identities.answer = undefined;
    orders.change('orders', 100_003, { email: 'new@example.com' });
    await publishedTruth([...managed.brokers], inject('registryUrl'), prefix, orders);
    expect(await service.end('SIGTERM')).toBe(0);
  });

  it('that refuse a token are waited for a while, with the reason in the log, and then `run` ends', async () => {
    const identities = await startTokenEndpoint();
    atEnd(() => identities.close());
    identities.audience = 'another service';
    const env = settings('audience', managed.withTokens({ KAFKA_OAUTH_TOKEN_URL: identities.url }));
    const words = /Kafka at \S+ refuses the login \(invalid_token\): check KAFKA_OAUTH_SCOPE/;
    const check = cliForTest(['check'], env);
    const service = cliForTest(['run'], env);
    expect(await check.ended).toBe(1);
    expect(check.stdout()).toMatch(words);
    expect(await service.ended).toBe(1);
    const last = service.stderr().trim().split('\n').at(-1);
    expect(last).toMatch(/^cellarstream: Kafka at \S+ refuses the login/);
    expect(service.lines().some((line) => words.test(JSON.stringify(line)))).toBe(true);
  });

  it.each<[string, Env, RegExp]>([
    [
      'a wrong client secret',
      { KAFKA_OAUTH_CLIENT_SECRET: 'wrong' },
      /^cellarstream: KAFKA_OAUTH_TOKEN_URL answered 401 \(invalid_client.*\): check KAFKA_OAUTH_CLIENT_ID and KAFKA_OAUTH_CLIENT_SECRET$/,
    ],
    [
      'an address that is no token endpoint',
      { KAFKA_OAUTH_TOKEN_URL: 'SANDBOX' },
      /^cellarstream: KAFKA_OAUTH_TOKEN_URL answered 404, and the response contains no access token: check that it is the address of the token endpoint/,
    ],
  ])('%s ends `run` with one line', async (_, special, line) => {
    const elsewhere = special.KAFKA_OAUTH_TOKEN_URL && {
      KAFKA_OAUTH_TOKEN_URL: `${sandbox.url}/token`,
    };
    const service = cliForTest(
      ['run'],
      settings('secret', managed.withTokens({ ...special, ...(elsewhere || {}) })),
    );
    expect(await service.ended).toBe(1);
    expect(service.stderr().trim().split('\n').at(-1)).toMatch(line);
  });
});
