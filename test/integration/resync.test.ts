import { Kafka, logLevel } from 'kafkajs';
import { describe, expect, inject, it, onTestFinished } from 'vitest';
import type { Sandbox } from '../../src/sandbox/index.ts';
import type { ResyncAck } from '../../src/sinks/signals/signals.ts';
import type { Cli, LogLine } from './support/cli.ts';
import { follow } from './support/follow.ts';
import {
  cliForTest,
  connections,
  firstReadDone,
  folderForTest,
  sandboxForTest,
  settings,
} from './support/service.ts';
import type { Env } from './support/service.ts';
import { readTopic } from './support/topic-reader.ts';
import type { Read } from './support/topic-reader.ts';

/** Without polls that find by themselves what has changed. */
const SELDOM = { POLL_INTERVAL_MS: '600000' };

type Event = {
  readonly key: string;
  readonly op: string;
  readonly before: Record<string, unknown> | null;
  readonly after: Record<string, unknown> | null;
  readonly changed: readonly string[];
  readonly source: { readonly snapshot: string; readonly sequence: number };
};

const topicOf = (prefix: string, name: string) =>
  readTopic(inject('brokers'), inject('registryUrl'), `${prefix}.${name}`);
/** In the order in which they were published. */
const eventsOf = async (prefix: string, resource = 'orders') =>
  (await topicOf(prefix, resource))
    .map(eventOf)
    .sort((a, b) => a.source.sequence - b.source.sequence);
const pollsOf = ({ truth }: Sandbox) =>
  truth.requests('orders').filter(({ query }) => query.includes('modifiedFromDate'));
const eventOf = ({ key, value }: Read): Event => ({ ...(value as Event), key: key! });
/** Those of a request: the others have no `before`, or differ from it. */
const repeated = (events: readonly Event[]) =>
  events.filter((event) => event.op === 'r' && event.before !== null);
const acksIn = (text: string) =>
  text
    .split('\n')
    .filter((line) => line.includes('"resync-ack"'))
    .map((line) => JSON.parse(line) as ResyncAck);

/** For `logged`, which rejects when the service ends before. */
const isReady = ({ event }: LogLine) => event === 'ready';

/** `cellarstream resync FLAGS`, to its end. */
async function resync(env: Env, ...flags: string[]) {
  const cli = cliForTest(['resync', ...flags], env);
  const code = await cli.ended;
  return { code, acks: acksIn(cli.stdout()), stderr: cli.stderr() };
}

/** The service of a sandbox, once it has read all. */
async function serving(env: Env): Promise<Cli> {
  const service = cliForTest(['run'], env);
  await firstReadDone(service);
  return service;
}

/** All acknowledgements in the topic of signals, as anybody can read them. */
async function allAcks(prefix: string): Promise<ResyncAck[]> {
  const texts: string[] = [];
  const kafka = new Kafka({ brokers: inject('brokers'), logLevel: logLevel.NOTHING });
  const admin = kafka.admin();
  await admin.connect();
  const [end] = await admin.fetchTopicOffsets(`${prefix}.signals`);
  await admin.disconnect();
  const consumer = kafka.consumer({ groupId: `test-signals-${prefix}`, maxWaitTimeInMs: 250 });
  await consumer.connect();
  await consumer.subscribe({ topic: `${prefix}.signals`, fromBeginning: true });
  await new Promise<void>((resolve) => {
    consumer.on(consumer.events.END_BATCH_PROCESS, ({ payload }) => {
      if (BigInt(payload.lastOffset) + 1n >= BigInt(end!.high)) resolve();
    });
    void consumer.run({
      eachMessage: ({ message }) => Promise.resolve(void texts.push(String(message.value))),
    });
  });
  await consumer.disconnect();
  return acksIn(texts.join('\n'));
}

describe('resync', () => {
  it('publishes one order again, each time that it is asked, without a status event', async () => {
    const sandbox = await sandboxForTest({ records: { orders: 50 } });
    const env = settings(sandbox, 'resync-one', folderForTest());
    await serving(env);
    for (let n = 0; n < 2; n++) {
      const { code, acks } = await resync(env, '--order', '100007');
      expect(code).toBe(0);
      expect(acks).toMatchObject([
        { account: 'default', resource: 'orders', status: 'done', events: 1, message: null },
      ]);
    }
    const events = await eventsOf('resync-one');
    const [first, second, third, ...more] = events.filter(({ key }) => key === '100007');
    expect(more).toEqual([]);
    expect(first).toMatchObject({ op: 'r', before: null, source: { snapshot: 'true' } });
    for (const [before, again] of [
      [first!, second!],
      [second!, third!],
    ] as const) {
      expect(again).toMatchObject({ op: 'r', changed: [], source: { snapshot: 'false' } });
      expect(again.before).toEqual(before.after);
      expect(again.after).toEqual(before.after);
      expect(again.source.sequence).toBeGreaterThan(before.source.sequence);
    }
    expect(events).toHaveLength(52);
    expect(await topicOf('resync-one', 'order-status-changes')).toEqual([]);
  });

  it('publishes whole lists again, and of a list what was modified since', async () => {
    const sandbox = await sandboxForTest({
      records: { orders: 250, inventory: 90 },
      historyEndsAt: Date.now() - 86_400_000,
    });
    const env = {
      ...settings(sandbox, 'resync-lists', folderForTest()),
      RESOURCES: 'orders,inventory',
      PAGE_SIZE: '100',
    };
    const service = cliForTest(['run'], env);
    for (const name of ['orders', 'inventory']) {
      await service.logged(
        ({ event, done, resource }) => event === 'first-read' && done === true && resource === name,
      );
    }
    const all = await resync(env);
    expect(all.code).toBe(0);
    expect(all.acks.map(({ resource, events }) => [resource, events]).sort()).toEqual([
      ['inventory', 90],
      ['orders', 250],
    ]);
    const one = await resync(env, '--resource', 'inventory');
    expect(one.acks).toMatchObject([{ resource: 'inventory', events: 90 }]);
    expect(repeated(await eventsOf('resync-lists', 'inventory'))).toHaveLength(180);
    // Each once, although pages overlap.
    const orders = repeated(await eventsOf('resync-lists'));
    expect(new Set(orders.map(({ key }) => key)).size).toBe(250);
    expect(orders).toHaveLength(250);

    const since = new Date(sandbox.truth.changes.at(-1)?.at ?? Date.now()).toISOString();
    for (const number of [100_003, 100_200]) sandbox.setStatus(number, 'payment_status', 'voided');
    const { acks } = await resync(env, '--resource', 'orders', '--since', since);
    expect(acks).toMatchObject([{ resource: 'orders', status: 'done' }]);
    const newer = repeated(await eventsOf('resync-lists')).slice(250);
    expect(newer.map(({ key }) => key).sort()).toEqual(['100003', '100200']);
    for (const { after } of newer) expect(after).toMatchObject({ payment_status: 'voided' });
    expect(await service.end('SIGTERM')).toBe(0);
  });

  it('publishes what has changed meanwhile as u with its status, then as r', async () => {
    const sandbox = await sandboxForTest({ records: { orders: 20 } });
    const env = { ...settings(sandbox, 'resync-changed', folderForTest()), ...SELDOM };
    await serving(env);
    await expect.poll(() => pollsOf(sandbox).length, { timeout: 30_000 }).toBe(1);
    sandbox.setStatus(100_004, 'payment_status', 'refunded');
    const { acks } = await resync(env, '--order', '100004');
    // The update and the repetition; only the latter if a probe of the dates or a late poll has met the change first.
    expect(acks).toMatchObject([{ status: 'done', events: expect.toBeOneOf([1, 2]) as number }]);

    const mine = (await eventsOf('resync-changed')).filter(({ key }) => key === '100004');
    expect(mine.map(({ op }) => op)).toEqual(['r', 'u', 'r']);
    const [, update, again] = mine;
    expect(again!.before).toEqual(update!.after);
    expect(again!.after).toEqual(update!.after);
    const statuses = await topicOf('resync-changed', 'order-status-changes');
    expect(statuses.map(({ value }) => [value!.field, value!.to])).toEqual([
      ['payment_status', 'refunded'],
    ]);
  });

  it('says of an order that is not there that nothing was published', async () => {
    const sandbox = await sandboxForTest({ records: { orders: 20 } });
    const env = settings(sandbox, 'resync-unknown', folderForTest());
    await serving(env);
    const { code, acks, stderr } = await resync(env, '--order', '4711');
    expect(code).toBe(0);
    expect(acks).toMatchObject([
      { status: 'done', events: 0, message: 'the API has no record 4711 in orders' },
    ]);
    expect(stderr).toContain(
      'orders: done, 0 events published (the API has no record 4711 in orders)\n',
    );
    expect(await eventsOf('resync-unknown')).toHaveLength(20);
  });

  it('waits for a service that is down, and is not done again after the next start', async () => {
    const sandbox = await sandboxForTest({ records: { orders: 30 } });
    const env = settings(sandbox, 'resync-down', folderForTest());
    const first = await serving(env);
    expect(await first.end('SIGTERM')).toBe(0);
    const late = await resync(env, '--order', '100001', '--timeout', '1');
    expect(late).toMatchObject({ code: 1, acks: [] });
    expect(late.stderr).toContain('orders: not acknowledged so far; the request stays');
    expect((await resync(env, '--order', '100002', '--no-wait')).code).toBe(0);
    const waiting = cliForTest(['resync', '--order', '100003'], env);

    const second = cliForTest(['run'], env);
    await second.logged(isReady);
    await waiting.succeeded();
    await second.end('SIGKILL');
    const third = cliForTest(['run'], env);
    await third.logged(isReady);
    expect((await resync(env, '--order', '100004')).code).toBe(0); // behind all the others
    const again = repeated(await eventsOf('resync-down')).map(({ key }) => key);
    expect(again).toEqual(expect.arrayContaining(['100001', '100002', '100003', '100004']));
    expect(again).toHaveLength(4);
    expect(await allAcks('resync-down')).toHaveLength(4);
    await third.end('SIGTERM');
  });

  it('is begun anew after a SIGKILL in its middle, and acknowledged once', async () => {
    const sandbox = await sandboxForTest({ records: { orders: 2_000 } });
    const env = {
      ...settings(sandbox, 'resync-kill', folderForTest()),
      ...SELDOM,
      PAGE_SIZE: '50',
    };
    const first = await serving(env);
    sandbox.setLatency(100);
    const events = follow('resync-kill.orders');
    const waiting = cliForTest(['resync', '--resource', 'orders'], env);
    await expect.poll(() => events.length, { timeout: 60_000 }).toBeGreaterThan(2_500);
    await first.end('SIGKILL');
    sandbox.setLatency(0);
    await cliForTest(['run'], env).logged(isReady);
    await waiting.succeeded();
    expect(acksIn(waiting.stdout())).toMatchObject([{ status: 'done', events: 2_000 }]);

    const all = await eventsOf('resync-kill');
    const last = new Map<string, Event>();
    for (const event of all) {
      const before = last.get(event.key);
      expect(event.before).toEqual(before?.after ?? null);
      expect(event.source.sequence).toBeGreaterThan(before?.source.sequence ?? 0);
      last.set(event.key, event);
    }
    expect(all.length).toBeGreaterThan(4_500);
    expect(all.length).toBeLessThan(6_000);
    expect(await allAcks('resync-kill')).toHaveLength(1);
    expect(await topicOf('resync-kill', 'order-status-changes')).toEqual([]);
  });

  it('refuses what the service does not read, and passes over what is no request', async () => {
    const sandbox = await sandboxForTest({ records: { orders: 20 } });
    const env = settings(sandbox, 'resync-refused', folderForTest());
    const service = await serving(env);
    const producer = new Kafka({
      brokers: inject('brokers'),
      logLevel: logLevel.NOTHING,
    }).producer();
    await producer.connect();
    onTestFinished(() => producer.disconnect());
    await producer.send({
      topic: 'resync-refused.signals',
      messages: [{ key: 'a', value: 'no JSON' }],
    });
    const { code, acks } = await resync(env, '--resource', 'customers');
    expect(code).toBe(1);
    expect(acks).toMatchObject([
      {
        resource: 'customers',
        status: 'refused',
        events: 0,
        message: 'this service does not read customers: it reads orders',
      },
    ]);
    const { reason } = await service.logged(({ event }) => event === 'signal-ignored');
    expect(reason).toBe('no signal: it is not JSON');
    const others = { ...env, ACCOUNT_NAME: 'other' };
    expect((await resync(others, '--order', '100001', '--timeout', '2')).acks).toEqual([]);
    expect(await service.end('SIGTERM')).toBe(0);
  });

  it('fails in one line where there is no service, and with flags that do not go together', async () => {
    const sandbox = await sandboxForTest({ records: { orders: 1 } });
    const env = connections(sandbox, 'resync-absent', folderForTest());
    const absent = await resync(env);
    expect(absent.code).toBe(1);
    expect(absent.stderr).toMatch(/^cellarstream: there is no topic resync-absent\.signals: .*\n$/);
    for (const flags of [
      ['--order', '1', '--resource', 'customers'],
      ['--order', '1', '--since', '2026-01-01'],
      ['--order', 'one'],
      ['--since', 'yesterday'],
    ]) {
      const { code, stderr } = await resync(env, ...flags);
      expect(code).toBe(2);
      expect(stderr).toMatch(/^cellarstream: --.*\n$/);
    }
    expect((await resync(env, '--resource', 'wines')).code).toBe(2);
  });
});
