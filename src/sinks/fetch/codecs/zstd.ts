import { Decompress } from 'fzstd';
import { MalformedBytes, MAX_UNPACKED_BYTES, Unpacked } from './unpacked.ts';

// Frames: RFC 8878, section 3.1.1

const MAGIC = 0xfd2fb528;
const DESCRIPTOR_AT = 4;
const SINGLE_SEGMENT = 0x20;

/**
 * Content of Zstandard frames. (`node:zlib` has Zstandard from Node 22.15 on, and replaces fzstd once that is the oldest Node supported.)
 *
 * @throws MalformedBytes
 */
export function unpackZstd(bytes: Buffer): Buffer {
  // Checked first: fzstd makes room for all that the frame claims.
  if (windowBytes(bytes) > MAX_UNPACKED_BYTES) {
    throw new MalformedBytes(`its window is larger than ${MAX_UNPACKED_BYTES} bytes`);
  }
  const output = new Unpacked(4 * bytes.length);
  const stream = new Decompress((part) => output.append(part));
  try {
    stream.push(bytes, true);
  } catch (error) {
    if (error instanceof MalformedBytes) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    throw new MalformedBytes(reason, { cause: error });
  }
  return output.content();
}

/** How far back its matches may reach; of a single segment, the length of its content. */
function windowBytes(bytes: Buffer): number {
  if (bytes.length < DESCRIPTOR_AT + 2) throw new MalformedBytes('it ends too early');
  if (bytes.readUInt32LE() !== MAGIC) throw new MalformedBytes('it is no Zstandard frame');
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
