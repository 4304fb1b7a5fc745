import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { arrivalOrder, timeOrder } from '../../../src/kafka/fetch/batch-queue.ts';
import type { BatchQueue } from '../../../src/kafka/fetch/batch-queue.ts';
import type { PartitionBatch } from '../../../src/kafka/fetch/kafka-reader.ts';

type Message = PartitionBatch['messages'][number];

function batchOf(partition: number, first: number, times: readonly number[]): PartitionBatch {
  const messages = times.map(
    (time, nth) =>
      ({
        offset: String(first + nth),
        timestamp: String(time),
        key: null,
        value: null,
      }) as Message,
  );
  return { partition, messages, next: BigInt(first + times.length) };
}

interface Taken {
  readonly partition: number;
  readonly offset: number;
  readonly time: number;
}

function takeAll(queue: BatchQueue): Taken[] {
  const taken: Taken[] = [];
  for (let batch = queue.take(); batch; batch = queue.take()) {
    const { partition, messages } = batch;
    for (const { offset, timestamp } of messages) {
      taken.push({ partition, offset: Number(offset), time: Number(timestamp) });
    }
  }
  return taken;
}

const NOTHING = new Map([0, 1, 2].map((partition) => [partition, 0n]));

describe('arrivalOrder', () => {
  it('gives batches as they came, and counts those that wait', () => {
    const queue = arrivalOrder();
    const batches = [batchOf(1, 0, [5]), batchOf(0, 0, [3]), batchOf(1, 1, []), batchOf(1, 1, [6])];
    batches.forEach((batch) => queue.put(batch));
    expect([queue.waiting(0), queue.waiting(1), queue.waiting(2)]).toEqual([1, 2, 0]);
    expect(batches.map(() => queue.take())).toEqual(batches);
    expect(queue.take()).toBeUndefined();
    expect(queue.isEmpty).toBe(true);
    expect(queue.waiting(1)).toBe(0);
  });
});

describe('timeOrder', () => {
  const ends = new Map([0, 1, 2].map((partition) => [partition, 4n]));

  it('waits for every partition that has not come to its end', () => {
    const queue = timeOrder(NOTHING, ends);
    queue.put(batchOf(0, 0, [1, 2, 3, 4]));
    queue.put(batchOf(1, 0, [1, 2, 3, 4]));
    expect(queue.take()).toBeUndefined();
    queue.put(batchOf(2, 0, [0]));
    expect(takeAll(queue)).toEqual([{ partition: 2, offset: 0, time: 0 }]);
    expect(queue.isEmpty).toBe(false);
  });

  it('does not wait for a partition with nothing to read, nor behind the ends', () => {
    const queue = timeOrder(new Map([...NOTHING, [2, 4n]]), ends);
    queue.put(batchOf(0, 0, [1, 2, 3, 9]));
    queue.put(batchOf(1, 0, [4, 4, 4, 4]));
    expect(takeAll(queue).map(({ time }) => time)).toEqual([1, 2, 3, 4, 4, 4, 4, 9]);
    queue.put(batchOf(1, 4, [20]));
    expect(takeAll(queue)).toEqual([{ partition: 1, offset: 4, time: 20 }]);
  });

  it('tells of each part where to go on', () => {
    const queue = timeOrder(
      NOTHING,
      new Map([
        [0, 3n],
        [1, 2n],
      ]),
    );
    queue.put(batchOf(0, 0, [1, 2, 9]));
    queue.put(batchOf(1, 0, [5, 6]));
    const nexts = [queue.take(), queue.take(), queue.take()].map((part) => [
      part!.partition,
      part!.next,
    ]);
    expect(nexts).toEqual([
      [0, 2n],
      [1, 2n],
      [0, 3n],
    ]);
  });

  it('merges whatever comes in whatever pieces: each partition in order, all of it, by time', () => {
    const partition = fc
      .array(fc.nat(30), { minLength: 1, maxLength: 20 })
      .map((times) => times.sort((a, b) => a - b));
    const seeds = fc.infiniteStream(fc.nat(2));
    fc.assert(
      fc.property(
        fc.tuple(partition, partition, partition),
        seeds,
        fc.integer({ min: 1, max: 5 }),
        (all, choices, size) => {
          const queue = timeOrder(
            NOTHING,
            new Map(all.map((times, of) => [of, BigInt(times.length)])),
          );
          const at = [0, 0, 0];
          const taken: Taken[] = [];
          while (all.some((times, of) => at[of]! < times.length)) {
            const of = choices.next().value as number;
            if (at[of]! >= all[of]!.length) continue;
            queue.put(batchOf(of, at[of]!, all[of]!.slice(at[of], at[of]! + size)));
            at[of]! += size;
            taken.push(...takeAll(queue));
          }
          const expected = all
            .flatMap((times, of) => times.map((time, offset) => ({ partition: of, offset, time })))
            .sort((a, b) => a.time - b.time || a.partition - b.partition || a.offset - b.offset);
          expect(taken).toEqual(expected);
          expect(queue.isEmpty).toBe(true);
        },
      ),
    );
  });
});
