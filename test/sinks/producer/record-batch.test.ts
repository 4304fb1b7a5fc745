import { randomBytes } from 'node:crypto';
import Decoder from 'kafkajs/src/protocol/decoder.js';
import decodeBatch from 'kafkajs/src/protocol/recordBatch/v0/decoder.js';
import { describe, expect, it } from 'vitest';
import kafkajs from 'kafkajs';
import type { PartitionMetadata } from 'kafkajs';
import {
  maxBytesOf,
  packRecords,
  recordBatch,
  batchesOf,
  MAX_BATCH_BYTES,
  maxEventBytes,
  partitionOf,
} from '../../../src/sinks/producer/record-batch.ts';
import type {
  HeaderValue,
  ProducerRecord,
  PartitionedRecord,
  PackedRecords,
} from '../../../src/sinks/producer/record-batch.ts';
import { messagesOf, recordBatches } from '../../../src/kafka/fetch/record-batches.ts';
import { mulberry32 } from '../../support/chance.ts';
import { slowCrc32c } from '../../support/slow-crc32c.ts';
import { scaled } from '../../support/scale.ts';

const STAMP = {
  producerId: 2n ** 62n + 7n,
  epoch: 32_767,
  sequence: 2 ** 31 - 2,
  isTransactional: true,
  timestamp: 1.7e12 + 1,
};
/** Where a varint takes another byte, as zigzag has it, on both sides. */
const EDGES = [0, 1, 63, 64, 65, 8_191, 8_192, 8_193, 1_048_575, 1_048_576];

type Plain = string | null | (string | null)[];
const hex = (value: HeaderValue): string | null =>
  value == null ? null : Buffer.from(value).toString('hex');
const hexOf = (value: HeaderValue | readonly HeaderValue[]): Plain =>
  Array.isArray(value) ? value.map(hex) : hex(value as HeaderValue);
/** What is compared quickly: buffers are not. */
const plain = ({ key, value, headers = {} }: ProducerRecord) => [
  hex(key),
  hex(value),
  Object.entries(headers).map(([name, content]) => [name, hexOf(content)]),
];

const packedAlone = (records: readonly ProducerRecord[]) =>
  packRecords(
    records,
    records.reduce((sum, record) => sum + maxBytesOf(record), 0),
  );

/** Read by kafkajs, and by our own reader, which was written after Kafka's documentation apart from the writer. */
async function readByBoth(records: readonly ProducerRecord[]) {
  const bytes = recordBatch(await packedAlone(records), STAMP);
  const theirs = await decodeBatch(new Decoder(bytes));
  const [batch, ...others] = recordBatches(bytes);
  expect(others).toEqual([]);
  return { bytes, theirs, batch: batch!, ours: await messagesOf(batch!) };
}

function someRecords(seed: number): ProducerRecord[] {
  const random = mulberry32(seed);
  const below = (bound: number) => Math.floor(random() * bound);
  const bytes = () => Buffer.alloc(below(3) * below(9_000), below(256));
  const text = () => ['', 'k', 'é', '🍷', 'x'.repeat(below(200))][below(5)]!;
  const header = () => [text(), bytes(), [text(), bytes()]][below(3)]!;
  return Array.from({ length: 1 + below(200) }, () => ({
    key: [null, text(), bytes()][below(3)]!,
    value: below(4) === 0 ? null : bytes(),
    ...(below(3) > 0 && {
      headers: Object.fromEntries(
        Array.from({ length: below(4) }, (_, n) => [`${text()}${n}`, header()]),
      ),
    }),
  }));
}

describe('recordBatch', () => {
  it('is read by kafkajs and by our reader as it was written, whatever it is', async () => {
    for (let seed = 0; seed < scaled(8, 100); seed++) {
      const records = someRecords(seed);
      const { theirs, ours } = await readByBoth(records);
      expect(theirs.records.map(plain)).toEqual(records.map(plain));
      expect(ours.map(plain)).toEqual(records.map(plain));
      expect(ours.map(({ offset }) => Number(offset))).toEqual(records.map((_, n) => n));
      expect(theirs.records.map(({ offset }) => Number(offset))).toEqual(records.map((_, n) => n));
    }
  });

  it.each(EDGES)('holds keys, values and headers of %i bytes', async (length) => {
    const bytes = Buffer.alloc(length, 7);
    const text = 'é'.repeat(length / 2) + (length % 2 ? 'e' : '');
    const records = [
      { key: bytes, value: null },
      { key: text, value: Buffer.alloc(0) },
      { key: null, value: bytes, headers: { [text]: 'v', name: bytes, text } },
      { key: '', value: bytes, headers: { '': '' } },
    ];
    const { theirs, ours } = await readByBoth(records);
    expect(theirs.records.map(plain)).toEqual(records.map(plain));
    expect(ours.map(plain)).toEqual(records.map(plain));
  });

  it.each([63, 64, 65, 8_191, 8_192, 8_193])('holds %i records', async (count) => {
    const records = Array.from({ length: count }, (_, n) => ({ key: String(n), value: null }));
    const { theirs, ours, batch } = await readByBoth(records);
    expect([batch.count, batch.lastOffset, theirs.lastOffsetDelta]).toEqual([
      count,
      count - 1,
      count - 1,
    ]);
    expect(ours.map(({ key }) => String(key))).toEqual(records.map(({ key }) => key));
    expect(theirs.records.map(({ key }) => String(key))).toEqual(records.map(({ key }) => key));
  });

  it.each([63, 64, 65])('holds %i headers, the last one null', async (count) => {
    const names = Array.from({ length: count }, (_, n) => `h${n}`);
    const headers = { ...Object.fromEntries(names.map((name) => [name, name])), none: undefined };
    const { ours } = await readByBoth([{ key: 'k', value: null, headers }]);
    expect(Object.keys(ours[0]!.headers)).toEqual([...names, 'none']);
    expect(ours[0]!.headers.none).toBeUndefined();
  });

  it('keeps headers of one name in their order', async () => {
    const headers = { one: ['1', Buffer.from('2'), '3'], other: 'x' };
    const { theirs, ours } = await readByBoth([{ key: 'k', value: null, headers }]);
    for (const [record] of [theirs.records, ours]) {
      expect(plain(record!)).toEqual(plain({ key: 'k', value: null, headers }));
    }
  });

  it('says who has sent it, what it follows on, and when it was', async () => {
    const { theirs, batch, ours } = await readByBoth([
      { key: '1', value: null },
      { key: '2', value: null },
    ]);
    expect(theirs).toMatchObject({
      firstOffset: '0',
      producerId: String(STAMP.producerId),
      producerEpoch: STAMP.epoch,
      firstSequence: STAMP.sequence,
      firstTimestamp: String(STAMP.timestamp),
      maxTimestamp: String(STAMP.timestamp),
      partitionLeaderEpoch: -1,
      inTransaction: true,
      isControlBatch: false,
    });
    expect(batch).toMatchObject({ attributes: 0x10, producerId: STAMP.producerId });
    const times = [...theirs.records, ...ours].map(({ timestamp }) => timestamp);
    expect(new Set(times)).toEqual(new Set([String(STAMP.timestamp)]));
  });

  it('has records with an offset to the timestamp of the batch', async () => {
    const { theirs, ours } = await readByBoth([
      { key: '1', value: null, timestampOffset: 1 },
      { key: '2', value: null },
    ]);
    const later = String(STAMP.timestamp + 1);
    expect(theirs).toMatchObject({ firstTimestamp: String(STAMP.timestamp), maxTimestamp: later });
    for (const records of [theirs.records, ours]) {
      expect(records.map(({ timestamp }) => timestamp)).toEqual([later, String(STAMP.timestamp)]);
    }
  });

  it('says nothing of a transaction where there is none', async () => {
    const records = await packedAlone([{ key: 'k', value: null }]);
    const [batch] = recordBatches(recordBatch(records, { ...STAMP, isTransactional: false }));
    expect(batch!.attributes).toBe(0);
  });

  it('is compressed where that makes much less of it', async () => {
    for (const [length, codec] of [
      [0, 0],
      [1_000, 0],
      [2_048, 1],
      [100_000, 1],
    ] as const) {
      const records = [{ key: 'k', value: Buffer.alloc(length, 7) }];
      const { batch, bytes, ours } = await readByBoth(records);
      expect(batch.attributes & 7).toBe(codec);
      expect(bytes.length < 1_500).toBe(true);
      expect(ours.map(plain)).toEqual(records.map(plain));
    }
  });

  it('has the checksum of all that stands behind it, and its own length', async () => {
    for (let seed = 0; seed < 20; seed++) {
      const bytes = recordBatch(await packedAlone(someRecords(seed).slice(0, 5)), STAMP);
      expect(bytes.readUInt32BE(17)).toBe(slowCrc32c(bytes.subarray(21)));
      expect(bytes.readInt32BE(8)).toBe(bytes.length - 12);
      expect(bytes.readInt8(16)).toBe(2);
    }
  });

  it('leaves what it is made of as it was: the next one of it is the same', async () => {
    const records = await packedAlone(someRecords(3));
    const first = recordBatch(records, STAMP);
    recordBatch(records, { ...STAMP, sequence: 9 });
    expect(recordBatch(records, STAMP).equals(first)).toBe(true);
  });
});

describe('maxBytesOf', () => {
  it('is at least what a record takes', () => {
    for (let seed = 0; seed < 30; seed++) {
      for (const record of someRecords(seed)) {
        const { key, value, headers = {} } = record;
        const fields = [key, value, ...Object.entries(headers).flat(2)];
        const content = fields.reduce((sum, each) => sum + Buffer.byteLength(each ?? ''), 0);
        expect(maxBytesOf(record)).toBeGreaterThan(content);
      }
    }
  });
});

const record = (topic: string, partition: number, key: string, bytes = 1): PartitionedRecord => ({
  topic,
  partition,
  key,
  value: randomBytes(bytes),
});
const keysOf = async (batches: readonly PackedRecords[]) =>
  Promise.all(
    batches.map(async (batch) => {
      const [read] = recordBatches(recordBatch(batch, STAMP));
      return (await messagesOf(read!)).map(({ key }) => String(key));
    }),
  );

describe('batchesOf', () => {
  it("keeps to a topic's own max.message.bytes, as the broker counts them", async () => {
    const most = 100_000;
    const records = Array.from({ length: 20 }, (_, n) => record('small', 0, String(n), 30_000));
    const largest = record('small', 0, 'largest', maxEventBytes(most));
    const [{ batches } = { batches: [] }] = await batchesOf(
      [...records, largest],
      new Map([['small', most]]),
    );
    expect((await keysOf(batches)).flat()).toEqual([...records.map(({ key }) => key), 'largest']);
    for (const batch of batches) expect(recordBatch(batch, STAMP).length).toBeLessThanOrEqual(most);
  });

  it('keeps the order of each partition, and those of topics apart', async () => {
    const all = await batchesOf([
      record('a', 1, '1'),
      record('b', 1, '2'),
      record('a', 1, '3'),
      record('a', 0, '4'),
      record('b', 1, '5'),
    ]);
    const keys = all.map(async ({ topic, partition, batches }) => [
      `${topic} ${partition}`,
      ...(await keysOf(batches)),
    ]);
    expect(await Promise.all(keys)).toEqual([
      ['a 1', ['1', '3']],
      ['b 1', ['2', '5']],
      ['a 0', ['4']],
    ]);
  });

  it('fills a batch as far as it may be, and goes on in the next one', async () => {
    const third = Math.floor(MAX_BATCH_BYTES / 3) - 100;
    const records = Array.from({ length: 7 }, (_, n) => record('a', 0, String(n), third));
    const [partition] = await batchesOf(records);
    expect(await keysOf(partition!.batches)).toEqual([['0', '1', '2'], ['3', '4', '5'], ['6']]);
    expect(partition!.batches.map(({ count }) => count)).toEqual([3, 3, 1]);
    for (const { bytes } of partition!.batches) {
      expect(bytes.length).toBeLessThan(2 ** 20); // what brokers take
    }
  });

  it('counts the bytes of one partition in no other', async () => {
    const large = MAX_BATCH_BYTES - 1_000;
    const all = await batchesOf([0, 1, 2].map((partition) => record('a', partition, 'k', large)));
    expect(all.map(({ batches }) => batches.length)).toEqual([1, 1, 1]);
  });

  it('counts the bytes of keys and headers', async () => {
    const half = 'x'.repeat(MAX_BATCH_BYTES / 2);
    const one = { ...record('a', 0, 'k'), headers: { h: half } };
    const [partition] = await batchesOf([one, record('a', 0, half), one]);
    expect(partition!.batches.map(({ count }) => count)).toEqual([1, 1, 1]);
  });

  it('sends what is too large for a batch in one of its own: the broker has the word', async () => {
    const [partition] = await batchesOf([
      record('a', 0, '1'),
      record('a', 0, '2', MAX_BATCH_BYTES + 1),
      record('a', 0, '3'),
    ]);
    expect(await keysOf(partition!.batches)).toEqual([['1'], ['2'], ['3']]);
  });

  it('makes nothing of nothing', async () => {
    expect(await batchesOf([])).toEqual([]);
  });
});

/** By key, the partition of six that Java's client takes: murmur2 as in its own UtilsTest. */
const JAVA: readonly (readonly [key: string, partition: number])[] = [
  ['21', 0],
  ['foobar', 0],
  ['a-little-bit-long-string', 2],
  ['a-little-bit-longer-string', 5],
  ['lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8', 5],
  ['abc', 3],
];

/** Letters of one to four bytes, and what is no character at all. */
const LETTERS = ['a', '0', '/', 'é', 'ß', '葡', '🍷', '\u0000', '\ud800'];

const partitioner = kafkajs.Partitioners.DefaultPartitioner();
const kafkajsOf = (key: string | Buffer, count: number): number => {
  const partitionMetadata = Array.from({ length: count }, (_, partitionId) => ({
    partitionId,
  })) as PartitionMetadata[];
  return partitioner({ topic: 't', message: { key, value: null }, partitionMetadata });
};

describe('partitionOf', () => {
  it.each(JAVA)("puts %s where Java's client does", (key, partition) => {
    expect(partitionOf(key, 6)).toBe(partition);
    expect(partitionOf(Buffer.from(key), 6)).toBe(partition);
  });

  it("puts keys of every length and alphabet where kafkajs' partitioner does", () => {
    const random = mulberry32(1);
    const below = (bound: number) => Math.floor(random() * bound);
    for (let n = 0; n < 3_000; n++) {
      const letters = Array.from({ length: below(40) }, () => LETTERS[below(LETTERS.length)]!);
      const key = letters.join('');
      const count = 1 + below(50);
      expect(partitionOf(key, count), JSON.stringify(key)).toBe(kafkajsOf(key, count));
    }
  });

  it("puts keys that are no text where kafkajs' partitioner does", () => {
    const random = mulberry32(2);
    for (let length = 0; length < 300; length++) {
      const key = Buffer.from(Array.from({ length }, () => random() * 256));
      expect(partitionOf(key, 7)).toBe(kafkajsOf(key, 7));
    }
  });
});
