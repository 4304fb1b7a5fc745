import { setImmediate } from 'node:timers/promises';
import type { Kafka } from 'kafkajs';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { TopicReader } from '../../../src/kafka/fetch/kafka-reader.ts';
import type { Range, ReaderOptions } from '../../../src/kafka/fetch/kafka-reader.ts';
import { batchBytes } from '../../support/record-bytes.ts';
import { kafkaOf, ScriptedCluster } from '../../support/scripted-cluster.ts';
import { holdFetches } from '../../support/scripted-cluster/held-fetches.ts';
import type { Received } from '../../support/scripted-cluster/fault.ts';
import type { HeldFetch } from '../../support/scripted-cluster/held-fetches.ts';

const TOPIC = 'wine.orders';
const UNKNOWN_TOPIC = 3;
const NOT_LEADER = 6;
const OUT_OF_RANGE = 1;
const NOT_ALLOWED = 29;

let cluster: ScriptedCluster;
let kafka: Kafka;
let nextFetch: () => Promise<HeldFetch>;
let seen: string[];
beforeEach(async () => {
  // The broker 0 leads the partitions 0 and 1.
  cluster = await ScriptedCluster.start({ brokers: 3, topics: { [TOPIC]: 2 } });
  cluster.lead(TOPIC, 1, 0);
  kafka = kafkaOf(cluster, { connectionTimeout: 600_000 }); // some tests let time pass while it connects
  nextFetch = holdFetches(cluster);
  seen = [];
});
afterEach(async () => {
  vi.useRealTimers();
  // Each reader has closed its connections.
  await vi.waitUntil(() => cluster.open === 0, { interval: 5 });
  await cluster.close();
  expect(cluster.errors).toEqual([]);
});

/** Makes kafkajs' metadata expire. */
function outdateMetadata(): void {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 400_000 });
}

/** All but `setImmediate`, for sockets. */
function fakeTimers(): void {
  const timers = ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] as const;
  vi.useFakeTimers({ toFake: [...timers, 'Date', 'performance'] });
}

/** The next fetch, however much time has to pass. */
async function fetchInTime(): Promise<HeldFetch> {
  let fetch: HeldFetch | undefined;
  void nextFetch().then((found) => (fetch = found));
  while (!fetch) {
    await vi.advanceTimersByTimeAsync(100);
    await setImmediate();
  }
  return fetch;
}

/** Answers ListOffsets with these first and last offsets of partitions. */
function tellBounds(bounds: Readonly<Record<number, readonly [low: number, high: number]>>): void {
  const EARLIEST = -2;
  cluster.fault({
    api: 'ListOffsets',
    times: Infinity,
    deed: (received) => ({
      answer: {
        topics: (received as Received<'ListOffsets'>).body.topics.map(({ topic, partitions }) => ({
          topic,
          partitions: partitions.map(({ partition, time }) => {
            const [low, high] = bounds[partition] ?? [0, 0];
            return { partition, errorCode: 0, offset: time === EARLIEST ? low : high };
          }),
        })),
      },
    }),
  });
}

/** A reader of offsets 10 to 19 of partition 0, and of 5 to 9 of partition 1. */
function open({
  range,
  ...options
}: Partial<Omit<ReaderOptions, 'range'>> & { readonly range?: Partial<Range> } = {}) {
  return new TopicReader({
    kafka: kafka,
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

describe('TopicReader', () => {
  it('hands over what is there, and nothing from before or behind', async () => {
    const reader = open();
    const first = await nextFetch();
    expect(first.asked).toEqual(['0:10', '1:5']);
    first.answer({ partition: 0, offsets: [8, 9, 10, 11] }, { partition: 1 });
    const second = await nextFetch();
    second.answer({ partition: 1, offsets: [9] }, { partition: 0, offsets: [13, 19, 20, 21] });
    await reader.done;
    expect(seen).toEqual(['0:10', '0:11', '0>12', '1:9', '1>10', '0:13', '0:19', '0>22']);
    await reader.close();
  });

  it('asks first for what has waited longest: an answer may have room for no more', async () => {
    const reader = open();
    (await nextFetch()).answer({ partition: 0, offsets: [10] }, { partition: 1 });
    expect((await nextFetch()).asked).toEqual(['1:5', '0:11']);
    await reader.close();
  });

  it('passes what compaction has emptied: batches, and the rest of a log', async () => {
    const reader = open();
    const emptied = batchBytes({ records: [], baseOffset: 10, lastOffset: 17 });
    const none = { records: Buffer.alloc(0), stableEnd: 30 };
    (await nextFetch()).answer({ partition: 0, records: emptied }, { partition: 1, ...none });
    for (let time = 1; time <= 8; time++) {
      const fetch = await nextFetch();
      expect(seen).toEqual(['0>18']); // once may be an accident
      fetch.answer({ partition: 1, ...none }, { partition: 0, ...none });
    }
    await reader.done;
    expect(seen).toEqual(['0>18', '1>30', '0>30']);
    await reader.close();
  });

  it('passes nothing of a topic that is not compacted: a broker may answer late', async () => {
    cluster.settings = { 'cleanup.policy': 'delete' };
    const reader = open();
    const none = { records: Buffer.alloc(0), stableEnd: 30 };
    for (let time = 1; time <= 20; time++) {
      (await nextFetch()).answer({ partition: 0, ...none }, { partition: 1, ...none });
    }
    (await nextFetch()).answer({ partition: 0, offsets: [19] }, { partition: 1, offsets: [9] });
    await reader.done;
    expect(seen).toEqual(['0:19', '0>20', '1:9', '1>10']);
    await reader.close();
  });

  it('takes what had no room in an answer for nothing that is gone', async () => {
    const partitions = Array.from({ length: 50 }, (_, partition) => partition);
    cluster.partitions.set(TOPIC, partitions.length);
    for (const partition of partitions) cluster.lead(TOPIC, partition, 0);
    const all = (offset: bigint) => new Map(partitions.map((partition) => [partition, offset]));
    const reader = open({ range: { from: all(0n), ends: all(10n) } });
    const none = { records: Buffer.alloc(0), stableEnd: 30 };
    for (let time = 0; time < 12; time++) {
      const fetch = await nextFetch();
      const asked = fetch.asked.map((each) => Number(each.split(':')[0]));
      fetch.answer(
        ...asked.map((partition, nth) => ({ partition, ...(nth < 4 ? { offsets: [0] } : none) })),
      );
    }
    await nextFetch();
    expect(seen.filter((each) => each.endsWith('>1'))).toHaveLength(48);
    expect(seen.filter((each) => each.endsWith('>30'))).toEqual([]);
    await reader.close();
  });

  it('says where a batch is whose compressed records are damaged', async () => {
    const reader = open();
    const zstd = 4;
    const bytes = batchBytes({ records: [{ offset: 10 }], attributes: zstd });
    (await nextFetch()).answer({ partition: 0, records: bytes }, { partition: 1 });
    const message = expect.stringMatching(
      /batch at offset 10 of partition 0 .* can't be read \(it is no valid zstd: /,
    ) as string;
    await expect(reader.done).rejects.toMatchObject({ code: 'KAFKA_REFUSED', message });
    await reader.close();
  });

  it('says where a batch is whose format is older than Kafka 0.11', async () => {
    const reader = open();
    const bytes = batchBytes({ records: [{ offset: 10 }], magic: 1 });
    (await nextFetch()).answer({ partition: 0, records: bytes }, { partition: 1 });
    const message = expect.stringMatching(
      /batch at offset 10 of partition 0 of wine\.orders can't be read \(its format is from before Kafka 0\.11: copy such messages to a new topic\)/,
    ) as string;
    await expect(reader.done).rejects.toMatchObject({ code: 'KAFKA_REFUSED', message });
    await reader.close();
  });

  it('says that it can not read what is no batch, and does not pass it', async () => {
    const reader = open();
    const bytes = batchBytes({ records: [{ offset: 10 }] }).subarray(0, 40);
    (await nextFetch()).answer({ partition: 0, records: bytes }, { partition: 1 });
    const message = expect.stringMatching(
      /batch at offset 10 of partition 0 .* is incomplete/,
    ) as string;
    await expect(reader.done).rejects.toMatchObject({ code: 'KAFKA_REFUSED', message });
    await reader.close();
  });

  it('leaves what an answer has cut short to the next one', async () => {
    const reader = open();
    const bytes = batchBytes({ records: [{ offset: 5 }] }).subarray(0, 40);
    (await nextFetch()).answer({ partition: 0, offsets: [10] }, { partition: 1, records: bytes });
    expect((await nextFetch()).asked).toEqual(['1:5', '0:11']);
    await reader.close();
  });

  it('fetches nothing of a partition that is paused, until it is resumed', async () => {
    const reader = open({
      onBatch: ({ partition }) => {
        seen.push(String(partition));
        if (partition === 0) reader.pause(0);
      },
    });
    (await nextFetch()).answer({ partition: 0, offsets: [10] }, { partition: 1 });
    const second = await nextFetch();
    expect(second.asked).toEqual(['1:5']);
    second.answer({ partition: 1, offsets: [9] }); // nothing is left that is wanted
    await vi.waitUntil(() => seen.length === 2);
    reader.resume(0);
    expect((await nextFetch()).asked).toEqual(['0:11']);
    await reader.close();
  });

  it('drops what is answered of a partition that was paused meanwhile, and fetches it again', async () => {
    const reader = open();
    const first = await nextFetch();
    reader.pause(0);
    first.answer({ partition: 0, offsets: [10] }, { partition: 1, offsets: [5] });
    const second = await nextFetch();
    expect(seen).toEqual(['1:5', '1>6']);
    reader.resume(0);
    second.answer({ partition: 1 });
    expect((await nextFetch()).asked).toEqual(['0:10', '1:6']);
    await reader.close();
  });

  it('fetches from the brokers that lead, each by itself, wherever partitions go', async () => {
    cluster.lead(TOPIC, 1, 1);
    const reader = open();
    const fetches = [await nextFetch(), await nextFetch()];
    const asked = fetches.map(({ broker, asked: what }) => [broker, what]);
    expect(asked).toEqual([
      [0, ['0:10']],
      [1, ['1:5']],
    ]);
    cluster.lead(TOPIC, 1, 2);
    outdateMetadata();
    fetches[1]!.answer({ partition: 1, offsets: [5] });
    expect(await nextFetch()).toMatchObject({ broker: 2, asked: ['1:6'] });
    await reader.close();
  });

  it('fetches a partition from another broker while the one before leads others', async () => {
    const reader = open();
    const first = await nextFetch();
    cluster.lead(TOPIC, 1, 1);
    outdateMetadata();
    first.answer({ partition: 0, offsets: [10] }, { partition: 1 });
    const fetches = [await nextFetch(), await nextFetch()];
    const asked = fetches.map(({ broker, asked: what }) => [broker, what]);
    expect(asked).toEqual(
      expect.arrayContaining([
        [0, ['0:11']],
        [1, ['1:5']],
      ]),
    );
    await reader.close();
  });

  it('reads partitions that are added from their beginning, where it follows', async () => {
    const reader = open({ follow: true });
    const before = await nextFetch();
    cluster.partitions.set(TOPIC, 3);
    cluster.lead(TOPIC, 2, 0);
    outdateMetadata();
    before.answer({ partition: 0 });
    const added = await vi.waitUntil(async () => {
      const fetch = await nextFetch();
      if (fetch.asked.length === 3) return fetch;
      fetch.answer();
      return undefined;
    });
    expect(added.asked).toEqual(['0:10', '1:5', '2:0']);
    await reader.close();
  });

  it('connects anew when Kafka was away, and goes on where it was', async () => {
    const reader = open();
    (await nextFetch()).answer({ partition: 0, offsets: [10, 11] });
    const failing = await nextFetch();
    failing.hangUp();
    const again = await nextFetch();
    expect(again.asked).toEqual(['1:5', '0:12']);
    expect(again.connection).not.toBe(failing.connection);
    await reader.close();
  });

  it.each([true, false])(
    'connects anew when a leader has moved, patient or not: %s',
    async (isPatient) => {
      const reader = open({ retriesOutages: isPatient });
      (await nextFetch()).answer({ partition: 0, errorCode: NOT_LEADER });
      (await nextFetch()).answer({ partition: 0, offsets: [19] }, { partition: 1, offsets: [9] });
      await reader.done;
      await reader.close();
    },
  );

  it('hands over what two connections have fetched once', async () => {
    cluster.lead(TOPIC, 1, 1);
    const reader = open();
    const [late, failing] = [await nextFetch(), await nextFetch()];
    failing.hangUp();
    late.answer({ partition: 0, offsets: [10] });
    const again = [await nextFetch(), await nextFetch()];
    expect(again[0]!.asked).toEqual(['0:10']);
    again[0]!.answer({ partition: 0, offsets: [10, 19] });
    again[1]!.answer({ partition: 1, offsets: [9] });
    await reader.done;
    expect(seen.filter((each) => each === '0:10')).toHaveLength(1);
    await reader.close();
  });

  it('hands over what two leaders have sent once', async () => {
    const reader = open();
    const old = await nextFetch();
    cluster.lead(TOPIC, 0, 1);
    outdateMetadata();
    reader.pause(0);
    reader.resume(0); // looks who leads
    // The other partition may be asked for again, before or after.
    const fetchOf = async (place: string) => {
      for (;;) {
        const fetch = await nextFetch();
        if (fetch.asked.includes(place)) return fetch;
      }
    };
    const newer = await fetchOf('0:10');
    expect(newer.broker).toBe(1);
    old.answer({ partition: 0, offsets: [10, 11] }, { partition: 1, offsets: [9] });
    newer.answer({ partition: 0, offsets: [10, 11, 19] });
    (await fetchOf('0:12')).answer({ partition: 0, offsets: [12, 19] });
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
    const refused = await nextFetch();
    refused.answer(...answers);
    const again = await nextFetch();
    expect(again.asked).toEqual(['0:10', '1:6']);
    expect(again.connection).not.toBe(refused.connection);
    await reader.close();
  });

  it('does not wait for ever for a topic that is gone, or lacks a partition', async () => {
    fakeTimers();
    cluster.partitions.set(TOPIC, 1);
    const reader = open();
    let isOver = false;
    const gone = expect(reader.done)
      .rejects.toMatchObject({ code: 'POSITION' })
      .finally(() => (isOver = true));
    const began = performance.now();
    while (!isOver) {
      await vi.advanceTimersByTimeAsync(100);
      await setImmediate();
    }
    await gone;
    expect(performance.now() - began).toBeGreaterThan(5_000);
    await reader.close();
  });

  it('waits for a topic that is not known yet after Kafka was long away', async () => {
    fakeTimers();
    const reader = open();
    for (let time = 0; time < 8; time++) {
      const fetch = await fetchInTime();
      await vi.advanceTimersByTimeAsync(5_000);
      fetch.hangUp();
    }
    (await fetchInTime()).answer({ partition: 0, errorCode: UNKNOWN_TOPIC });
    expect((await fetchInTime()).asked).toEqual(['0:10', '1:5']);
    await reader.close();
  });

  it('ends while Kafka does not answer', async () => {
    cluster.fault({ api: 'ApiVersions', times: Infinity, deed: 'lose request' });
    const reader = open();
    await reader.close();
  });

  it('ends at once while two brokers wait for something new', async () => {
    cluster.lead(TOPIC, 1, 1);
    const reader = open({ follow: true, waitMs: 60_000 });
    const waiting = [await nextFetch(), await nextFetch()];
    expect(waiting.map(({ waitMs }) => waitMs)).toEqual([60_000, 60_000]);
    await reader.close();
  });

  it('has brokers wait for a quarter of a second, unless told otherwise', async () => {
    const reader = open();
    expect((await nextFetch()).waitMs).toBe(250);
    await reader.close();
  });

  it('asks nothing of a connection that it has closed', async () => {
    const reader = open({ onBatch: () => void reader.close() });
    (await nextFetch()).answer({ partition: 0, offsets: [10] }, { partition: 1 });
    await reader.close();
    expect(cluster.of('Fetch')).toHaveLength(1);
  });

  it('ends with the error where it is not patient', async () => {
    const reader = open({ retriesOutages: false });
    (await nextFetch()).hangUp();
    await expect(reader.done).rejects.toMatchObject({ code: 'KAFKA_UNREACHABLE' });
    await reader.close();
  });

  it('takes an answer that makes no sense for an outage, and says who has answered', async () => {
    const reader = open();
    (await nextFetch()).garble();
    expect((await nextFetch()).asked).toEqual(['0:10', '1:5']);
    await reader.close();
    const impatient = open({ retriesOutages: false });
    (await nextFetch()).garble();
    await expect(impatient.done).rejects.toMatchObject({
      code: 'KAFKA_UNREACHABLE',
      cause: { message: `the response of ${cluster.brokers[0]} to Fetch can't be decoded` },
    });
    await impatient.close();
  });

  it('ends with an error where Kafka was never there, patient or not', async () => {
    await cluster.close();
    const reader = open();
    await expect(reader.done).rejects.toMatchObject({ code: 'KAFKA_UNREACHABLE' });
    await reader.close();
  });

  it('ends with what no other connection can mend', async () => {
    const reader = open();
    (await nextFetch()).answer({ partition: 0, errorCode: NOT_ALLOWED });
    await expect(reader.done).rejects.toMatchObject({ code: 'KAFKA_REFUSED' });
    await reader.close();
    expect(cluster.of('Fetch')).toHaveLength(1);
  });

  it.each([
    [
      [12, 30],
      /offsets 10 to 11 of partition 0 of wine\.orders were deleted .* begin at 12/,
      'POSITION',
    ],
    [
      [0, 4],
      /partition 0 of wine\.orders ends at offset 4, before the requested offset 10/,
      'POSITION',
    ],
    [
      [0, 30],
      /do not agree whether partition 0 of wine\.orders has an offset 10/,
      'KAFKA_UNREACHABLE',
    ],
  ] as const)(
    'says what is the matter when an offset is not there: %j',
    async (bounds, message, code) => {
      tellBounds({ 0: bounds });
      const reader = open({ retriesOutages: false });
      (await nextFetch()).answer({ partition: 0, errorCode: OUT_OF_RANGE });
      await expect(reader.done).rejects.toMatchObject({
        code,
        message: expect.stringMatching(message) as string,
      });
      await reader.close();
    },
  );

  it('ends with an error where a topic that was made anew does not reach its end, and waits no more for it', async () => {
    tellBounds({ 0: [0, 10], 1: [0, 10] });
    const reader = open();
    const short = { partition: 0, stableEnd: 10 };
    for (let time = 1; time <= 8; time++) {
      (await nextFetch()).answer({ partition: 1, stableEnd: 10 }, short);
    }
    const message = expect.stringMatching(
      /partition 0 of wine\.orders ends at offset 10, before the requested offset 20/,
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
    (await nextFetch()).answer({ partition: 0, offsets: [10] });
    await expect(reader.done).rejects.toBe(bug);
    await reader.close();
  });

  it('asks nothing of Kafka where nothing is to be read', async () => {
    const from = new Map([[0, 20n]]);
    const reader = open({ range: { from, ends: from } });
    await reader.done;
    await reader.close();
    expect(cluster.requests).toEqual([]);
  });

  it('says that a client is of another kafkajs than it knows', async () => {
    const reader = open({ kafka: {} as Kafka });
    await expect(reader.done).rejects.toThrow(/not of kafkajs 2\.2/);
  });
});
