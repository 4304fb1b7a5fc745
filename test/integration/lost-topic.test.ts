import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { Kafka, logLevel, Partitioners } from 'kafkajs';
import type { Admin } from 'kafkajs';
import { describe, expect, inject, it, vi } from 'vitest';
import type { Sandbox } from '../../src/sandbox/index.ts';
import { withAdmin } from '../support/with-admin.ts';
import type { Cli, LogLine } from './support/cli.ts';
import { createTopic } from './support/created-topic.ts';
import { deleteCompacted, deleteRecords, setPolicy } from './support/deleted-records.ts';
import { besideEachOther, PATIENCE_MS, TIMEOUT } from './support/running-test.ts';
import {
  cliForTest,
  firstReadDone,
  folderForTest,
  sandboxForTest,
  settings,
} from './support/service.ts';
import type { Env } from './support/service.ts';
import { scaled } from '../support/scale.ts';
import { readTopic } from './support/topic-reader.ts';
import type { Read } from './support/topic-reader.ts';

const ORDERS = 300;
const POLL = { timeout: PATIENCE_MS, interval: 500 };
besideEachOther();

/** A list that has failed is tried again so much later, ms. */
const TRY_AGAIN_MS = 60_000;
/** Preloaded into the service: that is over soon, and nothing else is different. */
const HASTE = `
const { setInterval } = globalThis;
globalThis.setInterval = (work, ms, ...more) =>
  setInterval(work, ms === ${TRY_AGAIN_MS} ? 3_000 : ms, ...more);`;
const HASTENED = scaled<Env>(
  { NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(HASTE)}` },
  {},
);

const client = () => new Kafka({ brokers: inject('brokers'), logLevel: logLevel.NOTHING });
const read = (topic: string) => readTopic(inject('brokers'), inject('registryUrl'), topic);
const admin = <T>(work: (admin: Admin) => Promise<T>): Promise<T> => withAdmin(client(), work);

const opOf = ({ value }: Read) => String(value?.op);
const keysOf = (events: readonly Read[], op: string) =>
  events.filter((event) => opOf(event) === op).map(({ key }) => key);
const sequenceOf = ({ value }: Read) => (value?.source as { sequence: number }).sequence;

/** Deletes it, and waits until no broker knows of it. */
async function deleteTopic(topic: string): Promise<void> {
  await admin((all) => all.deleteTopics({ topics: [topic] }));
  const isThere = () => admin(async (all) => (await all.listTopics()).includes(topic));
  await vi.waitFor(async () => expect(await isThere()).toBe(false), POLL);
}

/** A service whose initial snapshot is done, and the sandbox that it reads. */
async function published(prefix: string, more: Env = {}) {
  const sandbox = await sandboxForTest({ records: { orders: ORDERS, products: 20 } });
  const env = { ...settings(sandbox, prefix, folderForTest()), TOPIC_PARTITIONS: '6', ...more };
  const service = cliForTest(['run'], env);
  await firstReadDone(service, 'orders');
  return { sandbox, env, service };
}

/** Resolves when the topic has an event of so many orders. */
const complete = (topic: string, orders = ORDERS) => {
  const keys = async () => new Set((await read(topic).catch(() => [])).map(({ key }) => key)).size;
  return vi.waitFor(async () => expect(await keys()).toBe(orders), POLL);
};

const isLost = ({ event }: LogLine) => event === 'topic-lost';
const failedOf = (service: Cli, resource: string) =>
  service.logged((line) => line.event === 'failed' && line.resource === resource);
const textOf = ({ err }: LogLine) => (err as { message: string }).message;

/** The images are lost; the request times stay, so that no minute is waited for. */
function forgetImages({ STATE_DIR = '' }: Env): void {
  rmSync(join(STATE_DIR, 'images.mdb'), { recursive: true });
  rmSync(join(STATE_DIR, 'images.mdb-lock'), { recursive: true, force: true });
}

/**
 * A change and a new order are published as ever, and no other status change has ever been; but maybe those
 * of orders that were changed `before`, in the same way.
 */
async function goesOn(
  prefix: string,
  sandbox: Sandbox,
  changed: number,
  before: readonly number[] = [],
): Promise<void> {
  sandbox.setStatus(changed, 'payment_status', 'refunded');
  const made = String(sandbox.create('orders'));
  const after = async () =>
    (await read(`${prefix}.orders`)).filter(({ key }) => key === made || key === String(changed));
  await vi.waitFor(
    async () => expect((await after()).filter((event) => opOf(event) !== 'r')).toHaveLength(2),
    POLL,
  );
  expect(keysOf(await after(), 'c')).toEqual([made]);
  expect(keysOf(await after(), 'u')).toEqual([String(changed)]);
  const statuses = await read(`${prefix}.order-status-changes`);
  const told = statuses.filter(({ key }) => key !== made);
  const keys = told.map(({ key }) => Number(key)).filter((key) => !before.includes(key));
  expect(keys).toEqual([changed]);
  expect(told.length).toBeLessThanOrEqual(1 + before.length);
  for (const { value } of told) {
    expect(value).toMatchObject({ field: 'payment_status', to: 'refunded' });
  }
}

describe.concurrent('a topic that is deleted', TIMEOUT, () => {
  const whileStopped = async () => {
    const topic = 'lost-stopped.orders';
    const { sandbox, env, service } = await published('lost-stopped');
    const before = (await read(topic)).map(sequenceOf);
    await service.end('SIGTERM');
    await deleteTopic(topic);

    const again = cliForTest(['run'], env);
    const { msg, partitions, offsets } = await again.logged(isLost);
    expect(msg).toMatch(
      /^lost-stopped\.orders has lost published events: partition \d ends at 0 and not at \d+ \(\d+ offsets\).*deleted and recreated.*again with op r, without status changes$/,
    );
    expect(partitions).toHaveLength(6);
    expect(offsets).toBeGreaterThan(ORDERS);
    await complete(topic);
    const events = await read(topic);
    expect(keysOf(events, 'r')).toHaveLength(ORDERS);
    expect(Math.min(...events.map(sequenceOf))).toBeGreaterThan(Math.max(...before));
    await goesOn('lost-stopped', sandbox, 100_001);
  };

  /** With the state folder: the cursor knows. */
  const withFolder = async () => {
    const { env, sandbox, service } = await published('lost-all');
    await service.logged(({ event }) => event === 'ready');
    // The cursor says so from the commit after the initial snapshot's on.
    sandbox.setStatus(100_002, 'payment_status', 'voided');
    const all = async () => expect(await read('lost-all.orders')).toHaveLength(ORDERS + 1);
    await vi.waitFor(all, POLL);
    await service.end('SIGTERM');
    await deleteTopic('lost-all.orders');
    forgetImages(env);

    const again = cliForTest(['run'], env);
    await again.logged(isLost);
    await complete('lost-all.orders');
    const events = await read('lost-all.orders');
    expect(keysOf(events, 'r')).toHaveLength(ORDERS);
    expect(events).toHaveLength(ORDERS);
    expect(await read('lost-all.order-status-changes')).toHaveLength(1);
  };

  const underService = async (isMade: boolean) => {
    const prefix = isMade ? 'lost-anew' : 'lost-gone';
    const topic = `${prefix}.orders`;
    const { sandbox, service } = await published(prefix, HASTENED);
    const before = (await read(topic)).map(sequenceOf);
    await deleteTopic(topic);
    if (isMade) {
      const configEntries = [{ name: 'cleanup.policy', value: 'compact' }];
      await createTopic(client(), { topic, numPartitions: 6, configEntries });
    }
    sandbox.setStatus(100_001, 'payment_status', 'refunded');
    if (!isMade) expect(await failedOf(service, 'orders')).toMatchObject({ delayMs: TRY_AGAIN_MS });
    await service.logged(isLost);
    await complete(topic);
    const events = await read(topic);
    expect(keysOf(events, 'c')).toEqual([]);
    expect(new Set(keysOf(events, 'r')).size).toBeGreaterThanOrEqual(ORDERS - 1);
    expect(Math.min(...events.map(sequenceOf))).toBeGreaterThan(Math.max(...before));
    const newest = events.filter(({ key }) => key === '100001').at(-1);
    expect(newest?.value?.after).toMatchObject({ payment_status: 'refunded' });
    await goesOn(prefix, sandbox, 100_003, [100_001]);
  };

  const itsRecordsComeAgain = 'is noticed, and its records come again as r';
  it(`${itsRecordsComeAgain}: while the service is stopped`, whileStopped);
  it(`${itsRecordsComeAgain}: with its images lost, too`, withFolder);
  it(`${itsRecordsComeAgain}: under the service, and made anew`, () => underService(true));
  it(`${itsRecordsComeAgain}: under the service`, () => underService(false));
});

describe.concurrent('a topic whose beginning was deleted', TIMEOUT, () => {
  it('is read from where it begins: what is gone comes again as r, the rest is known', async () => {
    const topic = 'cut.orders';
    const { sandbox, env, service } = await published('cut');
    await service.end('SIGTERM');
    await deleteCompacted(client(), topic, 0, '5');
    const left = (await read(topic)).map(({ key }) => key);
    expect(left.length).toBeLessThan(ORDERS);

    forgetImages(env);
    const again = cliForTest(['run'], env);
    const { msg, partitions, offsets } = await again.logged(isLost);
    expect(msg).toMatch(
      /: partition 0 begins at 5 and not at 0 \(5 offsets\): records were deleted from its beginning/,
    );
    expect([partitions, offsets]).toEqual([[0], 5]);
    await complete(topic);
    const events = await read(topic);
    expect(events).toHaveLength(ORDERS); // what is left was not published again
    expect(keysOf(events, 'r')).toHaveLength(ORDERS);
    expect(await read('cut.order-status-changes')).toEqual([]);
    await goesOn('cut', sandbox, 100_001);
    await again.end('SIGTERM');

    forgetImages(env);
    const third = cliForTest(['run'], env);
    await third.logged(({ event }) => event === 'restored');
    await third.logged(({ event }) => event === 'ready');
    expect(third.lines().filter(isLost)).toEqual([]); // it is dealt with
  });

  it('of cursors or signals ends nothing', async () => {
    const { sandbox, env, service } = await published('cut-cursors');
    await service.end('SIGTERM');
    const endOf = (topic: string) =>
      admin(async (all) => (await all.fetchTopicOffsets(topic))[0]!.high);
    const [cursors, signals] = ['cut-cursors.cursors', 'cut-cursors.signals'] as const;
    await deleteCompacted(client(), cursors, 0, await endOf(cursors));
    await deleteRecords(client(), signals, 0, await endOf(signals));
    forgetImages(env);
    const again = cliForTest(['run'], env);
    await again.logged(({ event }) => event === 'restored');
    await firstReadDone(again);
    await goesOn('cut-cursors', sandbox, 100_001);
    expect(await read('cut-cursors.orders')).toHaveLength(ORDERS + 2);
  });
});

describe.concurrent('partitions that are added', TIMEOUT, () => {
  it('stop the list whose records would be in two of them, and no other; check says so', async () => {
    const both = { RESOURCES: 'orders,products' };
    const { sandbox, env, service } = await published('added', both);
    await firstReadDone(service, 'products');
    await service.end('SIGTERM');
    await admin((all) =>
      all.createPartitions({ topicPartitions: [{ topic: 'added.products', count: 8 }] }),
    );
    const line =
      'added.products has 8 partitions, but its events were written with 6, so the events of a record would be in two of them: delete the topic (the service then creates it with TOPIC_PARTITIONS partitions and publishes all records again, with op r), or set another TOPIC_PREFIX';

    const again = cliForTest(['run'], env);
    const failed = await failedOf(again, 'products');
    expect(failed.err).toMatchObject({ code: 'TOPIC_CHANGED', message: line });
    await goesOn('added', sandbox, 100_001);
    const check = cliForTest(['check'], { ...env, STATE_DIR: folderForTest() });
    expect(await check.ended).toBe(1);
    expect(check.stdout()).toContain(`FAIL  ${line}\n`);

    await again.end('SIGTERM');
    await deleteTopic('added.products'); // as the line says
    const third = cliForTest(['run'], env);
    await third.logged(isLost);
    await vi.waitFor(
      async () => expect((await read('added.products')).map(opOf)).toEqual(Array(20).fill('r')),
      POLL,
    );
  });
});

describe.concurrent('settings of topics', TIMEOUT, () => {
  const configEntries = (settings: Readonly<Record<string, string>>) =>
    Object.entries(settings).map(([name, value]) => ({ name, value }));

  it('that lose data end run at its start, in one line that names them all', async () => {
    const sandbox = await sandboxForTest({ records: { orders: 5 } });
    await createTopic(client(), {
      topic: 'refused.orders',
      configEntries: configEntries({ 'cleanup.policy': 'compact,delete' }),
    });
    await createTopic(client(), { topic: 'refused.signals', numPartitions: 2 });
    await createTopic(client(), {
      topic: 'refused.cursors',
      configEntries: configEntries({ 'cleanup.policy': 'compact', 'max.message.bytes': '1000' }),
    });
    const env = { ...settings(sandbox, 'refused', folderForTest()), TOPIC_PARTITIONS: '6' };
    const service = cliForTest(['run'], env);
    expect(await service.ended).toBe(1);
    const line =
      'the service can\'t use these topics as they are: refused.orders has cleanup.policy=compact,delete, it must be compact (records would be deleted by their age, though they still exist); refused.cursors has max.message.bytes=1000, it must be 1048588 (most events are larger); refused.signals has 2 partitions, it must be 1 (its messages need a total order). Set another TOPIC_PREFIX, or correct the topics (a number of partitions can only be reduced by deleting a topic and creating it again): kafka-configs.sh --bootstrap-server "$KAFKA_BROKERS" --alter --entity-type topics --entity-name refused.orders --add-config cleanup.policy=compact && kafka-configs.sh --bootstrap-server "$KAFKA_BROKERS" --alter --entity-type topics --entity-name refused.cursors --add-config max.message.bytes=1048588';
    expect(service.stderr()).toContain(`cellarstream: ${line}\n`);
    const check = cliForTest(['check'], { ...env, STATE_DIR: folderForTest() });
    expect(await check.ended).toBe(1);
    expect(check.stdout()).toContain(`FAIL  ${line}\n`);
  });

  it('that are unwise are said, and go on', async () => {
    const sandbox = await sandboxForTest({ records: { orders: 5 } });
    await createTopic(client(), {
      topic: 'unwise.orders',
      numPartitions: 4,
      configEntries: configEntries({ 'cleanup.policy': 'compact', 'max.message.bytes': '500000' }),
    });
    await createTopic(client(), { topic: 'unwise.order-status-changes', numPartitions: 2 });
    const lines = [
      'unwise.orders has min.compaction.lag.ms=0, 2592000000 is wanted: compaction can remove events earlier than documented',
      'unwise.orders has max.message.bytes=500000, 1048588 is wanted: larger events are not published',
      'unwise.order-status-changes has 2 partitions, 4 is wanted: as unwise.orders has: consumers that join them by key need equal numbers of partitions',
      'unwise.order-status-changes has retention.ms=604800000, -1 is wanted: older events are deleted, and are not published again',
    ];
    const env = { ...settings(sandbox, 'unwise', folderForTest()), TOPIC_PARTITIONS: '6' };
    const check = cliForTest(['check'], { ...env, STATE_DIR: folderForTest() });
    await check.succeeded();
    const warned = check
      .stdout()
      .split('\n')
      .filter((line) => line.includes('warn  '));
    expect(warned.map((line) => line.replace(/^topic +warn {2}/, ''))).toEqual(lines);
    const service = cliForTest(['run'], env);
    await firstReadDone(service);
    const told = service.lines().filter(({ event }) => event === 'topic-setting');
    expect(told.map(({ msg }) => msg)).toEqual(lines);
    expect(told[0]).toMatchObject({
      level: 'warn',
      resource: 'orders',
      topic: 'unwise.orders',
      setting: 'min.compaction.lag.ms',
      found: '0',
      wanted: '2592000000',
    });
  });

  it('that are changed under the service stop their list alone, when it is taken over again', async () => {
    const { sandbox, service } = await published('changed', { RESOURCES: 'orders,products' });
    await setPolicy(client(), 'changed.products', 'delete');
    // Somebody takes its place, and goes away: the next commit finds that out.
    const intruder = client().producer({
      transactionalId: 'cellarstream.changed.default.products',
      createPartitioner: Partitioners.DefaultPartitioner,
    });
    await intruder.connect();
    await (await intruder.transaction()).abort();
    await intruder.disconnect();
    sandbox.change('products', [...sandbox.truth.keys('products')][0]!, { title: 'Reserve' });
    const failed = await failedOf(service, 'products');
    expect(textOf(failed)).toContain(
      'changed.products has cleanup.policy=delete, it must be compact',
    );
    await goesOn('changed', sandbox, 100_001);
  });
});
