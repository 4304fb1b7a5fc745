// Compares a consumer's own copy of a list with a certificate and the events that came after it.

import { eventHash, hash64 } from '../schemas/events/key-tally.ts';
import { KeyTable, LiveKeys } from './live-keys.ts';
import type { EventBrief } from './live-keys.ts';

/** What a row of a copy is: `stale` has another event than it may have, `too many` no record. */
type RowFinding = 'right' | 'stale' | 'too many';

/** An event of the list's topic; null is a tombstone. */
export interface CheckedEvent {
  readonly partition: number;
  readonly offset: number;
  readonly key: string;
  readonly event: EventBrief | null;
}

/** What happened to a key behind the positions. */
const WRITTEN = 1;
const DELETED = 2;

/**
 * Holds somebody's copy of a list, key and sequence of each record, against a certificate and what came after it: first the
 * events of the topic, then the rows of the copy. A copy as of the certificate's positions is right, and so is one that is
 * ahead: a key may have the sequence of a later event, and may be missing when a later one deleted it.
 */
export class CopyCheck {
  readonly #positions: ReadonlyMap<number, number>;
  readonly #certified = new LiveKeys();
  /** Hashes of events behind the positions that left a record. */
  readonly #laterEvents = new KeyTable();
  readonly #laterKeys = new KeyTable();
  readonly #rows = new KeyTable();

  /** @param positions Of the certificate, by partition. */
  constructor(positions: ReadonlyMap<number, number>) {
    this.#positions = positions;
  }

  /** The keys at the certificate's positions, when all events have been taken. */
  get certified(): Pick<LiveKeys, 'tally'> {
    return this.#certified;
  }

  event({ partition, offset, key, event }: CheckedEvent): void {
    if (offset < (this.#positions.get(partition) ?? 0)) {
      return this.#certified.take(partition, key, event);
    }
    const hash = hash64(key);
    const sequence = event?.source.sequence ?? Infinity;
    if (sequence <= (this.#certified.sequences.get(hash) ?? -1)) return; // late: it was there before
    const isDeletion = event === null || event.op === 'd';
    const before = this.#laterKeys.get(hash) ?? 0;
    this.#laterKeys.set(hash, before | (isDeletion ? DELETED : WRITTEN));
    if (!isDeletion) this.#laterEvents.set(eventHash(key, sequence), 1);
  }

  /** A second row of a key is one too many. */
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

  /** Records that the copy should have and has not, when all rows have been taken. */
  missing(): number {
    let missing = 0;
    this.#certified.sequences.forEach((hash) => {
      if (this.#isMissing(hash)) missing += 1;
    });
    return missing;
  }

  isMissing(key: string): boolean {
    const hash = hash64(key);
    return this.#certified.sequences.get(hash) !== undefined && this.#isMissing(hash);
  }

  /** @param hash Of a key that is certified. */
  #isMissing(hash: ReturnType<typeof hash64>): boolean {
    const isGone = ((this.#laterKeys.get(hash) ?? 0) & DELETED) !== 0;
    return !isGone && this.#rows.get(hash) === undefined;
  }
}
