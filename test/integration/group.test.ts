import { Kafka, logLevel } from 'kafkajs';
import type { IHeaders } from 'kafkajs';
import { firstValueFrom, NEVER, Subject, timer } from 'rxjs';
import { describe, expect, inject, it, onTestFinished, vi } from 'vitest';
import type { DeadLettered, GroupRetry } from '../../src/consumers/handling.ts';
import { frame } from '../../src/schemas/registry/wire.ts';
import { withAdmin } from '../support/with-admin.ts';
import { KafkaProxy } from '../support/proxy/kafka-proxy.ts';
import { Chance } from '../support/chance.ts';
import { createTopic } from './support/created-topic.ts';
import { committed, ends, member, membersOf } from './support/group-member.ts';
import { clientsForTest, numbers, writtenTopic } from './support/written-topic.ts';

const PARTITIONS = 6;

/** A topic of status changes under a prefix of the test's own. */
async function topicOf(prefix: string, partitions = PARTITIONS) {
  const clients = clientsForTest();
  const topic = await writtenTopic(clients, `${prefix}.order-status-changes`, partitions);
  return { clients, topic };
}

const wait = (ms: number) => firstValueFrom(timer(ms));

describe('subscribeGroup', () => {
  it('handles every event, those of a key in order and never two at once, while members come and go', async () => {
    const prefix = 'group-members';
    const { clients, topic } = await topicOf(prefix);
    const EACH = 300;
    const KEYS = 10;
    const keyOf = (number: number) => `${Math.floor(number / 1_000)}/${number % KEYS}`;
    const write = async (from: number) => {
      for (let partition = 0; partition < PARTITIONS; partition++) {
        const first = partition * 1_000 + from;
        await topic.write(partition, numbers(first, first + EACH / 2 - 1), { key: keyOf });
      }
    };
    await write(0);

    const chance = new Chance(7);
    const firsts = new Map<string, number[]>();
    const seen = new Set<number>();
    const underWay = new Set<string>();
    const overlaps: string[] = [];
    const join = () =>
      member(clients, prefix, async ({ key, value }) => {
        if (underWay.has(key!)) overlaps.push(key!);
        underWay.add(key!);
        await wait(chance.below(15));
        underWay.delete(key!);
        const number = value!.order_number!;
        if (seen.has(number)) return;
        seen.add(number);
        firsts.set(key!, [...(firsts.get(key!) ?? []), number]);
      });
    const reached = (count: number) =>
      vi.waitUntil(() => seen.size >= count, { timeout: 60_000, interval: 10 });

    const first = join();
    await reached(100);
    const second = join();
    await reached(300);
    const third = join();
    await vi.waitUntil(() => third.assigned.some(({ length }) => length > 0), { timeout: 20_000 });
    await write(EACH / 2);
    await reached(900);
    await first.stop();
    await reached(1_200);
    second.unsubscribe();
    await reached(PARTITIONS * EACH);
    await third.stop();

    expect(overlaps).toEqual([]);
    for (const [key, handled] of firsts) {
      expect(handled, key).toEqual([...handled].sort((a, b) => a - b));
      expect(handled, key).toHaveLength(EACH / KEYS);
    }
    expect(first.assigned[0]).toHaveLength(PARTITIONS);
    expect(await committed(clients, prefix)).toEqual(await ends(clients, prefix));
  });

  it('emits each event when it is handled, with what came of it', async () => {
    const prefix = 'group-emits';
    const { clients, topic } = await topicOf(prefix, 1);
    await topic.write(0, [1, 2, 3], { key: () => 'k' });
    const one = member(clients, prefix, ({ offset }) => [offset, `done ${offset}`]);
    await vi.waitUntil(() => one.handled.length === 3, { timeout: 20_000 });
    expect(one.handled.map(({ event, result }) => [event.value?.order_number, result])).toEqual([
      [1, 'done 0'],
      [2, 'done 1'],
      [3, 'done 2'],
    ]);
  });

  it('writes what it gives up to the dead letters as it was, and goes on', async () => {
    const prefix = 'group-dead';
    const { clients, topic } = await topicOf(prefix, 1);
    const dead = `${prefix}.mine`;
    await createTopic(clients.kafka, { topic: dead, numPartitions: 1 });
    const producer = clients.kafka.producer();
    await producer.connect();
    const garbage = Buffer.from('not Avro at all');
    const unknown = frame(987_654, Buffer.from([1, 2, 3]));
    await topic.write(0, [1, 2]);
    await producer.send({
      topic: topic.name,
      messages: [
        { key: 'bad', value: garbage, headers: { kept: ['a', 'b'], one: Buffer.from([255]) } },
        { key: null, value: unknown },
        { key: 'gone', value: null },
      ],
    });
    await topic.write(0, [3, 4]);
    await producer.disconnect();

    const letters: DeadLettered[] = [];
    const tries: number[] = [];
    const handle = ({ value }: { value: { order_number: number | null } | null }) => {
      const number = value?.order_number ?? 0;
      tries.push(number);
      if (number === 2) throw new Error('out of\n  stock');
      return Promise.resolve();
    };
    const one = member(clients, prefix, handle, {
      deadLetters: dead,
      retry: { tries: 3, firstMs: 5, maxMs: 5 },
      onDeadLetter: (letter) => letters.push(letter),
    });
    await vi.waitUntil(() => one.handled.length === 4 && letters.length === 3, { timeout: 20_000 });
    await one.stop();

    expect(tries.filter((number) => number === 2)).toHaveLength(3);
    expect(one.handled.map(({ event }) => event.value?.order_number).sort()).toEqual([
      1,
      3,
      4,
      undefined,
    ]);
    expect(await committed(clients, prefix)).toEqual(await ends(clients, prefix));

    const found = await rawMessages(clients, dead);
    const [bad, nameless, failed] = ['bad', undefined, '2'].map((key) =>
      found.find((message) => message.key?.toString() === key)!,
    );
    expect(bad!.value).toEqual(garbage);
    expect(bad!.headers).toMatchObject({
      kept: [Buffer.from('a'), Buffer.from('b')],
      one: Buffer.from([255]),
      'dlq-topic': Buffer.from(topic.name),
      'dlq-partition': Buffer.from('0'),
      'dlq-group': Buffer.from(`${prefix}-group`),
      'dlq-tries': Buffer.from('0'),
    });
    expect(nameless!.value).toEqual(unknown);
    expect(nameless!.key).toBeNull();
    expect(failed!.headers).toMatchObject({
      'dlq-error': Buffer.from('out of stock'),
      'dlq-tries': Buffer.from('3'),
      'dlq-offset': Buffer.from('1'),
    });
  });

  it('without dead letters ends with the last failure, its offset not committed', async () => {
    const prefix = 'group-fails';
    const { clients, topic } = await topicOf(prefix, 1);
    await topic.write(0, [1, 2, 3, 4]);
    const failure = new Error('no');
    const one = member(
      clients,
      prefix,
      ({ value }) => {
        if (value?.order_number === 3) throw failure;
      },
      { retry: { tries: 2, firstMs: 1 } },
    );
    await expect(one.ended).rejects.toBe(failure);
    expect(await committed(clients, prefix)).toEqual(new Map([[0, 2]]));
    expect(await membersOf(clients, prefix)).toBe(0);
  });

  it('says which topic is not there', async () => {
    const { clients } = await topicOf('group-absent', 1);
    const nothing = () => undefined;
    await expect(member(clients, 'group-nowhere', nothing).ended).rejects.toMatchObject({
      code: 'POSITION',
      message: expect.stringContaining('group-nowhere.order-status-changes'),
    });
    const lettered = member(clients, 'group-absent', nothing, { deadLetters: 'group-absent.mine' });
    await expect(lettered.ended).rejects.toMatchObject({
      code: 'POSITION',
      message: expect.stringMatching(
        /group-absent\.mine: create it first.*--topic group-absent\.mine/,
      ),
    });
  });

  it('ends with what Kafka refuses', async () => {
    const { clients } = await topicOf('group-refused', 1);
    const one = member(clients, 'group-refused', () => undefined, { sessionTimeoutMs: 10 });
    await expect(one.ended).rejects.toMatchObject({ code: 'KAFKA_REFUSED' });
  });

  it('keeps its place in the group though a handler takes longer than the session', async () => {
    const prefix = 'group-slow';
    const { clients, topic } = await topicOf(prefix, 2);
    await topic.write(0, [1, 2]);
    const one = member(clients, prefix, ({ value }) =>
      timer(value?.order_number === 1 ? 9_000 : 0),
    );
    await vi.waitUntil(() => one.handled.length === 2, { timeout: 30_000 });
    await one.stop();
    expect(one.assigned).toHaveLength(1);
    expect(one.handled).toHaveLength(2);
    expect(await committed(clients, prefix)).toEqual(
      new Map([
        [0, 3],
        [1, -1],
      ]),
    );
  });

  it('gives partitions up in the middle of a batch, and the next member goes on just there', async () => {
    const prefix = 'group-hand-over';
    const { clients, topic } = await topicOf(prefix, 2);
    const EACH = 150;
    for (const partition of [0, 1]) {
      await topic.write(partition, numbers(partition * 1_000, partition * 1_000 + EACH - 1));
    }
    let pace = 100; // 30 s in all
    const join = () => member(clients, prefix, () => wait(pace), { concurrency: 1 });
    const first = join();
    await vi.waitUntil(() => first.handled.length > 3, { timeout: 20_000 });
    const second = join();
    await vi.waitUntil(() => second.assigned.length > 0, { timeout: 20_000 });
    expect(first.handled.length).toBeLessThan(EACH);
    pace = 0;
    const handled = () => [...first.handled, ...second.handled];
    await vi.waitUntil(() => handled().length >= 2 * EACH, { timeout: 20_000 });
    const places = handled().map(({ event }) => `${event.partition} ${event.offset}`);
    expect(new Set(places).size).toBe(2 * EACH);
    expect(places).toHaveLength(2 * EACH); // none of them twice
    expect(second.handled.length).toBeGreaterThan(0);
  });

  it('waits for Kafka while it is away, and goes on where it was', async () => {
    const prefix = 'group-outage';
    const { clients, topic } = await topicOf(prefix, 1);
    await topic.write(0, [1, 2, 3]);
    const proxy = await KafkaProxy.listen(inject('brokers')[0]!);
    onTestFinished(() => proxy.close());
    const kafka = new Kafka({
      brokers: [proxy.address],
      logLevel: logLevel.NOTHING,
      retry: { initialRetryTime: 20, maxRetryTime: 100 },
    });
    const retries: GroupRetry[] = [];
    const onRetry = (retry: GroupRetry) => retries.push(retry);
    const one = member(clients, prefix, () => undefined, { kafka, onRetry, random: () => 0.1 });
    await vi.waitUntil(() => one.handled.length === 3, { timeout: 20_000 });

    proxy.tcp.refuse();
    proxy.tcp.cut();
    await vi.waitUntil(() => retries.length > 1, { timeout: 60_000 });
    expect(retries[0]).toMatchObject({ error: { code: 'KAFKA_UNREACHABLE' } });
    await topic.write(0, [4, 5, 6]);
    await proxy.tcp.admit();
    const numbersOf = () => one.handled.map(({ event }) => event.value?.order_number);
    await vi.waitUntil(() => numbersOf().includes(6), { timeout: 60_000 });
    expect([...new Set(numbersOf())]).toEqual([1, 2, 3, 4, 5, 6]);

    proxy.tcp.refuse();
    proxy.tcp.cut();
    await vi.waitUntil(() => retries.length > 5, { timeout: 60_000 });
    await one.stop(); // though nobody can be told
  });

  it('stop$ begins nothing, waits for what is under way, commits it and leaves', async () => {
    const prefix = 'group-stop';
    const { clients, topic } = await topicOf(prefix, 1);
    await topic.write(0, [1, 2, 3, 4, 5]);
    const release$ = new Subject<string>();
    const begun: number[] = [];
    const one = member(
      clients,
      prefix,
      ({ value }) => {
        begun.push(value!.order_number!);
        return begun.length > 2 ? firstValueFrom(release$) : Promise.resolve('at once');
      },
      { concurrency: 2 },
    );
    await vi.waitUntil(() => begun.length === 4, { timeout: 20_000 });
    const stopped = one.stop();
    release$.next('late');
    await stopped;
    expect(begun).toEqual([1, 2, 3, 4]);
    expect(one.handled.map(({ result }) => result)).toEqual(['at once', 'at once', 'late', 'late']);
    expect(await committed(clients, prefix)).toEqual(new Map([[0, 4]]));
    expect(await membersOf(clients, prefix)).toBe(0);
  });

  it('unsubscribed it takes no new work, commits what is done, and leaves in the background', async () => {
    const prefix = 'group-unsubscribed';
    const { clients, topic } = await topicOf(prefix, 1);
    await topic.write(0, [1, 2, 3, 4, 5]);
    const release$ = new Subject<void>();
    const begun: number[] = [];
    const one = member(
      clients,
      prefix,
      ({ value }) => {
        begun.push(value!.order_number!);
        return begun.length > 2 ? firstValueFrom(release$) : undefined;
      },
      { concurrency: 1 },
    );
    await vi.waitUntil(() => begun.length === 3, { timeout: 20_000 });
    one.unsubscribe();
    release$.next();
    await vi.waitUntil(async () => (await membersOf(clients, prefix)) === 0, { timeout: 20_000 });
    expect(begun).toEqual([1, 2, 3]);
    expect(one.handled).toHaveLength(2);
    expect(await committed(clients, prefix)).toEqual(new Map([[0, 3]]));
  });

  it('begins at the end if it is told to, once for the group, whoever handles the first event', async () => {
    const prefix = 'group-latest';
    const { clients, topic } = await topicOf(prefix, 2);
    await topic.write(0, [1, 2]);
    await topic.write(1, [3, 4]);
    const idle = member(clients, prefix, () => NEVER, { from: 'latest' });
    const other = member(clients, prefix, () => NEVER, { from: 'latest' });
    await vi.waitUntil(() => idle.assigned.length > 0 && other.assigned.length > 0, {
      timeout: 20_000,
    });
    await Promise.all([idle.stop(), other.stop()]);
    await topic.write(0, [5]);
    await topic.write(1, [6]);
    const next = member(clients, prefix, () => undefined, { from: 'latest' });
    await vi.waitUntil(() => next.handled.length >= 2, { timeout: 20_000 });
    const handled = next.handled.map(({ event }) => event.value?.order_number);
    expect(handled.sort()).toEqual([5, 6]);
  });
});

interface RawMessage {
  readonly key: Buffer | null;
  readonly value: Buffer | null;
  readonly headers?: IHeaders | undefined;
}

/** What a topic of one partition holds, bytes as they are. */
async function rawMessages(
  { kafka }: ReturnType<typeof clientsForTest>,
  topic: string,
): Promise<RawMessage[]> {
  const count = await withAdmin(kafka, async (admin) => {
    const [end] = await admin.fetchTopicOffsets(topic);
    return Number(end!.high);
  });
  const consumer = kafka.consumer({ groupId: `${topic}-raw`, maxWaitTimeInMs: 250 });
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  const found: RawMessage[] = [];
  await new Promise<void>((resolve) => {
    void consumer.run({
      eachMessage: ({ message }) => {
        found.push(message);
        if (found.length === count) resolve();
        return Promise.resolve();
      },
    });
  });
  await consumer.disconnect();
  return found;
}
