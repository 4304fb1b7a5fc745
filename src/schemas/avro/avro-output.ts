import { BACKSLASH, LAST_ASCII, QUOTE, SPACE } from '../json/json-bytes.ts';

/** Bytes that a first value may take before the buffer grows: a fleet has thousands of them, most for small records. */
const FIRST_BYTES = 512;
/** Up to so many characters a loop is quicker than a call out of JavaScript. */
const SHORT_TEXT = 48;
/** What a number, a branch or the length of something takes at most. */
const MAX_NUMBER_BYTES = 10;
/** The longest text whose length takes one byte. */
const MAX_ONE_BYTE = 63;

/**
 * Avro's binary encoding, written from front to back into a buffer that is used again for each value.
 * What was written last can be taken back: remember `length`, and set it again. `repeat` and `cut` put in another order
 * what was written.
 */
export class AvroOutput {
  /** Bytes written. */
  length = 0;
  #bytes = Buffer.allocUnsafe(FIRST_BYTES);

  /** A copy of all that was written; the next value begins anew. */
  take(): Buffer {
    const value = Buffer.allocUnsafe(this.length);
    this.#bytes.copy(value, 0, 0, this.length);
    this.length = 0;
    return value;
  }

  /** A byte as it is: a boolean, or the branch of a union. */
  byte(value: number): void {
    this.#room(1);
    this.#bytes[this.length++] = value;
  }

  /** An int or a long: an integer from -2^52 to 2^53 - 2. */
  long(value: number): void {
    this.#room(MAX_NUMBER_BYTES);
    const bytes = this.#bytes;
    let at = this.length;
    let rest = value < 0 ? -value * 2 - 1 : value * 2;
    if (rest > MAX_SMALL) {
      const low = rest % IN_FOUR_BYTES;
      for (let shift = 0; shift < 28; shift += 7) bytes[at++] = ((low >>> shift) & 0x7f) | 0x80;
      rest = Math.floor(rest / IN_FOUR_BYTES);
    }
    while (rest > 0x7f) {
      bytes[at++] = (rest & 0x7f) | 0x80;
      rest >>>= 7;
    }
    bytes[at++] = rest;
    this.length = at;
  }

  double(value: number): void {
    this.#room(8);
    this.length = this.#bytes.writeDoubleLE(value, this.length);
  }

  /** Bytes behind their length: Avro's `bytes`. */
  bytes(value: Uint8Array): void {
    this.long(value.length);
    this.raw(value);
  }

  /** What is encoded already. */
  raw(value: Uint8Array): void {
    this.#room(value.length);
    this.#bytes.set(value, this.length);
    this.length += value.length;
  }

  /** @returns whether there is UTF-8 for the text; half a surrogate pair has none, and nothing is written. */
  string(text: string): boolean {
    const { length } = text;
    if (length > SHORT_TEXT) return this.#longString(text);
    this.#room(1 + length);
    const bytes = this.#bytes;
    const start = this.length + 1;
    for (let k = 0; k < length; k++) {
      const code = text.charCodeAt(k);
      if (code > 0x7f) return this.#longString(text);
      bytes[start + k] = code;
    }
    bytes[start - 1] = length * 2;
    this.length = start + length;
    return true;
  }

  /** A string whose UTF-8 stands in other bytes, and is well-formed: nobody looks at it again. */
  utf8(source: Buffer, from: number, to: number): void {
    const size = to - from;
    this.long(size);
    this.#room(size);
    const bytes = this.#bytes;
    const { length } = this;
    if (size > SHORT_TEXT) source.copy(bytes, length, from, to);
    else for (let k = 0; k < size; k++) bytes[length + k] = source[from + k]!;
    this.length += size;
  }

  /**
   * A short text of ASCII from JSON, whose quote is at a place, without an escape: looked at and copied in one go.
   *
   * @returns where it closes; -1 for any other text, and for what is none: then nothing is written.
   */
  shortText(page: Uint8Array, quote: number): number {
    if (page[quote] !== QUOTE) return -1;
    this.#room(1 + MAX_ONE_BYTE);
    const bytes = this.#bytes;
    const start = this.length + 1;
    const last = start + MAX_ONE_BYTE;
    let at = quote + 1;
    let to = start;
    let all = 0;
    for (let byte = page[at]!; byte !== QUOTE; byte = page[++at]!) {
      // A control character is no JSON; and behind the end there is no byte.
      if (!(byte >= SPACE) || byte === BACKSLASH || to === last) return -1;
      bytes[to++] = byte;
      all |= byte;
    }
    if (all > LAST_ASCII) return -1;
    bytes[start - 1] = (to - start) * 2;
    this.length = to;
    return at;
  }

  /** A long in place of a byte that was written for it: what is behind that moves, if it takes more. */
  longAt(at: number, value: number): void {
    const end = this.length;
    this.long(value);
    if (this.length > end + 1) {
      this.repeat(at + 1, end);
      this.cut(at, end);
    } else {
      this.#bytes[at] = this.#bytes[end]!;
      this.length = end;
    }
  }

  /** Once more what was written there. */
  repeat(from: number, to: number): void {
    this.#room(to - from);
    this.#bytes.copyWithin(this.length, from, to);
    this.length += to - from;
  }

  /** Takes back what was written there: what follows it moves up. */
  cut(from: number, to: number): void {
    this.#bytes.copyWithin(from, to, this.length);
    this.length -= to - from;
  }

  #longString(text: string): boolean {
    if (!text.isWellFormed()) return false;
    const size = Buffer.byteLength(text);
    this.long(size);
    this.#room(size);
    this.#bytes.write(text, this.length);
    this.length += size;
    return true;
  }

  #room(bytes: number): void {
    const needed = this.length + bytes;
    if (needed <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafe(needed * 2);
    this.#bytes.copy(larger, 0, 0, this.length);
    this.#bytes = larger;
  }
}

/** The largest integer that shifts and masks do for. */
const MAX_SMALL = 2 ** 31 - 1;
/** So many numbers take four bytes of seven bits, or fewer; a long divided by it is small. */
const IN_FOUR_BYTES = 2 ** 28;
