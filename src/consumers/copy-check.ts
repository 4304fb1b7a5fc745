// Compares a consumer's own copy of a list with a certificate and the events after it.

import { eventHash, hash64 } from '../schemas/events/key-tally.ts';
import { KeyTable, LiveKeyTracker } from './live-key-tracker.ts';
import type { EventSummary } from './live-key-tracker.ts';

/**
 * Verdict on a row (key and sequence) of a consumer's copy of a list:
 *
 * - `right`: the certificate counts the record with the row's sequence, or a later event with this sequence created or changed the record.
 * - `stale`: the row has another sequence, but the certificate counts the record, or a later event created or changed it.
 * - `too many`: the certificate does not count the record, and no later event created or changed it. Also: an earlier row has the same key.
 *
 * A row whose record was deleted after the certificate is not `too many`: the copy may not have read the deletion yet.
 */
type RowFinding = 'right' | 'stale' | 'too many';

/** An event of the list's topic, reduced to what {@link CopyCheck} needs. */
export interface CheckedEvent {
  readonly partition: number;
  readonly offset: number;
  readonly key: string;
  /** Summary of the event; null for a tombstone. */
  readonly event: EventSummary | null;
}

/**
 * Flags of a key in `#laterKeys`, for the events at or after the certificate's offset. `WRITTEN`: one of them created or changed the key's
 * record. `DELETED`: one of them deleted it.
 */
const WRITTEN = 1;
const DELETED = 2;

/**
 * Compares a copy of a list (key and sequence of each record) with a certificate and the events published after it. The topic's events must
 * be passed in first, then the rows of the copy. A copy may be ahead of the certificate: a row may have the sequence of a later event, and
 * a record that a later event deleted may be missing.
 */
export class CopyCheck {
  readonly #positions: ReadonlyMap<number, number>;
  readonly #certified = new LiveKeyTracker();
  /** Hashes of the events at or after the certificate's offsets that are not deletions. Each is the hash of an event's key and sequence. */
  readonly #laterEvents = new KeyTable();
  /** Flags (`WRITTEN`, `DELETED`) of the keys that have events at or after the certificate's offsets. */
  readonly #laterKeys = new KeyTable();
  readonly #rows = new KeyTable();

  /** @param positions Offset up to which the certificate describes the topic, for each partition. */
  constructor(positions: ReadonlyMap<number, number>) {
    this.#positions = positions;
  }

  /**
   * Count and digest of each partition's keys that are live (not deleted) at the certificate's offset. Valid after all of the topic's
   * events have been passed to `event`.
   */
  get certified(): Pick<LiveKeyTracker, 'tally'> {
    return this.#certified;
  }

  event({ partition, offset, key, event }: CheckedEvent): void {
    if (offset < (this.#positions.get(partition) ?? 0)) {
      return this.#certified.apply(partition, key, event);
    }
    const hash = hash64(key);
    const sequence = event?.source.sequence ?? Infinity;
    if (sequence <= (this.#certified.sequences.get(hash) ?? -1)) return; // a repeated event, or one from a fenced writer
    const isDeletion = event === null || event.op === 'd';
    const before = this.#laterKeys.get(hash) ?? 0;
    this.#laterKeys.set(hash, before | (isDeletion ? DELETED : WRITTEN));
    if (!isDeletion) this.#laterEvents.set(eventHash(key, sequence), 1);
  }

  /** Compares the next row of the copy with the certificate and the later events. Returns `too many` for a second row with the same key. */
  row(key: string, sequence: number): RowFinding {
    const hash = hash64(key);
    if (this.#rows.get(hash) !== undefined) return 'too many';
    this.#rows.set(hash, 1);
    const certified = this.#certified.sequences.get(hash);
    if (sequence === certified) return 'right';
    if (this.#laterEvents.get(eventHash(key, sequence)) !== undefined) return 'right';
    const isKnown = certified !== undefined || (this.#laterKeys.get(hash) ?? 0) & WRITTEN;
    return isKnown ? 'stale' : 'too many';
  }

  /**
   * Returns the number of records that the copy lacks: the certificate counts them, no later event deleted them, and no row has their key.
   * Must be called after all rows have been passed to `row`.
   */
  missing(): number {
    let missing = 0;
    this.#certified.sequences.forEach((hash) => {
      if (this.#isMissing(hash)) missing += 1;
    });
    return missing;
  }

  /**
   * Whether the copy lacks the record with this key: the certificate counts the record, no later event deleted it, and no row has its key.
   * Must be called after all rows have been passed to `row`.
   */
  isMissing(key: string): boolean {
    const hash = hash64(key);
    return this.#certified.sequences.get(hash) !== undefined && this.#isMissing(hash);
  }

  /**
   * Whether the copy lacks a record that is live at the certificate's offsets: no row has its key, and no later event deleted it.
   *
   * @param hash Hash of a key that is live at the certificate's offsets.
   */
  #isMissing(hash: ReturnType<typeof hash64>): boolean {
    const isDeleted = ((this.#laterKeys.get(hash) ?? 0) & DELETED) !== 0;
    return !isDeleted && this.#rows.get(hash) === undefined;
  }
}
