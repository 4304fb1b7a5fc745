import type { ChangeEvent } from '../schemas/events/envelope.ts';
import type { Consumed } from './consumed.ts';

/** How far the events of a partition have come. */
interface Progress {
  /** The highest so far. */
  readonly sequence: number;
  /** The key of the event before, where that came late. */
  readonly late: string | null;
}

const NOTHING: Progress = { sequence: -Infinity, late: null };

/**
 * Tells of one event after the other whether it is newer than all before it in its partition. The sequence
 * rises with each of them; one that does not is there twice, or by the hand of a writer that was replaced.
 *
 * A tombstone has no sequence: it goes with the deletion right before it; alone, where compaction has taken that
 * away, it is the last word.
 */
export function inSequence<Image>(): (event: Consumed<ChangeEvent<Image>>) => boolean {
  const partitions = new Map<number, Progress>();
  return ({ partition, key, value }) => {
    const { sequence: highest, late } = partitions.get(partition) ?? NOTHING;
    if (value === null) return late === null || late !== key;
    const { sequence } = value.source;
    const isNewer = sequence > highest;
    partitions.set(partition, {
      sequence: Math.max(highest, sequence),
      late: isNewer ? null : key,
    });
    return isNewer;
  };
}
