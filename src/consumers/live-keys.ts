// The live keys of a topic, as hashes, with the sequence of each: what certificates are checked by.

import type { Op } from '../schemas/events/envelope.ts';
import { envelopeCodec } from '../schemas/events/envelope.ts';
import { hash64, KeyTally } from '../schemas/events/key-tally.ts';
import type { ValueReader } from './topic.ts';
import type { Hash64 } from '../schemas/events/key-tally.ts';

/** What of an event says whether its record is alive, and by which event. */
export interface EventBrief {
  readonly op: Op;
  readonly source: { readonly sequence: number };
}

/** Reads that of an event alone: its images are passed over. */
export const briefEvents: ValueReader<EventBrief> = (writer) => {
  const codec = envelopeCodec(writer);
  return (avro) => {
    const { op, sequence } = codec.images(avro);
    return { op, source: { sequence } };
  };
};

/**
 * The live keys of a topic as far as its events were taken: of each the `sequence` of its newest one, and count and digest
 * of each partition. Keys are held as hashes.
 */
export class LiveKeys {
  readonly #sequences = new KeyTable();
  readonly #tallies = new Map<number, KeyTally>();

  /**
   * @param event Null is a tombstone. One that is not newer than what is known of its key changes nothing: it is there
   * twice, or by the hand of a writer that was replaced.
   */
  take(partition: number, key: string, event: EventBrief | null): void {
    const hash = hash64(key);
    const known = this.#sequences.get(hash);
    const sequence = event?.source.sequence ?? Infinity;
    if (known !== undefined && sequence <= known) return;
    const tally = this.tally(partition);
    if (known !== undefined) tally.remove(key, known);
    if (event && event.op !== 'd') {
      tally.add(key, sequence);
      this.#sequences.set(hash, sequence);
    } else if (known !== undefined) this.#sequences.delete(hash);
  }

  /** Of a partition; it goes on with it. */
  tally(partition: number): KeyTally {
    let tally = this.#tallies.get(partition);
    if (!tally) this.#tallies.set(partition, (tally = new KeyTally()));
    return tally;
  }

  /** By the hash of its key, the sequence of each. */
  get sequences(): Pick<KeyTable, 'get' | 'forEach'> {
    return this.#sequences;
  }
}

/** A power of two. */
const FIRST_SLOTS = 1_024;
/** Of slots; more of them taken would make long walks. */
const FULLEST = 0.6;

/**
 * A number to each hash of 64 bits. Open addressing in typed arrays: 16 bytes a slot, a tenth of what a Map of texts
 * takes. Of a million keys any two have one hash once in thirty million times.
 */
export class KeyTable {
  #high = new Uint32Array(FIRST_SLOTS);
  #low = new Uint32Array(FIRST_SLOTS);
  /** NaN in a slot that is free. */
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
    // Who stands behind it moves up, unless its walk begins behind the hole.
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

  /** In no order to rely on. */
  forEach(visit: (hash: Hash64, value: number) => void): void {
    this.#values.forEach((value, at) => {
      if (!Number.isNaN(value)) visit({ high: this.#high[at]!, low: this.#low[at]! }, value);
    });
  }

  /** Where a hash is, or would be. */
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
    values.forEach((value, at) => {
      if (Number.isNaN(value)) return;
      const slot = this.#slotOf({ high: high[at]!, low: low[at]! });
      this.#high[slot] = high[at]!;
      this.#low[slot] = low[at]!;
      this.#values[slot] = value;
    });
  }
}
