import { MalformedBytes, Packed, Unpacked } from './unpacked.ts';

// Blocks: https://github.com/google/snappy/blob/main/format_description.txt

/** Beginning of a stream of snappy-java, which the brokers and the Java client write. */
const JAVA_MAGIC = Buffer.from([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0]);
/** Length of the two version numbers that follow the magic: of the format, and of the oldest reader that supports it. */
const JAVA_VERSION_BYTES = 8;
/** Literals of up to 60 bytes have their length in the tag; behind larger numbers it is in 1 to 4 bytes. */
const SHORT_LITERAL = 60;
const MAX_VARINT_BYTES = 5;

/**
 * Content of Snappy blocks: one alone, as librdkafka and Go clients write, or a stream of snappy-java, with the length of each block
 * before it.
 *
 * @throws MalformedBytes
 */
export function unpackSnappy(bytes: Buffer): Buffer {
  const output = new Unpacked(4 * bytes.length);
  if (!isJavaHeader(bytes)) {
    readBlock(new Packed(bytes), output);
    return output.content();
  }
  const input = new Packed(bytes);
  while (input.left > 0) {
    const length = input.uint32BE();
    // Streams may follow each other: the length is the beginning of a header then.
    if (length === JAVA_MAGIC.readUInt32BE()) {
      input.take(JAVA_MAGIC.length - 4 + JAVA_VERSION_BYTES);
    } else readBlock(new Packed(input.take(length)), output);
  }
  return output.content();
}

function isJavaHeader(bytes: Buffer): boolean {
  return bytes.subarray(0, JAVA_MAGIC.length).equals(JAVA_MAGIC);
}

function readBlock(block: Packed, output: Unpacked): void {
  const before = output.length;
  const length = readVarint(block);
  while (block.left > 0) {
    const tag = block.uint8();
    const high = tag >> 2;
    switch (tag & 3) {
      case 0:
        output.append(block.take(1 + (high < SHORT_LITERAL ? high : readNumber(block, high - 59))));
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
    throw new MalformedBytes('its content has another length than it says');
  }
}

function readNumber(block: Packed, byteCount: number): number {
  return block.take(byteCount).readUIntLE(0, byteCount);
}

function readVarint(block: Packed): number {
  let value = 0;
  for (let n = 0; n < MAX_VARINT_BYTES; n++) {
    const byte = block.uint8();
    value += (byte & 0x7f) * 2 ** (7 * n);
    if (byte < 0x80) return value;
  }
  throw new MalformedBytes('its length is no number');
}
