// Avro's binary encoding, written into a buffer that is used again.

/** Bytes that a first value may take before the buffer grows: a fleet has thousands of them, most for small records. */
const FIRST_BYTES = 512;
/** Up to so many characters a loop is quicker than a call out of JavaScript. */
const SHORT_TEXT = 48;
/** What a number, a branch or the length of something takes at most. */
const MAX_NUMBER_BYTES = 10;

/**
 * Avro's binary encoding, written from front to back into a buffer that is used again for each value.
 * What was written last can be taken back: remember `length`, and set it again.
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

  /** An array or a map: its items in one block, if there are any, and the end. */
  block<T>(items: readonly T[], write: (item: T, index: number) => void): void {
    if (items.length > 0) {
      this.long(items.length);
      items.forEach(write);
    }
    this.long(0);
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

/** The same bytes as a Buffer, which avsc asks for. */
export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes)
    ? bytes
    : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** The largest integer that shifts and masks do for. */
const MAX_SMALL = 2 ** 31 - 1;
/** So many numbers take four bytes of seven bits, or fewer; a long divided by it is small. */
const IN_FOUR_BYTES = 2 ** 28;
