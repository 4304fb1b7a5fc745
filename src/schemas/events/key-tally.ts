// Count and digest of live keys: what certificates certify.

import { hash } from 'node:crypto';

/** How many live keys there are, and their digest, as JSON has them. */
export interface TallyText {
  readonly records: number;
  /** 16 hex digits. */
  readonly digest: string;
}

const TWO_TO_32 = 2 ** 32;

/**
 * Count and digest of live keys. The digest is a sum modulo 2^64: of each key the first 8 bytes (big-endian) of
 * SHA-256 over its UTF-8 text, 0x0A, and the decimal `sequence` of its newest event. It does not depend on the order in which
 * keys come and go, so that it is kept up to date event by event. In two halves of 32 bits: much quicker than BigInt.
 */
export class KeyTally {
  #records = 0;
  #high = 0;
  #low = 0;

  /** @param text 16 hex digits in `digest`, as {@link toJSON} gives them. */
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

  /** 16 hex digits. */
  get digest(): string {
    return hex(this.#high) + hex(this.#low);
  }

  /** A key is alive, and its newest event has this sequence. */
  add(key: string, sequence: number): void {
    const { high, low } = eventHash(key, sequence);
    this.#change(1, high, low);
  }

  /** That event is not its newest any more. */
  remove(key: string, sequence: number): void {
    const { high, low } = eventHash(key, sequence);
    this.#less(1, high, low);
  }

  /** Adds the keys of another one: none of them may be in both. */
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

  #less(records: number, high: number, low: number): void {
    this.#records -= records;
    const rest = this.#low - low;
    this.#low = rest >>> 0;
    this.#high = (this.#high - high - (rest < 0 ? 1 : 0)) >>> 0;
  }
}

function hex(half: number): string {
  return half.toString(16).padStart(8, '0');
}

/** 64 bits in two halves, each from 0 to 2^32 - 1: much quicker than BigInt. */
export interface Hash64 {
  readonly high: number;
  readonly low: number;
}

/** The first 8 bytes of SHA-256 over a text in UTF-8, big-endian. */
export function hash64(text: string): Hash64 {
  const bytes = hash('sha256', text, 'binary'); // a character a byte: three times as quick as a Buffer of them
  return { high: halfAt(bytes, 0), low: halfAt(bytes, 4) };
}

function halfAt(bytes: string, at: number): number {
  const byte = (n: number) => bytes.charCodeAt(at + n);
  return ((byte(0) << 24) | (byte(1) << 16) | (byte(2) << 8) | byte(3)) >>> 0;
}

/** What a live key adds to the digest of a list. */
export function eventHash(key: string, sequence: number): Hash64 {
  return hash64(`${key}\n${sequence}`);
}
