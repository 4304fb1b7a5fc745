import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { newCursor } from '../../../src/pipeline/checkpoint/cursor.ts';
import {
  keyGaps,
  liveKeysAfter,
  liveKeysIn,
  liveKeysText,
} from '../../../src/pipeline/checkpoint/live-key-tallies.ts';
import { KeyTally } from '../../../src/schemas/events/key-tally.ts';
import type { ImageUpdate } from '../../../src/state/store.ts';
import { partitionOf } from '../../../src/sinks/producer/record-batch.ts';
import { mulberry32 } from '../../support/chance.ts';

const image = { schemaId: 1, bytes: Buffer.of() };
const none = (partitions: number) => Array.from({ length: partitions }, () => new KeyTally());

/** As the contract has it. */
function digestOf(keys: Iterable<readonly [string, number]>): string {
  let sum = 0n;
  for (const [key, sequence] of keys) {
    sum += createHash('sha256').update(`${key}\n${sequence}`).digest().readBigUInt64BE();
  }
  return BigInt.asUintN(64, sum).toString(16).padStart(16, '0');
}

describe('the live keys', () => {
  it('are those of the newest events, in their partitions, whatever a commit brings', () => {
    const random = mulberry32(7);
    const sequences = new Map<string, number>();
    let live: ReturnType<typeof none> | ReturnType<typeof liveKeysAfter> = none(3);
    let sequence = 0;
    for (let commit = 0; commit < 300; commit++) {
      const updates = Array.from({ length: 1 + Math.floor(random() * 6) }, (): ImageUpdate => {
        const key = `k${Math.floor(random() * 40)}`;
        return { key, sequence: ++sequence, image: random() < 0.7 ? image : null };
      });
      live = liveKeysAfter(live, updates, (key) => sequences.get(key));
      for (const each of updates) {
        if (each.image) sequences.set(each.key, each.sequence);
        else sequences.delete(each.key);
      }
      for (const [partition, tally] of live.entries()) {
        const keys = [...sequences].filter(([key]) => partitionOf(key, 3) === partition);
        expect(tally.toJSON()).toEqual({ records: keys.length, digest: digestOf(keys) });
      }
    }
  });

  it('leave those before a commit as they were: it may fail', () => {
    const before = none(1);
    liveKeysAfter(before, [{ key: 'a', sequence: 1, image }], () => undefined);
    expect(before[0]!.records).toBe(0);
  });

  it('differ by partition', () => {
    const updates = ['a', 'b', 'c', 'd'].map((key, nth) => ({ key, sequence: nth + 1, image }));
    const one = liveKeysAfter(none(2), updates, () => undefined);
    const stale = liveKeysAfter(
      none(2),
      [...updates.slice(0, 3), { ...updates[3]!, sequence: 9 }],
      () => undefined,
    );
    const partition = partitionOf('d', 2);
    const { records } = one[partition]!;
    expect(keyGaps(one, one)).toEqual([]);
    expect(keyGaps(one, stale)).toEqual([{ partition, before: records, now: records }]);
  });
});

describe('a block in a cursor', () => {
  const live = liveKeysAfter(none(2), [{ key: 'a', sequence: 4, image }], () => undefined);
  const cursor = { ...newCursor('one'), sequence: 4, losses: 1 };
  const counted = { ...cursor, live: liveKeysText(live, cursor) };

  it('is read as it was written', () => {
    const read = liveKeysIn(counted, 2)!;
    expect(read.map((each) => each.toJSON())).toEqual(live.map((each) => each.toJSON()));
  });

  it.each([
    ['has none', cursor, 2],
    ['is behind the newest event of the topic', { ...counted, sequence: 5 }, 2],
    ['is of a topic that has lost events since', { ...counted, losses: 2 }, 2],
    ['is of a topic with more partitions now', counted, 3],
  ])('is void where it %s', (_, one, partitions) => {
    expect(liveKeysIn(one, partitions)).toBeUndefined();
  });
});
