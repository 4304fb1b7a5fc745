// Tracks the live keys of a topic, as hashes with their sequences, for comparison with certificates.

import type { Op } from '../schemas/events/envelope.ts';
import { envelopeCodec } from '../schemas/events/envelope.ts';
import { hash64, KeyTally } from '../schemas/events/key-tally.ts';
import type { ValueReader } from './topic.ts';
import type { Hash64 } from '../schemas/events/key-tally.ts';

/** The parts of an event that decide whether its record is live. */
export interface EventSummary {
  readonly op: Op;
  readonly source: { readonly sequence: number };
}

/** Decoder that reads only the summary of an event and skips its images. */
export const eventSummaries: ValueReader<EventSummary> = (writer) => {
  const codec = envelopeCodec(writer);
  return (avro) => {
    const { op, sequence } = codec.images(avro);
    return { op, source: { sequence } };
  };
};

/** The live (not deleted) keys after the events applied so far: `sequence` of each key's newest event, count and digest by partition. */
export class LiveKeyTracker {
  readonly #sequences = new KeyTable();
  readonly #tallies = new Map<number, KeyTally>();

  /**
   * Updates the live keys, count and digest for a partition's next event. Ignores an event of a live key unless its `sequence` is higher
   * than that of the key's newest event.
   *
   * @param event Null for a tombstone.
   */
  apply(partition: number, key: string, event: EventSummary | null): void {
    const hash = hash64(key);
    const known = this.#sequences.get(hash);
    const sequence = event?.source.sequence ?? Infinity;
    // Such an event is a duplicate, or was written by a fenced writer.
    if (known !== undefined && sequence <= known) return;
    const tally = this.tally(partition);
    if (known !== undefined) tally.remove(key, known);
    if (event && event.op !== 'd') {
      tally.add(key, sequence);
      this.#sequences.set(hash, sequence);
    } else if (known !== undefined) this.#sequences.delete(hash);
  }

  /** Returns count and digest of a partition's live keys. The returned object changes when later events are applied. */
  tally(partition: number): KeyTally {
    let tally = this.#tallies.get(partition);
    if (!tally) this.#tallies.set(partition, (tally = new KeyTally()));
    return tally;
  }

  /** Sequence of each live key's newest event, by the key's hash. */
  get sequences(): Pick<KeyTable, 'get' | 'forEach'> {
    return this.#sequences;
  }
}

/** Initial number of slots of a {@link KeyTable}; must be a power of two. */
const FIRST_SLOTS = 1_024;
/** Maximum load factor of a {@link KeyTable}. If it is too large, probe sequences are long. If it is too small, memory is wasted. */
const FULLEST = 0.6;

/**
 * Maps 64-bit hashes to numbers, by open addressing in typed arrays. A million keys take 34 MB; a Map of short strings would take 54 MB.
 */
export class KeyTable {
  #high = new Uint32Array(FIRST_SLOTS);
  #low = new Uint32Array(FIRST_SLOTS);
  /** The numbers to which the hashes in `#high` and `#low` are mapped, at the same indexes. NaN marks a free slot. */
  #values = new Float64Array(FIRST_SLOTS).fill(NaN);
  #taken = 0;

  get(hash: Hash64): number | undefined {
    const value = this.#values[this.#slotOf(hash)]!;
    return Number.isNaN(value) ? undefined : value;
  }

  set(hash: Hash64, value: number): void {
    let slot = this.#slotOf(hash);
    if (Number.isNaN(this.#values[slot])) {
      if (this.#taken >= FULLEST * this.#values.length) {
        this.#grow();
        slot = this.#slotOf(hash);
      }
      this.#taken += 1;
      this.#high[slot] = hash.high;
      this.#low[slot] = hash.low;
    }
    this.#values[slot] = value;
  }

  delete(hash: Hash64): void {
    let hole = this.#slotOf(hash);
    if (Number.isNaN(this.#values[hole])) return;
    this.#taken -= 1;
    // Moves later entries of the probe sequence into the hole, except those whose home slot lies after it.
    const mask = this.#values.length - 1;
    for (let at = (hole + 1) & mask; !Number.isNaN(this.#values[at]); at = (at + 1) & mask) {
      const walked = (at - this.#low[at]!) & mask;
      if (walked < ((at - hole) & mask)) continue;
      this.#high[hole] = this.#high[at]!;
      this.#low[hole] = this.#low[at]!;
      this.#values[hole] = this.#values[at]!;
      hole = at;
    }
    this.#values[hole] = NaN;
  }

  forEach(visit: (hash: Hash64, value: number) => void): void {
    this.#values.forEach((value, at) => {
      if (!Number.isNaN(value)) visit({ high: this.#high[at]!, low: this.#low[at]! }, value);
    });
  }

  /** Returns the index of the slot that holds the hash or, if none does, of the free slot where it would be stored. */
  #slotOf({ high, low }: Hash64): number {
    const mask = this.#values.length - 1;
    let at = low & mask;
    while (!Number.isNaN(this.#values[at]) && (this.#low[at] !== low || this.#high[at] !== high)) {
      at = (at + 1) & mask;
    }
    return at;
  }

  #grow(): void {
    const [high, low, values] = [this.#high, this.#low, this.#values];
    this.#high = new Uint32Array(2 * high.length);
    this.#low = new Uint32Array(2 * low.length);
    this.#values = new Float64Array(2 * values.length).fill(NaN);
    this.#taken = 0;
    values.forEach((value, at) => {
      if (!Number.isNaN(value)) this.set({ high: high[at]!, low: low[at]! }, value);
    });
  }
}
