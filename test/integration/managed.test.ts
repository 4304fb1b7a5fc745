import { rmSync } from 'node:fs';
import { Kafka, logLevel } from 'kafkajs';
import { lastValueFrom, ReplaySubject, take, toArray } from 'rxjs';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { run } from '../../src/app.ts';
import { checkAccount } from '../../src/commands/check.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import { replay } from '../../src/consumers/replay.ts';
import { subscribeGroup } from '../../src/consumers/subscribe-group.ts';
import { table } from '../../src/consumers/table.ts';
import { topicsUnder } from '../../src/consumers/wine-topics.ts';
import { describeError } from '../../src/core/errors.ts';
import type { Retrying } from '../../src/observe/hooks.ts';
import { createRegistry } from '../../src/schemas/registry/registry.ts';
import { findingText } from '../../src/schemas/events/topic-findings.ts';
import { openKafka } from '../../src/sinks/open-kafka.ts';
import { missingGroupRights } from '../../src/sinks/topics/missing-rights.ts';
import { topicTable } from '../../src/schemas/events/topics.ts';
import { startSandbox } from '../../src/sandbox/index.ts';
import type { Sandbox } from '../../src/sandbox/index.ts';
import { createTopic } from './support/created-topic.ts';
import { grant, notManaged, PASSWORD, startLacking, startManaged } from './support/managed.ts';
import type { Managed, Right } from './support/managed.ts';
import { besideEachOther, TIMEOUT } from './support/running-test.ts';
import { folderForTest } from './support/service.ts';
import type { Env } from './support/service.ts';
import { listNamed } from '../../src/description/description.ts';
import { WINE } from '../../src/description/wine/wine.ts';

besideEachOther();
if (notManaged !== undefined) console.warn(`no broker of others: ${notManaged}`);

const ORDERS = 20;
const USERS = ['maker', 'writer', 'looker'];
const ALL: readonly Right[] = ['CREATE', 'DESCRIBE', 'DESCRIBE_CONFIGS', 'READ', 'WRITE'];

let managed: Managed;
let lacking: Managed;
let sandbox: Sandbox;
beforeAll(async () => {
  if (notManaged !== undefined) return;
  [managed, lacking, sandbox] = await Promise.all([
    startManaged(USERS),
    startLacking(),
    startSandbox({
      records: { orders: ORDERS },
      quotaPerMinute: 10_000,
      loginQuotaPerMinute: 10_000,
    }),
  ]);
}, 240_000);
afterAll(async () => {
  await Promise.all([managed?.stop(), lacking?.stop(), sandbox?.close()]);
});

const settings = (prefix: string, broker = managed.broker): Env => ({
  API_BASE_URL: sandbox.url,
  API_KEY: sandbox.apiKey,
  KAFKA_BROKERS: broker,
  SCHEMA_REGISTRY_URL: inject('registryUrl'),
  RESOURCES: 'orders',
  TOPIC_PREFIX: prefix,
  TOPIC_PARTITIONS: '2',
  QUOTA_PER_MINUTE: '10000',
  LOGIN_QUOTA_PER_MINUTE: '10000',
  HTTP_PORT: '0',
});
const as = (user: string): Env => ({
  KAFKA_BROKERS: managed.login,
  KAFKA_SASL_MECHANISM: 'plain',
  KAFKA_SASL_USERNAME: user,
  KAFKA_SASL_PASSWORD: PASSWORD,
});

/** Runs the service until orders are read, or until `isEnough`; gives its topic warnings, retries and changes. */
async function ran(env: Env, isEnough: (retry: Retrying) => boolean = () => false) {
  const stateDir = folderForTest();
  const config = loadConfig({
    env: { ...env, STATE_DIR: stateDir },
    cwd: '/',
    needs: ['api', 'kafka', 'registry'],
  });
  const stop$ = new ReplaySubject<void>(1);
  const doubts: string[] = [];
  const retries: Retrying[] = [];
  let changes = 0;
  await run({
    config,
    stop$,
    kafkaLog: () => () => undefined,
    hooks: {
      onTopicDoubt: ({ finding }) => doubts.push(findingText(finding)),
      onRetry: (retry) => {
        retries.push(retry);
        if (isEnough(retry)) stop$.next();
      },
      onPublished: (published) => {
        changes += published.changes.length;
        const { known, lane, completes } = published;
        if (known === ORDERS && lane === 'poll' && completes) stop$.next();
      },
    },
  });
  rmSync(stateDir, { recursive: true });
  return { doubts, retries: retries.map(({ error }) => describeError(error)), changes };
}

async function checked(env: Env) {
  const found = await checkAccount({ env, cwd: '/' });
  const line = ({ what, detail }: (typeof found)[number]) => `${what}: ${detail}`;
  return {
    wrong: found.filter(({ fine }) => !fine).map(line),
    warnings: found.filter(({ fine, isUnwise }) => fine && isUnwise).map(line),
    fine: found.filter(({ fine, isUnwise }) => fine && !isUnwise).map(line),
  };
}

/** Makes the topics as an administrator would. */
async function makeTopics(prefix: string, more: Readonly<Record<string, string>> = {}) {
  const kafka = new Kafka({ brokers: [managed.broker], logLevel: logLevel.NOTHING });
  const specs = topicTable({
    prefix,
    lists: [listNamed(WINE, 'orders')],
    partitions: 3,
    replication: 1,
  });
  for (const { topic, numPartitions, cleanupPolicy } of specs) {
    const entries = Object.entries({ 'cleanup.policy': cleanupPolicy, ...more });
    const configEntries = entries.map(([name, value]) => ({ name, value }));
    await createTopic(kafka, { topic, numPartitions, configEntries });
  }
}

describe
  .skipIf(notManaged !== undefined)
  .concurrent('a cluster that refuses a topic setting', TIMEOUT, () => {
    it('gets its topics without it, and a warning has its own words', async () => {
      const before = await checked(settings('named'));
      expect(before.wrong).toEqual([]);
      const { doubts, retries, changes } = await ran(settings('named'));
      const text = 'the brokers refuse this setting: POLICY_VIOLATION: cannot set "segment.ms"';
      expect(before.warnings.join('\n')).toContain(text);
      expect(doubts.filter((each) => each.includes(text))).toHaveLength(2);
      expect({ retries, changes }).toEqual({ retries: [], changes: ORDERS });
    });

    it('gets its topics without all wishes where it names none', async () => {
      const { doubts, changes } = await ran(settings('unnamed'));
      expect(doubts.join('\n')).toContain('POLICY_VIOLATION: not like this');
      expect(changes).toBe(ORDERS);
    });

    it.each([
      [
        'strict',
        /the topic strict\.orders \(POLICY_VIOLATION: cannot set "cleanup\.policy"\): ask the operator of the cluster, or have it created beforehand: strict\.orders \(2 partitions, cleanup\.policy=compact;/,
      ],
      [
        'narrow',
        /the topic narrow\.orders \(POLICY_VIOLATION: at most 1 partition\): set TOPIC_PARTITIONS/,
      ],
    ])(
      'ends run, and fails check, with one line where it can not do without: %s',
      async (prefix, line) => {
        expect((await checked(settings(prefix))).wrong).toEqual([expect.stringMatching(line)]);
        const error: unknown = await ran(settings(prefix)).catch((error: unknown) => error);
        expect(error).toMatchObject({
          code: 'KAFKA_REFUSED',
          message: expect.stringMatching(line) as string,
        });
      },
    );
  });

describe
  .skipIf(notManaged !== undefined)
  .concurrent('a user with rights of its own', TIMEOUT, () => {
    const grantId = (user: string) =>
      grant(managed.broker, user, 'TRANSACTIONAL_ID', `cellarstream.${user}.`, [
        'DESCRIBE',
        'WRITE',
      ]);

    it('runs with the rights that docs/security.md lists', async () => {
      await grant(managed.broker, 'maker', 'TOPIC', 'maker.', ALL);
      await grantId('maker');
      const env = { ...settings('maker'), ...as('maker') };
      expect((await checked(env)).wrong).toEqual([]);
      expect(await ran(env)).toMatchObject({ retries: [], changes: ORDERS });
      expect(await checked(env)).toMatchObject({ wrong: [], warnings: [] });
    });

    it('runs on topics of an administrator, without the rights to make topics and to look at settings', async () => {
      await grant(managed.broker, 'writer', 'TOPIC', 'writer.', ['DESCRIBE', 'READ', 'WRITE']);
      await grantId('writer');
      const env = { ...settings('writer'), ...as('writer') };
      const line =
        /this user may not create topics \(TOPIC_AUTHORIZATION_FAILED\), and these do not exist or are not visible to it: writer\.orders, .*writer\.cursors \(1 partition, cleanup\.policy=compact/;
      expect((await checked(env)).wrong).toEqual([expect.stringMatching(line)]);
      const error: unknown = await ran(env).catch((error: unknown) => error);
      expect(error).toMatchObject({
        code: 'KAFKA_REFUSED',
        message: expect.stringMatching(line) as string,
      });

      await makeTopics('writer');
      const { wrong, warnings } = await checked(env);
      const unseen = 'the settings of writer.orders are not shown to this user';
      expect(wrong).toEqual([]);
      expect(warnings.join('\n')).toContain(unseen);
      const { doubts, retries, changes } = await ran(env);
      expect(doubts.join('\n')).toContain(unseen);
      expect({ retries, changes }).toEqual({ retries: [], changes: ORDERS });
    });

    it('is told whether it may join the group of a fleet', async () => {
      const group = 'cellarstream.looker.fleet';
      const rights = (env: Env) =>
        missingGroupRights(
          { kafka: openKafka(loadConfig({ env, cwd: '/', needs: ['kafka'] })) },
          group,
        );
      expect(await rights({ ...settings('looker'), ...as('looker') })).toEqual([
        { resource: 'group', name: group, operations: ['Read'] },
      ]);
      expect(await rights(settings('looker'))).toEqual([]);
    });

    it('is told each right that it lacks, with the command that grants it', async () => {
      await makeTopics('looker');
      await grant(managed.broker, 'looker', 'TOPIC', 'looker.', ['DESCRIBE', 'DESCRIBE_CONFIGS']);
      const env = { ...settings('looker'), ...as('looker') };
      const { wrong } = await checked(env);
      expect(wrong).toContain(
        'rights: this user lacks Read, Write on the topic looker.cursors: kafka-acls.sh --bootstrap-server "$KAFKA_BROKERS" --add --allow-principal User:looker --operation Read --operation Write --topic looker.cursors',
      );
      expect(wrong).toContain(
        'rights: this user lacks Write on the topic looker.dead-letters: kafka-acls.sh --bootstrap-server "$KAFKA_BROKERS" --add --allow-principal User:looker --operation Write --topic looker.dead-letters',
      );
      expect(wrong).toContain(
        'commits: this user lacks Describe, Write on the transactional id cellarstream.looker.*: kafka-acls.sh --bootstrap-server "$KAFKA_BROKERS" --add --allow-principal User:looker --operation Describe --operation Write --transactional-id cellarstream.looker. --resource-pattern-type prefixed',
      );
    });
  });

describe
  .skipIf(notManaged !== undefined)
  .concurrent('topics that the brokers compress', TIMEOUT, () => {
    it.each(['zstd', 'lz4', 'snappy', 'gzip'])(
      'are read back by run after a restart, replay, table and subscribeGroup: %s',
      async (codec) => {
        const prefix = `packed-${codec}`;
        await makeTopics(prefix, { 'compression.type': codec });
        const first = await ran(settings(prefix));
        expect(first).toMatchObject({ retries: [], changes: ORDERS });
        expect(first.doubts.join('\n')).toContain(`compression.type=${codec}, producer is wanted`);
        expect(await ran(settings(prefix))).toMatchObject({ retries: [], changes: 0 });

        const kafka = new Kafka({ brokers: [managed.broker], logLevel: logLevel.NOTHING });
        const registry = createRegistry({ url: inject('registryUrl') });
        const { orders } = topicsUnder(prefix);
        const clients = { kafka, registry, topic: orders };
        expect(await lastValueFrom(replay(clients).pipe(toArray()))).toHaveLength(ORDERS);
        const held = table(clients);
        await held.ready;
        expect(held.size).toBe(ORDERS);
        held.close();
        const handled$ = subscribeGroup({ ...clients, groupId: prefix }, () => undefined);
        expect(await lastValueFrom(handled$.pipe(take(ORDERS), toArray()))).toHaveLength(ORDERS);
        await registry.close();
      },
    );

    it('are made with compression.type=producer where the brokers compress by default', async () => {
      const { doubts } = await ran(settings('own'));
      expect(doubts).not.toContainEqual(expect.stringContaining('compression.type'));
    });
  });

describe
  .skipIf(notManaged !== undefined)
  .concurrent('one broker whose own topics are to have three copies', TIMEOUT, () => {
    const why =
      /Kafka answers COORDINATOR_NOT_AVAILABLE \(.*transaction\.state\.log\.replication\.factor.*\): no broker coordinates transactions, 1 broker is available, and the topic __transaction_state does not exist/;

    it('is found by check, which opens a transaction', async () => {
      const { wrong } = await checked(settings('lacking', lacking.broker));
      expect(wrong).toEqual([expect.stringMatching(why)]);
      expect(wrong[0]).toMatch(/^commits: /);
    });

    it('is what run says that it waits for, after some seconds', async () => {
      const began = performance.now();
      const { retries } = await ran(settings('waiting', lacking.broker), () => true);
      expect(retries).toEqual([expect.stringMatching(why)]);
      expect(performance.now() - began).toBeLessThan(20_000);
    });

    it('is what a member of a group says that it waits for', async () => {
      const kafka = new Kafka({
        brokers: [lacking.broker],
        logLevel: logLevel.NOTHING,
        retry: { retries: 2 },
      });
      await createTopic(kafka, { topic: 'alone.orders', numPartitions: 1 });
      const registry = createRegistry({ url: inject('registryUrl') });
      const stop$ = new ReplaySubject<void>(1);
      const waits: string[] = [];
      const handled$ = subscribeGroup(
        {
          ...{ kafka, registry, stop$, topic: topicsUnder('alone').orders, groupId: 'alone' },
          onRetry: ({ error }) => {
            waits.push(describeError(error));
            stop$.next();
          },
        },
        () => undefined,
      );
      await lastValueFrom(handled$, { defaultValue: undefined });
      expect(waits[0]).toMatch(
        /COORDINATOR_NOT_AVAILABLE .*offsets\.topic\.replication\.factor.*no broker coordinates groups, 1 broker is available, and the topic __consumer_offsets does not exist/,
      );
      await registry.close();
    });
  });
