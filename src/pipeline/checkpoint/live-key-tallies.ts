import { firstValueFrom, timer } from 'rxjs';
import type { SchedulerLike } from 'rxjs';
import type { KeyGap } from '../../observe/lost-events.ts';
import { KeyTally } from '../../schemas/events/key-tally.ts';
import { partitionOf } from '../../sinks/producer/record-batch.ts';
import type { ImageUpdate, TaskStore } from '../../state/store.ts';
import type { Cursor, LiveKeysText } from './cursor.ts';

/** Count and digest of the live keys (newest event not a deletion) in each partition of a topic. Immutable. */
export type LiveKeyTallies = readonly KeyTally[];

/**
 * Returns count and digest of the live keys in each partition, as stored in the cursor. Undefined if the cursor has no valid ones for this
 * number of partitions.
 */
export function liveKeysIn(cursor: Cursor, partitions: number): LiveKeyTallies | undefined {
  const { live, sequence, losses = 0 } = cursor;
  const isValid = live?.sequence === sequence && live.losses === losses;
  if (!isValid || live.partitions.length !== partitions) return undefined;
  return live.partitions.map((text) => KeyTally.of(text));
}

export function liveKeysText(
  live: LiveKeyTallies,
  { sequence, losses = 0 }: Pick<Cursor, 'sequence' | 'losses'>,
): LiveKeysText {
  return { sequence, losses, partitions: live.map((tally) => tally.toJSON()) };
}

/**
 * Returns count and digest of each partition's live keys, computed from the keys in `store`, which must have an image of each live record.
 */
export async function liveKeysOf(
  store: Pick<TaskStore, 'storedKeys'>,
  partitions: number,
  scheduler: SchedulerLike,
): Promise<LiveKeyTallies> {
  const live = Array.from({ length: partitions }, () => new KeyTally());
  for (let after: string | undefined; ;) {
    const { keys, next } = store.storedKeys(after);
    for (const [key, sequence] of keys) live[partitionOf(key, partitions)]!.add(key, sequence);
    if (next === undefined) return live;
    after = next;
    await firstValueFrom(timer(0, scheduler));
  }
}

/**
 * Returns count and digest of the live keys in each partition, after the events of `updates`. `sequenceOf` returns the sequence of a key's
 * newest event before `updates`, or undefined if the key was not live.
 */
export function liveKeysAfter(
  live: LiveKeyTallies,
  updates: readonly ImageUpdate[],
  sequenceOf: (key: string) => number | undefined,
): LiveKeyTallies {
  if (updates.length === 0) return live;
  const next = live.map((tally) => tally.copy());
  /** For each key that has occurred in `updates` so far, the sequence of its newest event; undefined after a deletion. */
  const newest = new Map<string, number | undefined>();
  for (const { key, sequence, image } of updates) {
    const tally = next[partitionOf(key, next.length)]!;
    const before = newest.has(key) ? newest.get(key) : sequenceOf(key);
    if (before !== undefined) tally.remove(key, before);
    if (image) tally.add(key, sequence);
    newest.set(key, image ? sequence : undefined);
  }
  return next;
}

/** Returns the partitions in which the cursor's live keys (`before`) differ from those of the restored topic (`now`). */
export function keyGaps(before: LiveKeyTallies, now: LiveKeyTallies): KeyGap[] {
  return before.flatMap((tally, partition) => {
    const restored = now[partition]!;
    return restored.records === tally.records && restored.digest === tally.digest
      ? []
      : [{ partition, before: tally.records, now: restored.records }];
  });
}
