// Decompresses record batches: gzip with Node, zstd with fzstd, snappy and lz4 with code of our own, which limits the size of the content.

import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { Decompress } from 'fzstd';

/** Kafka's compression codecs. `type`: number of the codec in the attributes of a batch. */
export const CODECS = [
  { type: 1, name: 'gzip', unpack: unpackGzip },
  { type: 2, name: 'snappy', unpack: unpackSnappy },
  { type: 3, name: 'lz4', unpack: unpackLz4 },
  { type: 4, name: 'zstd', unpack: unpackZstd },
] as const;

/**
 * Decompresses the messages of a batch.
 *
 * @throws MalformedBytes if there is no codec with the number `type`, the bytes break their format, or the content is larger than {@link
 * MAX_UNPACKED_BYTES}.
 */
export async function decompress(type: number, bytes: Buffer): Promise<Buffer> {
  const codec = CODECS.find((each) => each.type === type);
  if (!codec) throw new MalformedBytes(`it is compressed with codec ${type}, which is not known`);
  try {
    return await codec.unpack(bytes);
  } catch (error) {
    if (!(error instanceof MalformedBytes)) throw error;
    throw new MalformedBytes(`it is no valid ${codec.name}: ${error.message}`, { cause: error });
  }
}

const unzip: (
  bytes: Buffer,
  options: { chunkSize: number; maxOutputLength: number },
) => Promise<Buffer> = promisify(gunzip);
/** Size in bytes of the last field of gzip data, which contains the length of the decompressed content. */
const LENGTH_FROM_END = 4;
/**
 * Smallest and largest output chunk, in bytes. The smallest is zlib's minimum. The largest bounds the memory in case gzip data state a
 * wrong content length.
 */
const CHUNK = { min: 64, max: 2 ** 24 } as const;

async function unpackGzip(bytes: Buffer): Promise<Buffer> {
  if (bytes.length < LENGTH_FROM_END) throw new MalformedBytes('it ends too early');
  // One output chunk as long as the content: several chunks would have to be concatenated.
  const length = bytes.readUInt32LE(bytes.length - LENGTH_FROM_END);
  const chunkSize = Math.min(Math.max(length + 1, CHUNK.min), CHUNK.max);
  return unzip(bytes, { chunkSize, maxOutputLength: MAX_UNPACKED_BYTES }).catch(throwMalformed);
}

/** Throws the error of a library's decoder as `MalformedBytes`. */
function throwMalformed(error: unknown): never {
  if (error instanceof MalformedBytes) throw error;
  throw new MalformedBytes(error instanceof Error ? error.message : String(error), {
    cause: error,
  });
}

// Format of Zstandard frames: RFC 8878, section 3.1.1

const ZSTD_MAGIC = 0xfd2fb528;
const DESCRIPTOR_AT = 4;
const SINGLE_SEGMENT = 0x20;

/** Decompresses Zstandard frames. `node:zlib` can replace fzstd once Node 22.15 is the oldest that is supported. */
function unpackZstd(bytes: Buffer): Buffer {
  // Checked first: fzstd allocates the window that the frame declares.
  if (windowBytes(bytes) > MAX_UNPACKED_BYTES) {
    throw new MalformedBytes(`its window is larger than ${MAX_UNPACKED_BYTES} bytes`);
  }
  const output = new Unpacked(4 * bytes.length);
  const stream = new Decompress((part) => output.append(part));
  try {
    stream.push(bytes, true);
  } catch (error) {
    throwMalformed(error);
  }
  return output.content();
}

/**
 * Returns the window size of a Zstandard frame, in bytes: the distance over which the data may refer back to earlier output. If the frame
 * is a single segment, this is the size of its content.
 */
function windowBytes(bytes: Buffer): number {
  if (bytes.length < DESCRIPTOR_AT + 2) throw new MalformedBytes('it ends too early');
  if (bytes.readUInt32LE() !== ZSTD_MAGIC) throw new MalformedBytes('it is not a Zstandard frame');
  const descriptor = bytes[DESCRIPTOR_AT]!;
  if (descriptor & SINGLE_SEGMENT) return contentBytes(bytes, descriptor);
  const exponent = 10 + (bytes[DESCRIPTOR_AT + 1]! >> 3);
  const mantissa = bytes[DESCRIPTOR_AT + 1]! & 7;
  return 2 ** exponent * (1 + mantissa / 8);
}

function contentBytes(bytes: Buffer, descriptor: number): number {
  const dictionaryBytes = [0, 1, 2, 4][descriptor & 3]!;
  const size = bytes.subarray(DESCRIPTOR_AT + 1 + dictionaryBytes);
  const sizeBytes = [1, 2, 4, 8][descriptor >> 6]!;
  if (size.length < sizeBytes) throw new MalformedBytes('it ends too early');
  if (sizeBytes === 8) return Number(size.readBigUInt64LE());
  return size.readUIntLE(0, sizeBytes) + (sizeBytes === 2 ? 256 : 0);
}

// Format of Snappy blocks: https://github.com/google/snappy/blob/main/format_description.txt

/** First bytes of a snappy-java stream, the format that brokers and the Java client write. */
const JAVA_MAGIC = Buffer.from([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0]);
/**
 * Size of the two version numbers that follow {@link JAVA_MAGIC}, in bytes: the version of the format, and the oldest version that can read
 * it.
 */
const JAVA_VERSION_BYTES = 8;
/**
 * Longest literal, in bytes, that Snappy writes with the length in the tag byte. A longer literal has the length in the 1 to 4 bytes after
 * the tag.
 */
const SHORT_LITERAL = 60;
const MAX_VARINT_BYTES = 5;

/**
 * Decompresses Snappy data: one block, as librdkafka and Go clients write, or a snappy-java stream, in which each block is preceded by its
 * length.
 */
function unpackSnappy(bytes: Buffer): Buffer {
  const output = new Unpacked(4 * bytes.length);
  if (!bytes.subarray(0, JAVA_MAGIC.length).equals(JAVA_MAGIC)) {
    readSnappyBlock(new Packed(bytes), output);
    return output.content();
  }
  const input = new Packed(bytes);
  while (input.left > 0) {
    const length = input.take(4).readUInt32BE();
    // Streams may be concatenated: then these bytes are the next header's beginning instead of a length.
    if (length === JAVA_MAGIC.readUInt32BE()) {
      input.take(JAVA_MAGIC.length - 4 + JAVA_VERSION_BYTES);
    } else readSnappyBlock(new Packed(input.take(length)), output);
  }
  return output.content();
}

function readSnappyBlock(block: Packed, output: Unpacked): void {
  const before = output.length;
  const length = readVarint(block);
  while (block.left > 0) {
    const tag = block.uint8();
    const high = tag >> 2;
    switch (tag & 3) {
      case 0:
        output.append(block.take(1 + (high < SHORT_LITERAL ? high : block.uintLE(high - 59))));
        break;
      case 1:
        output.repeat(((tag >> 5) << 8) | block.uint8(), 4 + (high & 7));
        break;
      case 2:
        output.repeat(block.uint16LE(), 1 + high);
        break;
      default:
        output.repeat(block.uint32LE(), 1 + high);
    }
    if (output.length - before > length) break;
  }
  if (output.length - before !== length) {
    throw new MalformedBytes('the length of its content differs from the stated length');
  }
}

function readVarint(block: Packed): number {
  let value = 0;
  for (let n = 0; n < MAX_VARINT_BYTES; n++) {
    const byte = block.uint8();
    value += (byte & 0x7f) * 2 ** (7 * n);
    if (byte < 0x80) return value;
  }
  throw new MalformedBytes('its stated length is not a valid number');
}

// Format of LZ4 frames: https://github.com/lz4/lz4/blob/dev/doc/lz4_Frame_format.md, of LZ4 blocks: lz4_Block_format.md beside it.

const LZ4_MAGIC = 0x184d2204;
const VERSION_MASK = 0xc0;
const VERSION = 0x40;
const HAS_BLOCK_CHECKSUM = 0x10;
const HAS_CONTENT_SIZE = 0x08;
const HAS_CONTENT_CHECKSUM = 0x04;
const HAS_DICTIONARY = 0x01;
const STORED = 0x80000000;
const SIZE_MASK = 0x7fffffff;
const CHECKSUM_BYTES = 4;
const CONTENT_SIZE_BYTES = 8;
const MIN_MATCH = 4;
/** Largest value of a four-bit length field in an LZ4 block. It means that the following bytes add to the length. */
const LONG = 15;

/** Decompresses one or several LZ4 frames. Checksums are not verified: TCP and the batch's own CRC protect the bytes. */
function unpackLz4(bytes: Buffer): Buffer {
  const input = new Packed(bytes);
  const output = new Unpacked(4 * bytes.length);
  do readFrame(input, output);
  while (input.left > 0);
  return output.content();
}

function readFrame(input: Packed, output: Unpacked): void {
  if (input.uint32LE() !== LZ4_MAGIC) throw new MalformedBytes('it is not an LZ4 frame');
  const flags = input.uint8();
  if ((flags & VERSION_MASK) !== VERSION || flags & HAS_DICTIONARY) {
    throw new MalformedBytes('it is an LZ4 frame of an unknown kind');
  }
  input.uint8(); // largest size of a block
  if (flags & HAS_CONTENT_SIZE) input.take(CONTENT_SIZE_BYTES);
  input.uint8(); // checksum of the header
  for (;;) {
    const size = input.uint32LE();
    if (size === 0) break;
    const block = input.take(size & SIZE_MASK);
    if (size >= STORED) output.append(block);
    else readLz4Block(new Packed(block), output);
    if (flags & HAS_BLOCK_CHECKSUM) input.take(CHECKSUM_BYTES);
  }
  if (flags & HAS_CONTENT_CHECKSUM) input.take(CHECKSUM_BYTES);
}

/** Decompresses one LZ4 block. Matches may refer to the output of earlier blocks, as in the linked blocks that librdkafka writes. */
function readLz4Block(block: Packed, output: Unpacked): void {
  for (;;) {
    const token = block.uint8();
    output.append(block.take(lengthOf(token >> 4, block)));
    if (block.left === 0) return; // the last sequence has no match
    const distance = block.uint16LE();
    output.repeat(distance, lengthOf(token & LONG, block) + MIN_MATCH);
  }
}

function lengthOf(short: number, block: Packed): number {
  if (short < LONG) return short;
  let length = short;
  let byte: number;
  do {
    byte = block.uint8();
    length += byte;
  } while (byte === 0xff);
  return length;
}

/**
 * Largest content of one compressed batch, in bytes. Producers fill batches up to some MiB; without a limit a damaged batch could exhaust
 * the memory.
 */
export const MAX_UNPACKED_BYTES = 64 * 2 ** 20;

/** Error: the bytes of a batch can't be decompressed or decoded, or their content is larger than {@link MAX_UNPACKED_BYTES}. */
export class MalformedBytes extends Error {
  override readonly name = 'MalformedBytes';
}

/** Output buffer of a decoder. It grows as needed, up to {@link MAX_UNPACKED_BYTES}. */
class Unpacked {
  #bytes: Buffer;
  #length = 0;

  /**
   * @param expected Likely length of the unpacked content, in bytes: the initial size of the buffer.
   */
  constructor(expected: number) {
    this.#bytes = Buffer.allocUnsafe(Math.min(expected, MAX_UNPACKED_BYTES));
  }

  get length(): number {
    return this.#length;
  }

  append(bytes: Uint8Array): void {
    this.#reserve(bytes.length);
    this.#bytes.set(bytes, this.#length);
    this.#length += bytes.length;
  }

  /**
   * Appends `length` bytes, copied from `distance` bytes before the end of the output. If `length` > `distance`, these bytes are repeated.
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
class Packed {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get left(): number {
    return this.#bytes.length - this.#at;
  }

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

  /** Reads an unsigned number of 1 to 6 bytes. */
  uintLE(byteCount: number): number {
    return this.take(byteCount).readUIntLE(0, byteCount);
  }
}
