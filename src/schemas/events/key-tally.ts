import { hash } from 'node:crypto';

/** Count and digest of a set of live keys (keys whose newest event is not a deletion), in JSON form. */
export interface TallyText {
  readonly records: number;
  /** Digest of the live keys and the sequence numbers of their newest events, 16 hex digits (see `KeyTally`). */
  readonly digest: string;
}

const TWO_TO_32 = 2 ** 32;

/**
 * Count and digest of a set of live keys (keys whose newest event is not a deletion).
 *
 * The digest is a sum, modulo 2^64, with one summand for each key: the first 8 bytes (big-endian) of a SHA-256 hash. The input of the hash
 * is the key's UTF-8 text, 0x0A, and the decimal `sequence` of the key's newest event. An event updates the digest without the other keys.
 */
export class KeyTally {
  #records = 0;
  // The digest as two 32-bit halves, which are much faster than BigInt.
  #high = 0;
  #low = 0;

  /** Restores a tally from its JSON form, as {@link toJSON} returns it. */
  static of({ records, digest }: TallyText): KeyTally {
    const tally = new KeyTally();
    tally.#records = records;
    tally.#high = parseInt(digest.slice(0, 8), 16);
    tally.#low = parseInt(digest.slice(8), 16);
    return tally;
  }

  get records(): number {
    return this.#records;
  }

  get digest(): string {
    return hex(this.#high) + hex(this.#low);
  }

  /** Adds a live key whose newest event has this sequence number. */
  add(key: string, sequence: number): void {
    const { high, low } = eventHash(key, sequence);
    this.#change(1, high, low);
  }

  /** Removes a live key from the tally. `sequence` must be the sequence number with which the key was added. */
  remove(key: string, sequence: number): void {
    const { high, low } = eventHash(key, sequence);
    this.#records -= 1;
    const rest = this.#low - low;
    this.#low = rest >>> 0;
    this.#high = (this.#high - high - (rest < 0 ? 1 : 0)) >>> 0;
  }

  /** Adds the keys of another tally, which must have no key in common with this one. */
  merge(other: KeyTally): void {
    this.#change(other.#records, other.#high, other.#low);
  }

  copy(): KeyTally {
    const copy = new KeyTally();
    copy.merge(this);
    return copy;
  }

  toJSON(): TallyText {
    return { records: this.#records, digest: this.digest };
  }

  #change(records: number, high: number, low: number): void {
    this.#records += records;
    const sum = this.#low + low;
    this.#low = sum >>> 0;
    this.#high = (this.#high + high + (sum >= TWO_TO_32 ? 1 : 0)) >>> 0;
  }
}

function hex(half: number): string {
  return half.toString(16).padStart(8, '0');
}

/** A 64-bit hash as two halves, each from 0 to 2^32 - 1. */
export interface Hash64 {
  readonly high: number;
  readonly low: number;
}

/** Returns the first 8 bytes (big-endian) of SHA-256 over a text in UTF-8. */
export function hash64(text: string): Hash64 {
  const bytes = hash('sha256', text, 'binary'); // one character per byte: three times as fast as a Buffer
  return { high: halfAt(bytes, 0), low: halfAt(bytes, 4) };
}

function halfAt(bytes: string, at: number): number {
  const byte = (n: number) => bytes.charCodeAt(at + n);
  return ((byte(0) << 24) | (byte(1) << 16) | (byte(2) << 8) | byte(3)) >>> 0;
}

/** Returns the hash that a live key contributes to the digest of a `KeyTally`. */
export function eventHash(key: string, sequence: number): Hash64 {
  return hash64(`${key}\n${sequence}`);
}
