import { concatMap, EMPTY, firstValueFrom, lastValueFrom, Subject, take, tap, toArray } from 'rxjs';
import type { Observable } from 'rxjs';
import { describe, expect, it, vi } from 'vitest';
import type { Consumed } from '../../src/consumers/consumed.ts';
import { orderStatusChanges } from '../../src/consumers/order-status-changes.ts';
import { positionAfter } from '../../src/consumers/position.ts';
import type { TopicPosition } from '../../src/consumers/position.ts';
import { replay } from '../../src/consumers/replay.ts';
import type { ReplayOptions } from '../../src/consumers/replay.ts';
import { topicsUnder } from '../../src/consumers/wine-topics.ts';
import type { OrderStatusChange } from '../../src/description/wine/order-status.ts';
import { withAdmin } from '../support/with-admin.ts';
import { deleteRecords } from './support/deleted-records.ts';
import { clientsForTest, notingKafka, numbers, writtenTopic } from './support/written-topic.ts';
import type { Clients } from './support/written-topic.ts';

const NOON = Date.UTC(2026, 0, 31, 12);

type Change = Consumed<OrderStatusChange>;

/** Six partitions: 0 to 3 with commits and aborts between them, 4 with nothing but an abort, 5 empty. */
async function written(prefix: string) {
  const clients = clientsForTest();
  const name = `${prefix}.order-status-changes`;
  const topic = await writtenTopic(clients, name, 6);
  for (let round = 0; round < 5; round++) {
    for (let partition = 0; partition < 4; partition++) {
      const first = round * 1_000 + partition * 100;
      const at = NOON + round * 60_000 + partition * 50;
      await topic.write(partition, numbers(first, first + 49), { at });
      await topic.write(partition, numbers(first + 50, first + 59), { at, end: 'abort' });
    }
  }
  await topic.write(4, numbers(90_000, 90_009), { end: 'abort' });
  return { ...opened(prefix, clients), topic };
}

function opened(prefix: string, clients: Clients) {
  const topic = topicsUnder(prefix).orderStatusChanges;
  const replayed = (options: Partial<ReplayOptions<OrderStatusChange>> = {}) =>
    replay({ ...clients, topic, ...options });
  return { ...clients, name: topic.name, prefix, replayed };
}

/** The topic of the tests that write nothing to it: filling one takes longer than reading it. */
let filled: Promise<unknown> | undefined;
async function toRead() {
  const prefix = 'replay-shared';
  await (filled ??= written(prefix));
  return opened(prefix, clientsForTest());
}

/** What is in the topic, in each partition in order. */
const PUBLISHED = [0, 1, 2, 3].map((partition) =>
  [0, 1, 2, 3, 4].flatMap((round) => {
    const first = round * 1_000 + partition * 100;
    return numbers(first, first + 49);
  }),
);

const all = <T>(source: Observable<T>) => lastValueFrom(source.pipe(toArray()));
const numbersOf = (changes: readonly Change[]) => changes.map(({ value }) => value?.order_number);
const byPartition = (changes: readonly Change[]) =>
  [0, 1, 2, 3].map((partition) =>
    numbersOf(changes.filter((change) => change.partition === partition)),
  );

describe('replay', () => {
  it('gives what is committed, in order, completes at the end, and takes no group for it', async () => {
    const { replayed, name } = await toRead();
    const { kafka: noting, joined } = notingKafka();
    const changes = await all(replayed({ kafka: noting }));
    expect(byPartition(changes)).toEqual(PUBLISHED);
    expect(changes).toHaveLength(1_000);
    expect(changes[0]).toMatchObject({
      topic: name,
      key: String(changes[0]!.value!.order_number),
      timestamp: expect.any(Number),
      value: { event_id: `event-${changes[0]!.value!.order_number}`, subject: 'order' },
    });
    expect([...joined]).toEqual([]);
  });

  it('reads from a position to another, and goes on from one that was kept', async () => {
    const { replayed } = await toRead();
    let position: TopicPosition = {};
    const first = await all(replayed().pipe(take(333)));
    for (const change of first) position = positionAfter(position, change);
    const rest = await all(replayed({ from: position }));
    expect(byPartition([...first, ...rest])).toEqual(PUBLISHED);
    expect(first.length + rest.length).toBe(1_000);

    const within = await all(
      replayed({ from: { 0: '70', 1: '122' }, to: { 0: '122', 1: '123', 2: '0', 3: '0' } }),
    );
    expect(
      within.every(({ partition, offset }) => (partition === 0 ? +offset < 122 : +offset < 123)),
    ).toBe(true);
    expect(byPartition(within)[0]).toEqual(PUBLISHED[0]!.slice(58, 100));
    expect(byPartition(within).slice(2)).toEqual([[], []]);
  });

  it('reads from an instant to another', async () => {
    const { replayed } = await toRead();
    const from = new Date(NOON + 60_000 + 110);
    const to = new Date(NOON + 3 * 60_000);
    const changes = await all(replayed({ from, to }));
    // Partition 2 is in the middle of its second round then, 3 before it.
    expect(byPartition(changes)).toEqual([
      PUBLISHED[0]!.slice(100, 150),
      PUBLISHED[1]!.slice(100, 150),
      PUBLISHED[2]!.slice(60, 150),
      PUBLISHED[3]!.slice(50, 150),
    ]);
    expect(await all(replayed({ from: new Date(NOON + 86_400_000) }))).toEqual([]);
  });

  it('is done at once where there is nothing to read', async () => {
    const { replayed } = await toRead();
    expect(await all(replayed({ from: 'latest' }))).toEqual([]);
    const clients = clientsForTest();
    await writtenTopic(clients, 'replay-empty.order-status-changes', 3);
    const topic = topicsUnder('replay-empty').orderStatusChanges;
    expect(await all(replay({ ...clients, topic }))).toEqual([]);
  });

  it('ends where the topic ended as it began, though it grows meanwhile', async () => {
    const { kafka, registry, topic, prefix } = await written('replay-growing');
    const changes: Change[] = [];
    // In the handler, which the replay waits for: it ends behind all of these writes.
    const handled$ = replay(
      { kafka, registry, topic: topicsUnder(prefix).orderStatusChanges },
      async (change) => {
        if (changes.push(change) % 100 === 1) await topic.write(0, numbers(50_000, 50_010));
      },
    );
    await lastValueFrom(handled$);
    expect(byPartition(changes)).toEqual(PUBLISHED);
    expect(changes).toHaveLength(1_000);
  });

  it('follows: says when it has caught up, and goes on with what comes', async () => {
    const { replayed, topic } = await written('replay-follow');
    const changes: Change[] = [];
    const caughtUp = new Subject<number>();
    const stop$ = new Subject<void>();
    const isCaughtUp = firstValueFrom(caughtUp);
    const following = lastValueFrom(
      replayed({ to: 'never', stop$, onCaughtUp: () => caughtUp.next(changes.length) }).pipe(
        concatMap((change) => {
          changes.push(change);
          return EMPTY;
        }),
      ),
      { defaultValue: undefined },
    );
    expect(await isCaughtUp).toBe(1_000);
    await topic.write(5, numbers(7_000, 7_009));
    await topic.write(4, numbers(8_000, 8_009), { end: 'abort' });
    await topic.write(4, numbers(9_000, 9_009));
    await vi.waitUntil(() => changes.length === 1_020, { timeout: 20_000 });
    stop$.next();
    await following;
    expect(numbersOf(changes.slice(1_000)).sort()).toEqual([
      ...numbers(7_000, 7_009),
      ...numbers(9_000, 9_009),
    ]);
  });

  it('merges partitions by time', async () => {
    const { replayed } = await toRead();
    const changes = await all(replayed({ order: 'time' }));
    expect(byPartition(changes)).toEqual(PUBLISHED);
    const times = changes.map(({ timestamp }) => timestamp);
    expect(times).toEqual([...times].sort((a, b) => a - b));
  });

  it('gives the messages of a key, or of several', async () => {
    const { replayed } = await toRead();
    expect(numbersOf(await all(replayed({ key: '2107' })))).toEqual([2_107]);
    const several = await all(replayed({ key: ['2107', '3001', 'none'] }));
    expect(numbersOf(several).sort()).toEqual([2_107, 3_001]);
  });

  it('waits for what a handler gives before the next one, and stops when nobody listens', async () => {
    const { kafka, registry, prefix } = await toRead();
    let underWay = 0;
    const seen: number[] = [];
    const handled$ = replay(
      { kafka, registry, topic: topicsUnder(prefix).orderStatusChanges },
      async ({ value }) => {
        expect(++underWay).toBe(1);
        await new Promise(setImmediate);
        underWay -= 1;
        seen.push(value!.order_number!);
        return value!.order_number!;
      },
    );
    const taken = await all(handled$.pipe(take(120)));
    expect(taken).toHaveLength(120);
    await vi.waitUntil(() => underWay === 0);
    expect(seen.length).toBeLessThanOrEqual(121);
  });

  it('fails at a value that it can not read, behind all that is before it', async () => {
    const { replayed, topic } = await written('replay-unreadable');
    await topic.write(5, numbers(7_000, 7_009)); // and a marker: the next offset is 11
    await topic.send(5, [{ key: 'x', value: Buffer.from('not ours') }]);
    await topic.write(5, numbers(8_000, 8_009));
    const read: Change[] = [];
    const failing = lastValueFrom(replayed().pipe(tap((one) => read.push(one))));
    await expect(failing).rejects.toMatchObject({
      code: 'VALUE_UNREADABLE',
      context: { partition: 5, offset: '11' },
      message: expect.stringContaining(
        'offset 11 of partition 5 of replay-unreadable.order-status-changes',
      ),
    });
    const ofFive = (changes: readonly Change[]) =>
      numbersOf(changes.filter(({ partition }) => partition === 5));
    expect(ofFive(read)).toEqual(numbers(7_000, 7_009));
    const behind = await all(replayed({ from: { 5: '12' } }));
    expect(ofFive(behind)).toEqual(numbers(8_000, 8_009));
    expect(behind).toHaveLength(1_010);
  });

  it.each([
    [{ topic: 'replay-nowhere.orders' }, /there is no topic replay-nowhere.orders/],
    [{ from: { 9: '0' } }, /9:0: .* has the partitions 0 to 5/],
    [
      { from: { 0: '5000' } },
      /0:5000: partition 0 of .* ends at \d+: give that offset or a lower one/,
    ],
    [{ to: { 0: 'x' } }, /0:x: an offset is a whole number/],
    [{ from: new Date(NaN) }, /to begin or to end at is invalid/],
  ])('refuses %j', async (wrong, message) => {
    const { kafka, registry, topic } = await refusing();
    const options = { kafka, registry, topic: topic.name, ...wrong };
    await expect(all(replay(options))).rejects.toMatchObject({
      code: 'POSITION',
      message: expect.stringMatching(message),
    });
  });

  it('refuses to begin at what retention has deleted', async () => {
    const { replayed, kafka, name } = await written('replay-deleted');
    await deleteRecords(kafka, name, 0, '100');
    await expect(all(replayed({ from: { 0: '20' } }))).rejects.toMatchObject({
      code: 'POSITION',
      message: expect.stringContaining('begins at 100'),
    });
    const left = await all(replayed());
    // Each commit of 50 ends with a marker, and so does each abort of 10: 100 is the 89th number.
    expect(byPartition(left)).toEqual([PUBLISHED[0]!.slice(88), ...PUBLISHED.slice(1)]);
  });
});

async function refusing() {
  const clients = clientsForTest();
  const name = 'replay-refusing.order-status-changes';
  const there = await withAdmin(clients.kafka, async (admin) =>
    (await admin.listTopics()).includes(name),
  );
  return { ...clients, topic: there ? { name } : await writtenTopic(clients, name, 6) };
}

describe('orderStatusChanges', () => {
  it.each([
    [{}, () => true],
    [{ field: 'payment_status' }, (n: number) => n % 2 === 0],
    [{ from: null, to: ['Shipped', 'Delivered'] }, (n: number) => n % 3 === 0 && n % 5 !== 0],
    [{ order_number: [100, 4_149, 50], to: 'Shipped' }, (n: number) => n === 4_149],
    [{ subject: 'fulfillment' }, () => false],
  ] as const)('lets through %j', async (where, isWanted) => {
    const { kafka, registry, prefix } = await toRead();
    const changes = await all(orderStatusChanges({ kafka, registry, prefix, where }));
    expect(numbersOf(changes).sort()).toEqual(PUBLISHED.flat().filter(isWanted).sort());
  });
});
