import type { TaskMemory } from '../../state/store.ts';
import type { Cursor } from './cursor.ts';
import type { Bounds } from '../../sinks/sink.ts';
import type { Gap, LostEvents } from '../../observe/lost-events.ts';

/**
 * Compares a topic with what the cursor and the store say was written to it. Of its own commit a cursor tells only whether there was
 * anything: `ends` are those before it.
 */
export function lostEvents(
  topic: string,
  bounds: ReadonlyMap<number, Bounds>,
  known: { readonly cursor: Cursor; readonly memory: TaskMemory | undefined },
): LostEvents | undefined {
  const { cursor, memory } = known;
  const gaps: Gap[] = [];
  const partitions = [
    ...new Set([cursor.ends ?? {}, memory?.ends ?? {}].flatMap(Object.keys).map(Number)),
  ];
  for (const partition of partitions) {
    const [one, other] = [cursor.ends, memory?.ends].map((ends) => BigInt(ends?.[partition] ?? 0));
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
 * Whether messages of a commit were given offsets that the topic had given before: then it was made anew
 * since. They follow each other in each partition, and a marker follows them.
 *
 * @param written the ends of a commit, behind its marker, by partition.
 * @param before the ends before it.
 * @param count how many messages there were.
 */
export function isMadeAnew(
  written: ReadonlyMap<number, bigint>,
  before: TaskMemory['ends'],
  count: number,
): boolean {
  for (const [partition, end] of written) {
    if (end < BigInt(before[partition] ?? 0) + 2n) return true; // no room for a message and its marker
  }
  let passed = 0n;
  for (const [partition, end] of written) passed += end - BigInt(before[partition] ?? 0) - 1n;
  return passed < BigInt(count);
}
