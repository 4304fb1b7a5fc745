/**
 * Largest content of one compressed batch, in bytes. Writers fill batches up to some MiB; a few bytes of input can claim
 * far more, and without a limit one damaged batch would take all memory.
 */
export const MAX_UNPACKED_BYTES = 64 * 2 ** 20;

/** Compressed bytes that break their format, or whose content is larger than {@link MAX_UNPACKED_BYTES}. */
export class MalformedBytes extends Error {
  override readonly name = 'MalformedBytes';
}

const FIRST_BYTES = 2 ** 16;

/** Output of a decoder of the LZ77 family: it grows as needed, and later bytes may repeat earlier ones. */
export class Unpacked {
  #bytes: Buffer;
  #length = 0;

  /** @param expected Likely length of the content, in bytes. */
  constructor(expected = FIRST_BYTES) {
    this.#bytes = Buffer.allocUnsafe(Math.min(expected, MAX_UNPACKED_BYTES));
  }

  get length(): number {
    return this.#length;
  }

  /** @throws MalformedBytes beyond {@link MAX_UNPACKED_BYTES}. */
  append(bytes: Uint8Array): void {
    this.#reserve(bytes.length);
    this.#bytes.set(bytes, this.#length);
    this.#length += bytes.length;
  }

  /**
   * Appends `length` bytes that begin `distance` bytes before the end; they may overlap what is appended.
   *
   * @throws MalformedBytes where there are not that many bytes, or beyond {@link MAX_UNPACKED_BYTES}.
   */
  repeat(distance: number, length: number): void {
    if (distance < 1 || distance > this.#length) {
      throw new MalformedBytes('it repeats bytes from before its beginning');
    }
    this.#reserve(length);
    const bytes = this.#bytes;
    const from = this.#length - distance;
    if (distance >= length) bytes.copyWithin(this.#length, from, from + length);
    else for (let n = 0; n < length; n++) bytes[this.#length + n] = bytes[from + n]!;
    this.#length += length;
  }

  content(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  #reserve(more: number): void {
    const least = this.#length + more;
    if (least <= this.#bytes.length) return;
    if (least > MAX_UNPACKED_BYTES) {
      throw new MalformedBytes(`its content is larger than ${MAX_UNPACKED_BYTES} bytes`);
    }
    const grown = Buffer.allocUnsafe(
      Math.min(Math.max(2 * this.#bytes.length, least), MAX_UNPACKED_BYTES),
    );
    this.#bytes.copy(grown, 0, 0, this.#length);
    this.#bytes = grown;
  }
}

/** Compressed input, read from front to back. */
export class Packed {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get left(): number {
    return this.#bytes.length - this.#at;
  }

  /** A view of the next `length` bytes. @throws MalformedBytes where there are fewer. */
  take(length: number): Buffer {
    if (length > this.left) throw new MalformedBytes('it ends too early');
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }

  uint8(): number {
    return this.take(1)[0]!;
  }

  uint16LE(): number {
    return this.take(2).readUInt16LE();
  }

  uint32LE(): number {
    return this.take(4).readUInt32LE();
  }

  uint32BE(): number {
    return this.take(4).readUInt32BE();
  }
}
