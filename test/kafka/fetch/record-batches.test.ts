import type { RecordBatchEntry } from 'kafkajs';
import { describe, expect, it } from 'vitest';
import {
  committedBatches,
  messagesOf,
  recordBatches,
} from '../../../src/kafka/fetch/record-batches.ts';
import { mulberry32 } from '../../support/chance.ts';
import { batchBytes, markerBytes } from '../../support/record-bytes.ts';
import type { RecordSpec } from '../../support/record-bytes.ts';

const TRANSACTIONAL = 16;
const LOG_APPEND_TIME = 8;

const offsetsOf = (batches: ReturnType<typeof recordBatches>) =>
  batches.map(({ baseOffset }) => baseOffset);
const messages = async (bytes: Buffer) =>
  (await Promise.all(recordBatches(bytes).map(messagesOf))).flat();
const written = (offset: number, producerId: number) =>
  batchBytes({ records: [{ offset, key: 'k' }], producerId, attributes: TRANSACTIONAL });

/** Records as a compacted log may hold them: with holes, and every length of a varint. */
function someRecords(seed: number): RecordSpec[] {
  const random = mulberry32(seed);
  const below = (bound: number) => Math.floor(random() * bound);
  const bytes = () => (below(4) === 0 ? null : Buffer.alloc(below(3) * below(9_000), below(256)));
  let offset = below(2 ** 40);
  return Array.from({ length: 1 + below(40) }, () => ({
    offset: (offset += 1 + below(3) * below(1_000)),
    key: below(4) === 0 ? null : 'é'.repeat(below(200)),
    value: bytes(),
    at: 1.7e12 + below(2 ** 40) - 2 ** 39,
    headers: Array.from({ length: below(3) }, (_, n) => [`h${n}`, bytes()] as const),
  }));
}

const hex = (bytes: Buffer | string | null | undefined) =>
  typeof bytes === 'string' ? Buffer.from(bytes).toString('hex') : (bytes?.toString('hex') ?? null);
/** What is compared quickly: buffers are not. */
const plain = ({ offset, timestamp, key, value, headers }: RecordBatchEntry) => [
  offset,
  timestamp,
  hex(key),
  hex(value),
  ...Object.entries(headers).map(([name, content]) => [name, hex(content as Buffer | undefined)]),
];
const asRead = ({ offset, at, key, value, headers = [] }: RecordSpec) => [
  String(offset),
  String(at),
  hex(key),
  hex(value),
  ...headers.map(([name, content]) => [name, hex(content)]),
];

describe('messagesOf', () => {
  it.each([0, 1])('reads what was written, whatever it is: codec %i', async (codec) => {
    for (let seed = 0; seed < 50; seed++) {
      const records = someRecords(seed);
      const read = await messages(batchBytes({ records, attributes: codec }));
      expect(read.map(plain)).toEqual(records.map(asRead));
    }
  });

  it('gathers headers of one name', async () => {
    const [one, two, three] = ['1', '2', '3'].map((text) => Buffer.from(text)) as [
      Buffer,
      Buffer,
      Buffer,
    ];
    const headers = [
      ['a', one],
      ['b', two],
      ['a', two],
      ['a', three],
    ] as const;
    const [message] = await messages(batchBytes({ records: [{ offset: 1, headers }] }));
    expect(message!.headers).toEqual({ a: [one, two, three], b: two });
  });

  it('takes the time of the log where a topic says so', async () => {
    const records = [
      { offset: 1, at: 10 },
      { offset: 2, at: 20 },
    ];
    const read = await messages(
      batchBytes({ records, attributes: LOG_APPEND_TIME, maxTimestamp: 99 }),
    );
    expect(read.map(({ timestamp }) => timestamp)).toEqual(['99', '99']);
  });

  it('reads nothing from a batch of which compaction has left the header', async () => {
    const [batch] = recordBatches(
      batchBytes({ records: [], baseOffset: 5, lastOffset: 9, attributes: 1 }),
    );
    expect(batch).toMatchObject({ baseOffset: 5, lastOffset: 9, count: 0 });
    expect(await messagesOf(batch!)).toEqual([]);
  });

  it.each([
    [2, 'snappy'],
    [4, 'zstd'],
    [7, 'codec 7'],
  ])('says what is wrong with bytes that are not of codec %i: %s', async (attributes, name) => {
    const [batch] = recordBatches(batchBytes({ records: [{ offset: 1 }], attributes }));
    await expect(messagesOf(batch!)).rejects.toThrow(name);
  });

  it('takes no record that ends before its fields do', async () => {
    const [batch] = recordBatches(batchBytes({ records: [{ offset: 1, value: Buffer.alloc(9) }] }));
    const cut = { ...batch!, records: batch!.records.subarray(0, -3) };
    await expect(messagesOf(cut)).rejects.toThrow('ends before its fields do');
  });
});

describe('recordBatches', () => {
  it('leaves a batch that was cut short to the next answer', () => {
    const bytes = Buffer.concat([written(1, 7), written(2, 7)]);
    for (let length = 0; length < bytes.length; length++) {
      const whole = length < bytes.length / 2 ? [] : [1];
      expect(offsetsOf(recordBatches(bytes.subarray(0, length)))).toEqual(whole);
    }
    expect(offsetsOf(recordBatches(bytes))).toEqual([1, 2]);
  });

  it('refuses formats from before Kafka 0.11', () => {
    const bytes = batchBytes({ records: [{ offset: 1 }], magic: 1 });
    expect(() => recordBatches(bytes)).toThrow(/before Kafka 0\.11/);
  });
});

describe('committedBatches', () => {
  const committed = (aborted: readonly [producer: number, from: number][], ...bytes: Buffer[]) =>
    offsetsOf(
      committedBatches(
        recordBatches(Buffer.concat(bytes)),
        aborted.map(([producerId, firstOffset]) => ({
          producerId: BigInt(producerId),
          firstOffset: BigInt(firstOffset),
        })),
      ),
    );

  it('leaves out markers, and what was aborted up to its marker', () => {
    const log = [
      written(1, 7),
      markerBytes(2, 7, 'commit'),
      written(3, 7),
      written(4, 8),
      markerBytes(5, 7, 'abort'),
      written(6, 7),
      markerBytes(7, 8, 'commit'),
      markerBytes(8, 7, 'commit'),
    ];
    expect(committed([[7, 3]], ...log)).toEqual([1, 4, 6]);
  });

  it('takes them in whichever order the broker names them', () => {
    const log = [
      written(1, 8),
      written(2, 7),
      markerBytes(3, 8, 'abort'),
      markerBytes(4, 7, 'abort'),
      written(5, 7),
      written(6, 8),
    ];
    expect(
      committed(
        [
          [7, 2],
          [8, 1],
        ],
        ...log,
      ),
    ).toEqual([5, 6]);
  });

  it('knows of a transaction that began before what was fetched', () => {
    expect(committed([[7, 1]], written(10, 7), written(11, 8))).toEqual([11]);
  });

  it('keeps what the same producer wrote outside of any transaction', () => {
    const plain = batchBytes({ records: [{ offset: 3 }], producerId: 7 });
    expect(committed([[7, 1]], plain, written(4, 7))).toEqual([3]);
  });

  it('takes a marker that compaction has emptied for none', () => {
    const emptied = batchBytes({
      records: [],
      baseOffset: 3,
      lastOffset: 3,
      producerId: 7,
      attributes: TRANSACTIONAL | 32,
    });
    expect(committed([], written(1, 7), emptied, written(4, 7))).toEqual([1, 4]);
  });
});
