import { MalformedBytes, Packed, Unpacked } from './unpacked.ts';

// Frames: https://github.com/lz4/lz4/blob/dev/doc/lz4_Frame_format.md, blocks: lz4_Block_format.md beside it.

const MAGIC = 0x184d2204;
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
/** A length of four bits that goes on in the bytes behind it. */
const LONG = 15;

/**
 * Content of LZ4 frames, one or several in a row. Checksums are not compared: TCP and the batch's own CRC protect the bytes.
 *
 * @throws MalformedBytes
 */
export function unpackLz4(bytes: Buffer): Buffer {
  const input = new Packed(bytes);
  const output = new Unpacked(4 * bytes.length);
  do readFrame(input, output);
  while (input.left > 0);
  return output.content();
}

function readFrame(input: Packed, output: Unpacked): void {
  if (input.uint32LE() !== MAGIC) throw new MalformedBytes('it is no LZ4 frame');
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
    else readBlock(new Packed(block), output);
    if (flags & HAS_BLOCK_CHECKSUM) input.take(CHECKSUM_BYTES);
  }
  if (flags & HAS_CONTENT_CHECKSUM) input.take(CHECKSUM_BYTES);
}

/** Matches may reach back into earlier blocks: librdkafka links them. */
function readBlock(block: Packed, output: Unpacked): void {
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
