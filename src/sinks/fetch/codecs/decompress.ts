import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { unpackLz4 } from './lz4.ts';
import { unpackSnappy } from './snappy.ts';
import { MalformedBytes, MAX_UNPACKED_BYTES } from './unpacked.ts';
import { unpackZstd } from './zstd.ts';

/** How a batch is compressed: the number in its attributes, and Kafka's name for it. */
export const CODECS = [
  { type: 1, name: 'gzip', unpack: unpackGzip },
  { type: 2, name: 'snappy', unpack: unpackSnappy },
  { type: 3, name: 'lz4', unpack: unpackLz4 },
  { type: 4, name: 'zstd', unpack: unpackZstd },
] as const;

/**
 * Content of a compressed batch of records.
 *
 * @throws MalformedBytes where the bytes break their format, are of an unknown codec, or hold too much.
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
/** Where gzip has the length of its content, in bytes from its end. */
const LENGTH_FROM_END = 4;
/** Room that is made before anything is unpacked, in bytes: zlib's least, and no more than what a batch may come to. */
const ROOM = { least: 64, most: 2 ** 24 } as const;

async function unpackGzip(bytes: Buffer): Promise<Buffer> {
  if (bytes.length < LENGTH_FROM_END) throw new MalformedBytes('it ends too early');
  // Unpacked in one go into as much room as it needs: pieces would have to be copied.
  const length = bytes.readUInt32LE(bytes.length - LENGTH_FROM_END);
  const chunkSize = Math.min(Math.max(length + 1, ROOM.least), ROOM.most);
  try {
    return await unzip(bytes, { chunkSize, maxOutputLength: MAX_UNPACKED_BYTES });
  } catch (error) {
    throw new MalformedBytes(error instanceof Error ? error.message : String(error), {
      cause: error,
    });
  }
}
