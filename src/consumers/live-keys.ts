import type { Op } from '../schemas/events/envelope.ts';
import { envelopeCodec } from '../schemas/events/envelope.ts';
import { hash64 } from '../schemas/events/hash64.ts';
import { KeyTally } from '../schemas/events/key-tally.ts';
import { KeyTable } from './key-table.ts';
import type { ValueReader } from './read-as.ts';

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
