import kafkajs from 'kafkajs';
import type { Kafka } from 'kafkajs';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { openReader } from '../../../src/sinks/fetch/kafka-reader.ts';
import type { Range, ReaderOptions } from '../../../src/sinks/fetch/kafka-reader.ts';
import { fakeKafka } from '../../support/fake-kafka.ts';
import type { FakeKafka } from '../../support/fake-kafka.ts';
import { batchBytes } from '../../support/record-bytes.ts';

const TOPIC = 'wine.orders';
const AWAY = () => new kafkajs.KafkaJSConnectionError('Connection error: ECONNREFUSED');
const UNKNOWN_TOPIC = 3;
const NOT_LEADER = 6;
const OUT_OF_RANGE = 1;

let fake: FakeKafka;
let seen: string[];
beforeEach(() => {
  fake = fakeKafka();
  seen = [];
});

/** A reader of offsets 10 to 19 of partition 0, and of 5 to 9 of partition 1. */
function open({
  range,
  ...options
}: Partial<Omit<ReaderOptions, 'range'>> & { readonly range?: Partial<Range> } = {}) {
  return openReader({
    kafka: fake.kafka,
    topic: TOPIC,
    range: {
      from: new Map([
        [0, 10n],
        [1, 5n],
      ]),
      ends: new Map([
        [0, 20n],
        [1, 10n],
      ]),
      ...range,
    },
    onBatch: ({ partition, messages, next }) =>
      seen.push(...messages.map(({ offset }) => `${partition}:${offset}`), `${partition}>${next}`),
    ...options,
  });
}

describe('openReader', () => {
  it('hands over what is there, and nothing from before or behind', async () => {
    const reader = open();
    const first = await fake.nextFetch();
    expect(first.asked).toEqual(['0:10', '1:5']);
    first.answer({ partition: 0, offsets: [8, 9, 10, 11] }, { partition: 1 });
    const second = await fake.nextFetch();
    second.answer({ partition: 1, offsets: [9] }, { partition: 0, offsets: [13, 19, 20, 21] });
    await reader.done;
    expect(seen).toEqual(['0:10', '0:11', '0>12', '1:9', '1>10', '0:13', '0:19', '0>22']);
    await reader.close();
    expect(fake.counts).toEqual({ opened: 1, closed: 1 });
  });

  it('asks first for what has waited longest: an answer may have room for no more', async () => {
    const reader = open();
    (await fake.nextFetch()).answer({ partition: 0, offsets: [10] }, { partition: 1 });
    expect((await fake.nextFetch()).asked).toEqual(['1:5', '0:11']);
    await reader.close();
  });

  it('passes what compaction has emptied: batches, and the rest of a log', async () => {
    const reader = open();
    const emptied = batchBytes({ records: [], baseOffset: 10, lastOffset: 17 });
    const none = { records: Buffer.alloc(0), lastStableOffset: 30n };
    (await fake.nextFetch()).answer({ partition: 0, records: emptied }, { partition: 1, ...none });
    for (let time = 1; time <= 8; time++) {
      const fetch = await fake.nextFetch();
      expect(seen).toEqual(['0>18']); // once may be an accident
      fetch.answer({ partition: 1, ...none }, { partition: 0, ...none });
    }
    await reader.done;
    expect(seen).toEqual(['0>18', '1>30', '0>30']);
    await reader.close();
  });

  it('passes nothing of a topic that is not compacted: a broker may answer late', async () => {
    fake.policy = 'delete';
    const reader = open();
    const none = { records: Buffer.alloc(0), lastStableOffset: 30n };
    for (let time = 1; time <= 20; time++) {
      (await fake.nextFetch()).answer({ partition: 0, ...none }, { partition: 1, ...none });
    }
    (await fake.nextFetch()).answer(
      { partition: 0, offsets: [19] },
      { partition: 1, offsets: [9] },
    );
    await reader.done;
    expect(seen).toEqual(['0:19', '0>20', '1:9', '1>10']);
    await reader.close();
  });

  it('takes what had no room in an answer for nothing that is gone', async () => {
    const partitions = Array.from({ length: 50 }, (_, partition) => partition);
    for (const partition of partitions) fake.leaders.set(partition, 1);
    const all = (offset: bigint) => new Map(partitions.map((partition) => [partition, offset]));
    const reader = open({ range: { from: all(0n), ends: all(10n) } });
    const none = { records: Buffer.alloc(0), lastStableOffset: 30n };
    for (let time = 0; time < 12; time++) {
      const fetch = await fake.nextFetch();
      const asked = fetch.asked.map((each) => Number(each.split(':')[0]));
      fetch.answer(
        ...asked.map((partition, nth) => ({ partition, ...(nth < 4 ? { offsets: [0] } : none) })),
      );
    }
    await fake.nextFetch();
    expect(seen.filter((each) => each.endsWith('>1'))).toHaveLength(48);
    expect(seen.filter((each) => each.endsWith('>30'))).toEqual([]);
    await reader.close();
  });

  it('says where a batch is whose compressed records are damaged', async () => {
    const reader = open();
    const zstd = 4;
    const bytes = batchBytes({ records: [{ offset: 10 }], attributes: zstd });
    (await fake.nextFetch()).answer({ partition: 0, records: bytes }, { partition: 1 });
    const message = expect.stringMatching(
      /batch at offset 10 of partition 0 .* can't be read \(it is no valid zstd: /,
    ) as string;
    await expect(reader.done).rejects.toMatchObject({ code: 'KAFKA_REFUSED', message });
    await reader.close();
  });

  it('says that it can not read what is no batch, and does not pass it', async () => {
    const reader = open();
    const bytes = batchBytes({ records: [{ offset: 10 }] }).subarray(0, 40);
    (await fake.nextFetch()).answer({ partition: 0, records: bytes }, { partition: 1 });
    const message = expect.stringMatching(
      /batch at offset 10 of partition 0 .* is not whole/,
    ) as string;
    await expect(reader.done).rejects.toMatchObject({ code: 'KAFKA_REFUSED', message });
    await reader.close();
  });

  it('leaves what an answer has cut short to the next one', async () => {
    const reader = open();
    const bytes = batchBytes({ records: [{ offset: 5 }] }).subarray(0, 40);
    (await fake.nextFetch()).answer(
      { partition: 0, offsets: [10] },
      { partition: 1, records: bytes },
    );
    expect((await fake.nextFetch()).asked).toEqual(['1:5', '0:11']);
    await reader.close();
  });

  it('fetches nothing of a partition that is paused, until it is resumed', async () => {
    const reader = open({
      onBatch: ({ partition }) => {
        seen.push(String(partition));
        if (partition === 0) reader.pause(0);
      },
    });
    (await fake.nextFetch()).answer({ partition: 0, offsets: [10] }, { partition: 1 });
    const second = await fake.nextFetch();
    expect(second.asked).toEqual(['1:5']);
    second.answer({ partition: 1, offsets: [9] }); // nothing is left that is wanted
    await vi.waitUntil(() => seen.length === 2);
    reader.resume(0);
    expect((await fake.nextFetch()).asked).toEqual(['0:11']);
    await reader.close();
  });

  it('drops what is answered of a partition that was paused meanwhile, and fetches it again', async () => {
    const reader = open();
    const first = await fake.nextFetch();
    reader.pause(0);
    first.answer({ partition: 0, offsets: [10] }, { partition: 1, offsets: [5] });
    const second = await fake.nextFetch();
    expect(seen).toEqual(['1:5', '1>6']);
    reader.resume(0);
    second.answer({ partition: 1 });
    expect((await fake.nextFetch()).asked).toEqual(['0:10', '1:6']);
    await reader.close();
  });

  it('fetches from the brokers that lead, each by itself, wherever partitions go', async () => {
    fake.leaders.set(1, 2);
    const reader = open();
    const fetches = [await fake.nextFetch(), await fake.nextFetch()];
    const asked = fetches.map(({ leader, asked: what }) => [leader, what]);
    expect(asked).toEqual([
      [1, ['0:10']],
      [2, ['1:5']],
    ]);
    fake.leaders.set(1, 3);
    fetches[1]!.answer({ partition: 1, offsets: [5] });
    expect(await fake.nextFetch()).toMatchObject({ leader: 3, asked: ['1:6'] });
    await reader.close();
  });

  it('fetches a partition from another broker while the one before leads others', async () => {
    const reader = open();
    const first = await fake.nextFetch();
    fake.leaders.set(1, 2);
    first.answer({ partition: 0, offsets: [10] }, { partition: 1 });
    const fetches = [await fake.nextFetch(), await fake.nextFetch()];
    const asked = fetches.map(({ leader, asked: what }) => [leader, what]);
    expect(asked).toEqual(
      expect.arrayContaining([
        [1, ['0:11']],
        [2, ['1:5']],
      ]),
    );
    await reader.close();
  });

  it('reads partitions that are added from their beginning, where it follows', async () => {
    const reader = open({ follow: true });
    fake.leaders.set(2, 1);
    (await fake.nextFetch()).answer({ partition: 0 });
    const added = await vi.waitUntil(async () => {
      const fetch = await fake.nextFetch();
      if (fetch.asked.length === 3) return fetch;
      fetch.answer();
      return undefined;
    });
    expect(added.asked).toEqual(['0:10', '1:5', '2:0']);
    await reader.close();
  });

  it('connects anew when Kafka was away, and goes on where it was', async () => {
    const reader = open();
    (await fake.nextFetch()).answer({ partition: 0, offsets: [10, 11] });
    (await fake.nextFetch()).fail(AWAY());
    expect((await fake.nextFetch()).asked).toEqual(['1:5', '0:12']);
    expect(fake.counts).toEqual({ opened: 2, closed: 1 });
    await reader.close();
  });

  it.each([true, false])(
    'connects anew when a leader has moved, patient or not: %s',
    async (isPatient) => {
      const reader = open({ isPatient });
      (await fake.nextFetch()).answer({ partition: 0, errorCode: NOT_LEADER });
      (await fake.nextFetch()).answer(
        { partition: 0, offsets: [19] },
        { partition: 1, offsets: [9] },
      );
      await reader.done;
      await reader.close();
    },
  );

  it('hands over what two connections have fetched once', async () => {
    fake.leaders.set(1, 2);
    const reader = open();
    const [late, failing] = [await fake.nextFetch(), await fake.nextFetch()];
    failing.fail(AWAY());
    late.answer({ partition: 0, offsets: [10] });
    const again = [await fake.nextFetch(), await fake.nextFetch()];
    expect(again[0]!.asked).toEqual(['0:10']);
    again[0]!.answer({ partition: 0, offsets: [10, 19] });
    again[1]!.answer({ partition: 1, offsets: [9] });
    await reader.done;
    expect(seen.filter((each) => each === '0:10')).toHaveLength(1);
    await reader.close();
  });

  it('hands over what two leaders have sent once', async () => {
    const reader = open();
    const old = await fake.nextFetch();
    fake.leaders.set(0, 2);
    reader.resume(0); // looks who leads
    const newer = await fake.nextFetch();
    expect(newer).toMatchObject({ leader: 2, asked: ['0:10'] });
    old.answer({ partition: 0, offsets: [10, 11] }, { partition: 1, offsets: [9] });
    newer.answer({ partition: 0, offsets: [10, 11, 19] });
    (await fake.nextFetch()).answer({ partition: 0, offsets: [12, 19] });
    await reader.done;
    expect(seen.filter((each) => each.startsWith('0:'))).toEqual(['0:10', '0:11', '0:12', '0:19']);
    await reader.close();
  });

  it('takes what can be had beside a partition that is refused', async () => {
    const reader = open();
    const answers = [
      { partition: 0, errorCode: NOT_LEADER },
      { partition: 1, offsets: [5] },
    ];
    (await fake.nextFetch()).answer(...answers);
    expect((await fake.nextFetch()).asked).toEqual(['0:10', '1:6']);
    expect(fake.counts.opened).toBe(2);
    await reader.close();
  });

  it('does not wait for ever for a topic that is gone, or lacks a partition', async () => {
    vi.useFakeTimers();
    try {
      fake.leaders.delete(1);
      const reader = open();
      const gone = expect(reader.done).rejects.toMatchObject({ code: 'POSITION' });
      await vi.advanceTimersByTimeAsync(10_000);
      await gone;
      await reader.close();
      expect(fake.counts).toEqual({ opened: 6, closed: 6 });
    } finally {
      vi.useRealTimers();
    }
  });

  it('waits for a topic that is not known yet after Kafka was long away', async () => {
    vi.useFakeTimers();
    try {
      const reader = open();
      for (let time = 0; time < 8; time++) {
        const fetch = fake.nextFetch();
        await vi.advanceTimersByTimeAsync(5_000);
        (await fetch).fail(AWAY());
      }
      const fetch = fake.nextFetch();
      await vi.advanceTimersByTimeAsync(5_000);
      (await fetch).answer({ partition: 0, errorCode: UNKNOWN_TOPIC });
      const next = fake.nextFetch();
      await vi.advanceTimersByTimeAsync(5_000);
      expect((await next).asked).toEqual(['0:10', '1:5']);
      await reader.close();
    } finally {
      vi.useRealTimers();
    }
  });

  it('ends while Kafka does not answer', async () => {
    fake.refuse = 'silence';
    const reader = open();
    await reader.close();
  });

  it('ends at once while two brokers wait for something new', async () => {
    fake.leaders.set(1, 2);
    const reader = open({ follow: true, waitMs: 60_000 });
    const waiting = [await fake.nextFetch(), await fake.nextFetch()];
    expect(waiting.map(({ waitMs }) => waitMs)).toEqual([60_000, 60_000]);
    await reader.close();
    expect(fake.counts).toEqual({ opened: 1, closed: 1 });
  });

  it('has brokers wait for a quarter of a second, unless told otherwise', async () => {
    const reader = open();
    expect((await fake.nextFetch()).waitMs).toBe(250);
    await reader.close();
  });

  it('asks nothing of a connection that it has closed', async () => {
    const reader = open({ onBatch: () => void reader.close() });
    (await fake.nextFetch()).answer({ partition: 0, offsets: [10] }, { partition: 1 });
    await reader.close();
    expect(fake.counts).toEqual({ opened: 1, closed: 1 });
    expect(await Promise.race([fake.nextFetch(), Promise.resolve('none')])).toBe('none');
  });

  it('ends with the error where it is not patient', async () => {
    const reader = open({ isPatient: false });
    (await fake.nextFetch()).fail(AWAY());
    await expect(reader.done).rejects.toMatchObject({ code: 'KAFKA_UNREACHABLE' });
    await reader.close();
    expect(fake.counts).toEqual({ opened: 1, closed: 1 });
  });

  it('ends with an error where Kafka was never there, patient or not', async () => {
    fake.refuse = AWAY();
    const reader = open();
    await expect(reader.done).rejects.toMatchObject({ code: 'KAFKA_UNREACHABLE' });
    await reader.close();
  });

  it('ends with what no other connection can mend', async () => {
    const reader = open();
    // Its type takes no message, the class does.
    const refusal = Reflect.construct(kafkajs.KafkaJSSASLAuthenticationError, ['wrong']) as Error;
    (await fake.nextFetch()).fail(refusal);
    await expect(reader.done).rejects.toMatchObject({ code: 'KAFKA_REFUSED' });
    await reader.close();
    expect(fake.counts.opened).toBe(1);
  });

  it.each([
    [
      [12, 30],
      /offsets 10 to 11 of partition 0 of wine\.orders were deleted .* begin at 12/,
      'POSITION',
    ],
    [[0, 4], /partition 0 of wine\.orders ends at 4 and not at 10 as before/, 'POSITION'],
    [
      [0, 30],
      /do not agree whether partition 0 of wine\.orders has an offset 10/,
      'KAFKA_UNREACHABLE',
    ],
  ] as const)(
    'says what is the matter when an offset is not there: %j',
    async (bounds, message, code) => {
      fake.bounds.set(0, bounds);
      const reader = open({ isPatient: false });
      (await fake.nextFetch()).answer({ partition: 0, errorCode: OUT_OF_RANGE });
      await expect(reader.done).rejects.toMatchObject({
        code,
        message: expect.stringMatching(message) as string,
      });
      await reader.close();
    },
  );

  it('ends with an error where a topic that was made anew does not reach its end, and waits no more for it', async () => {
    fake.bounds.set(0, [0, 10]).set(1, [0, 10]);
    const reader = open();
    const short = { partition: 0, lastStableOffset: 10n };
    for (let time = 1; time <= 8; time++) {
      (await fake.nextFetch()).answer({ partition: 1, lastStableOffset: 10n }, short);
    }
    const message = expect.stringMatching(
      /partition 0 of wine\.orders ends at 10 and not at 20 as before/,
    ) as string;
    await expect(reader.done).rejects.toMatchObject({ code: 'POSITION', message });
    await reader.close();
  });

  it('ends with what the receiver throws', async () => {
    const bug = new TypeError('a bug');
    const onBatch = () => {
      throw bug;
    };
    const reader = open({ onBatch });
    (await fake.nextFetch()).answer({ partition: 0, offsets: [10] });
    await expect(reader.done).rejects.toBe(bug);
    await reader.close();
  });

  it('asks nothing of Kafka where nothing is to be read', async () => {
    let hasCaughtUp = false;
    const from = new Map([[0, 20n]]);
    const reader = open({ range: { from, ends: from }, onCaughtUp: () => (hasCaughtUp = true) });
    await reader.done;
    await reader.close();
    expect([hasCaughtUp, fake.counts.opened]).toEqual([true, 0]);
  });

  it('says that a client is of another kafkajs than it knows', async () => {
    const reader = open({ kafka: {} as Kafka });
    await expect(reader.done).rejects.toThrow(/no Kafka of kafkajs 2\.2/);
  });
});
