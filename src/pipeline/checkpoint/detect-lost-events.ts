import type { TaskMemory } from '../../state/store.ts';
import type { Cursor } from './cursor.ts';
import type { Bounds } from '../../kafka/log.ts';
import type { Gap, LostEvents } from '../../observe/lost-events.ts';

/**
 * Compares a topic's offsets with those in the cursor and in the image store. Returns the events that the topic has lost; undefined if it
 * has lost none. Without an image store, a loss of only the newest commit's events may remain undetected.
 */
export function detectLostEvents(
  topic: string,
  bounds: ReadonlyMap<number, Bounds>,
  known: { readonly cursor: Cursor; readonly memory: TaskMemory | undefined },
): LostEvents | undefined {
  const { cursor, memory } = known;
  const gaps: Gap[] = [];
  // The cursor's end offsets are from before its own commit, those of the image store from after it.
  const ends = [cursor.ends ?? {}, memory?.ends ?? {}];
  for (const partition of new Set(ends.flatMap(Object.keys).map(Number))) {
    const [one, other] = ends.map((each) => BigInt(each[partition] ?? 0));
    const before = one! > other! ? one! : other!;
    const now = bounds.get(partition)?.high ?? 0n;
    if (now < before) gaps.push({ partition, kind: 'ends', before, now });
  }
  for (const [partition, { low: now }] of bounds) {
    const before = BigInt(cursor.starts?.[partition] ?? 0);
    if (now > before) gaps.push({ partition, kind: 'begins', before, now });
  }
  const isEmpty = [...bounds.values()].every(({ high }) => high === 0n);
  const isAnew = memory?.lost === true || (isEmpty && cursor.sequence > (cursor.lostSequence ?? 0));
  if (gaps.length === 0 && !isAnew) return undefined;
  const offsets = gaps.reduce((sum, { before, now }) => sum + Math.abs(Number(before - now)), 0);
  return { topic, gaps, offsets };
}

/**
 * Whether the topic was deleted and recreated before or during a commit. Offsets in a recreated topic begin at 0 again, so the end offsets
 * have advanced too little.
 *
 * @param written End offset of each partition that the commit wrote to, after the commit and including the transaction marker.
 * @param before End offset of each partition before the commit.
 * @param count Number of messages of the commit in this topic.
 */
export function isTopicRecreated(
  written: ReadonlyMap<number, bigint>,
  before: TaskMemory['ends'],
  count: number,
): boolean {
  const passed = [...written].map(([at, end]) => end - BigInt(before[at] ?? 0) - 1n); // without the marker
  return (
    passed.some((messages) => messages < 1n) || passed.reduce((a, b) => a + b, 0n) < BigInt(count)
  );
}
