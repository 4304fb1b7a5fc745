import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import {
  batchesOf,
  MAX_BATCH_BYTES,
  maxEventBytes,
  recordBatch,
} from '../../../src/sinks/producer/record-batch.ts';
import type { PlacedRecord, PackedRecords } from '../../../src/sinks/producer/record-batch.ts';
import { messagesOf, recordBatches } from '../../../src/sinks/fetch/record-batches.ts';

const STAMP = { producerId: 1n, epoch: 0, sequence: 0, isTransactional: true, timestamp: 0 };
const record = (topic: string, partition: number, key: string, bytes = 1): PlacedRecord => ({
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
