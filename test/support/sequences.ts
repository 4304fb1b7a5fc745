import type { Read } from '../integration/support/topic-reader.ts';

/** A commit's cursor. */
interface Counted {
  readonly value: Readonly<Record<string, unknown>>;
}

export interface SequenceFindings {
  /** What nothing can heal: twice, or out of order. */
  readonly violations: readonly string[];
  /** What is missing. A commit that is under way while the topic is read looks like that, for a moment. */
  readonly missing: readonly string[];
}

/**
 * Holds the numbers of a list's events against each other and against its cursors. A task counts its events
 * and commits the count with them, so of a topic that no compaction has touched:
 *
 * - a number is there once, whatever the key;
 * - in each partition, and so for each key, numbers rise in the order in which they were committed;
 * - the numbers are 1 to the last without a gap. What an aborted transaction had counted is counted again by the
 *   next one, which begins from the committed cursor: so not even an abort leaves a gap;
 * - cursors never fall, and the last one says the last number.
 *
 * @param cursors of this task, in the order of their commits. Default they are not looked at.
 */
export function checkSequences(
  events: readonly Pick<Read, 'key' | 'value' | 'partition' | 'offset'>[],
  cursors?: readonly Counted[],
): SequenceFindings {
  const violations: string[] = [];
  const places = new Map<number, string>();
  const last = new Map<number, number>();
  let most = 0;
  for (const { key, value, partition, offset } of events) {
    if (value === null) continue;
    const { sequence } = value.source as { readonly sequence: number };
    const place = `${key} at ${partition}/${offset}`;
    const first = places.get(sequence);
    const before = last.get(partition) ?? 0;
    if (first !== undefined)
      violations.push(`${place}: sequence ${sequence} is there twice: of ${first} as well`);
    else if (sequence < before)
      violations.push(`${place}: sequence ${sequence} comes after ${before}`);
    places.set(sequence, place);
    last.set(partition, Math.max(before, sequence));
    most = Math.max(most, sequence);
  }

  const missing: string[] = [];
  for (let sequence = 1; sequence <= most; sequence++)
    if (!places.has(sequence)) missing.push(`sequence ${sequence} is not there`);

  let counted = 0;
  for (const { value } of cursors ?? []) {
    const sequence = Number(value.sequence);
    if (sequence < counted)
      violations.push(`a cursor at ${sequence} comes after one at ${counted}`);
    counted = sequence;
  }
  if (cursors && counted !== most)
    missing.push(`the last cursor is at ${counted}, the last event at ${most}`);
  return { violations, missing };
}
