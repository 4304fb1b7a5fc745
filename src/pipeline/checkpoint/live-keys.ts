import { firstValueFrom, timer } from 'rxjs';
import type { SchedulerLike } from 'rxjs';
import type { KeyGap } from '../../observe/lost-events.ts';
import { KeyTally } from '../../schemas/events/key-tally.ts';
import { partitionOf } from '../../sinks/producer/record-batch.ts';
import type { ImageUpdate, TaskStore } from '../../state/store.ts';
import type { Cursor, LiveKeysText } from './cursor.ts';

/** Of each partition of a task's topic: how many keys are alive, and the digest of them. Never changed in place. */
export type LiveKeys = readonly KeyTally[];

/** As a cursor has them; undefined where that is void, or of another number of partitions. */
export function liveKeysIn(cursor: Cursor, partitions: number): LiveKeys | undefined {
  const { live, sequence, losses = 0 } = cursor;
  if (live?.sequence !== sequence || live.losses !== losses) return undefined;
  if (live.partitions.length !== partitions) return undefined;
  return live.partitions.map((text) => KeyTally.of(text));
}

export function liveKeysText(
  live: LiveKeys,
  { sequence, losses = 0 }: Pick<Cursor, 'sequence' | 'losses'>,
): LiveKeysText {
  return { sequence, losses, partitions: live.map((tally) => tally.toJSON()) };
}

/** Of a store that says all that the topic does. Others get their turn while it is read. */
export async function liveKeysOf(
  store: Pick<TaskStore, 'kept'>,
  partitions: number,
  scheduler: SchedulerLike,
): Promise<LiveKeys> {
  const live = Array.from({ length: partitions }, () => new KeyTally());
  for (let after: string | undefined; ;) {
    const { keys, next } = store.kept(after);
    for (const [key, sequence] of keys) live[partitionOf(key, partitions)]!.add(key, sequence);
    if (next === undefined) return live;
    after = next;
    await firstValueFrom(timer(0, scheduler));
  }
}

/** After more events; `sequenceOf` says which was the newest of a key before them. */
export function liveKeysAfter(
  live: LiveKeys,
  updates: readonly ImageUpdate[],
  sequenceOf: (key: string) => number | undefined,
): LiveKeys {
  if (updates.length === 0) return live;
  const next = live.map((tally) => tally.copy());
  /** Of keys that come more than once. */
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

/** Where a topic that was read back differs from what was published to it. */
export function keyGaps(before: LiveKeys, now: LiveKeys): KeyGap[] {
  return before.flatMap((tally, partition) => {
    const found = now[partition]!;
    return found.records === tally.records && found.digest === tally.digest
      ? []
      : [{ partition, before: tally.records, now: found.records }];
  });
}
