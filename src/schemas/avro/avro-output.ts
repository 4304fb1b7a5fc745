import type avro from 'avsc';

/** Initial size in bytes of a writer's buffer. Larger wastes memory: a fleet has thousands of buffers, most for small records. */
const FIRST_BYTES = 512;
/** Longest string, in characters, that is copied in a JavaScript loop, which is faster than a native call for short strings. */
const SHORT_TEXT = 48;
/** Maximum size in bytes of a number, a union branch or a length in Avro's encoding. */
const MAX_NUMBER_BYTES = 10;

/** Writes Avro's binary encoding into a buffer that is reused for each value. To undo writes, set `length` back to an earlier value. */
export class AvroOutput {
  length = 0;
  #bytes = Buffer.allocUnsafe(FIRST_BYTES);

  /** Returns a copy of the bytes written, and resets the writer. */
  take(): Buffer {
    const value = Buffer.allocUnsafe(this.length);
    this.#bytes.copy(value, 0, 0, this.length);
    this.length = 0;
    return value;
  }

  /** Writes a single byte: an encoded boolean, the encoded index of a union's branch, or a byte of a decimal. */
  byte(value: number): void {
    this.#room(1);
    this.#bytes[this.length++] = value;
  }

  /** Writes an int or a long: an integer from -2^52 to 2^53 - 2. */
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

  bytes(value: Uint8Array): void {
    this.long(value.length);
    this.raw(value);
  }

  /** Writes bytes that are already encoded. */
  raw(value: Uint8Array): void {
    this.#room(value.length);
    this.#bytes.set(value, this.length);
    this.length += value.length;
  }

  /** Writes a string. Returns false, with nothing written, if the text has a lone surrogate, which UTF-8 can't represent. */
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

  /** Writes a value of a type of the library avsc, in the encoding that avsc produces. @throws Error when the value is not of the type. */
  value(type: avro.Type, value: unknown): void {
    let end = type.encode(value, this.#bytes, this.length);
    if (end < 0) {
      this.#room(this.#bytes.length - this.length - end); // -end: number of bytes that were missing
      end = type.encode(value, this.#bytes, this.length);
    }
    this.length = end;
  }

  /** Writes an array or a map: its items in one block, if there are any, then the end marker. */
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

/** Returns a Buffer over the same memory; avsc requires a Buffer. */
export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes)
    ? bytes
    : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** Largest integer for which 32-bit shifts and masks are correct. */
const MAX_SMALL = 2 ** 31 - 1;
/** Divisor that splits a long. The remainder is encoded in the first four bytes, 7 bits in each; the quotient fits in 32-bit arithmetic. */
const IN_FOUR_BYTES = 2 ** 28;
