// Compares a consumer's own copy of a list with a certificate and the events after it.

import { eventHash, hash64 } from '../schemas/events/key-tally.ts';
import { KeyTable, LiveKeyTracker } from './live-key-tracker.ts';
import type { EventSummary } from './live-key-tracker.ts';

/**
 * Verdict on a row (key and sequence) of a copy of a list:
 *
 * - `right`: the row's sequence is that of the record at the certificate's offset, or that of a later event of the record.
 * - `stale`: the row has another sequence, although the record existed at that offset or was written later.
 * - `too many`: the record did not exist at that offset and was not written later. Also: an earlier row has the same key.
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

/** Flag of a key in `#laterKeys`: an event at or after the certificate's offset created or changed the record. */
const WRITTEN = 1;
/** Flag of a key in `#laterKeys`: an event at or after the certificate's offset deleted the record. */
const DELETED = 2;

/**
 * Compares a copy of a list (key and sequence of each record) with a certificate. All events of the topic must be passed in first, then the
 * rows of the copy. The copy may be newer than the certificate.
 */
export class CopyCheck {
  readonly #positions: ReadonlyMap<number, number>;
  readonly #certified = new LiveKeyTracker();
  /** Hashes of the events at or after the certificate's offsets, except deletions. An event's hash is that of its key and sequence. */
  readonly #laterEvents = new KeyTable();
  /** Flags (`WRITTEN`, `DELETED`) of the keys that have events at or after the certificate's offsets. */
  readonly #laterKeys = new KeyTable();
  readonly #rows = new KeyTable();

  /** @param positions Offset up to which the certificate describes the topic, for each partition. */
  constructor(positions: ReadonlyMap<number, number>) {
    this.#positions = positions;
  }

  /** Count and digest of each partition's live keys at the certificate's offset. Valid once all events have been passed to `event`. */
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
    // A record that was deleted after the certificate is known, too: the copy may not have read the deletion yet.
    const isKnown = certified !== undefined || (this.#laterKeys.get(hash) ?? 0) & WRITTEN;
    return isKnown ? 'stale' : 'too many';
  }

  /**
   * Returns the number of records that the copy lacks, although they existed at the certificate's offset and were not deleted later. Must
   * be called after all rows have been passed to `row`.
   */
  missing(): number {
    let missing = 0;
    this.#certified.sequences.forEach((hash) => {
      if (this.#isMissing(hash)) missing += 1;
    });
    return missing;
  }

  /**
   * Whether the copy lacks the record with this key, although it existed at the certificate's offset and was not deleted later. Must be
   * called after all rows have been passed to `row`.
   */
  isMissing(key: string): boolean {
    const hash = hash64(key);
    return this.#certified.sequences.get(hash) !== undefined && this.#isMissing(hash);
  }

  /**
   * Whether no row of the copy has this key, and no later event deleted its record.
   *
   * @param hash Hash of a key that is live at the certificate's offset.
   */
  #isMissing(hash: ReturnType<typeof hash64>): boolean {
    const isDeleted = ((this.#laterKeys.get(hash) ?? 0) & DELETED) !== 0;
    return !isDeleted && this.#rows.get(hash) === undefined;
  }
}
