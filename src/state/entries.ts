import { crc32 } from 'node:zlib';
import { CellarstreamError } from '../errors.ts';

/** The last published image of a record. */
export interface StoredImage {
  /** Of the event that published it. */
  readonly sequence: number;
  /** Of the schema that `bytes` are written in. */
  readonly schemaId: number;
  /** The record as Avro, without a header. */
  readonly bytes: Buffer;
}

/** When a key was seen: numbers of sweeps. */
export interface Mark {
  /** The newest sweep at the time of the newest sighting. */
  readonly seen: number;
  /** The newest sweep that read it. */
  readonly read: number;
  /** Whether the key has an image: one that is not found then has been lost. */
  readonly hasImage: boolean;
}

export const UNMARKED: Mark = { seen: 0, read: 0, hasImage: false };

// Every entry begins with a checksum of its key and of all that follows: what is stored under a wrong
// key is as wrong as what has changed.
const CHECKSUM = 4;
const IMAGE = { sequence: CHECKSUM, schemaId: CHECKSUM + 8, bytes: CHECKSUM + 12 } as const;
const MARK = { seen: CHECKSUM, read: CHECKSUM + 4, hasImage: CHECKSUM + 8, length: CHECKSUM + 9 } as const; // prettier-ignore

export function packImage(key: string, { sequence, schemaId, bytes }: StoredImage): Buffer {
  const packed = Buffer.allocUnsafe(IMAGE.bytes + bytes.length);
  packed.writeDoubleBE(sequence, IMAGE.sequence);
  packed.writeUInt32BE(schemaId, IMAGE.schemaId);
  bytes.copy(packed, IMAGE.bytes);
  return sealed(key, packed);
}

/** @throws CellarstreamError `STATE_DAMAGED` when it is not what was stored under this key. */
export function unpackImage(key: string, packed: Buffer): StoredImage {
  expectWhole(key, packed, IMAGE.bytes);
  return {
    sequence: packed.readDoubleBE(IMAGE.sequence),
    schemaId: packed.readUInt32BE(IMAGE.schemaId),
    bytes: packed.subarray(IMAGE.bytes),
  };
}

export function packMark(key: string, { seen, read, hasImage }: Mark): Buffer {
  const packed = Buffer.allocUnsafe(MARK.length);
  packed.writeUInt32BE(seen, MARK.seen);
  packed.writeUInt32BE(read, MARK.read);
  packed.writeUInt8(Number(hasImage), MARK.hasImage);
  return sealed(key, packed);
}

/** @throws CellarstreamError `STATE_DAMAGED` when it is not what was stored under this key. */
export function unpackMark(key: string, packed: Buffer): Mark {
  expectWhole(key, packed, MARK.length);
  return {
    seen: packed.readUInt32BE(MARK.seen),
    read: packed.readUInt32BE(MARK.read),
    hasImage: packed.readUInt8(MARK.hasImage) === 1,
  };
}

/** Plain JSON, as text behind its checksum. */
export function packJson(key: string, value: unknown): Buffer {
  return sealed(key, Buffer.concat([Buffer.alloc(CHECKSUM), Buffer.from(JSON.stringify(value))]));
}

/** @throws CellarstreamError `STATE_DAMAGED` when it is not what was stored under this key. */
export function unpackJson<T>(key: string, packed: Buffer): T {
  expectWhole(key, packed, CHECKSUM);
  return JSON.parse(packed.toString('utf8', CHECKSUM)) as T;
}

/** What was found says that the images can't be relied on. */
export function damaged(what: string, cause?: unknown): CellarstreamError {
  return new CellarstreamError('STATE_DAMAGED', `the stored images are damaged: ${what}`, {
    ...(cause !== undefined && { cause }),
  });
}

function sealed(key: string, packed: Buffer): Buffer {
  packed.writeUInt32BE(checksum(key, packed));
  return packed;
}

function expectWhole(key: string, packed: Buffer, least: number): void {
  if (packed.length >= least && packed.readUInt32BE() === checksum(key, packed)) return;
  throw damaged('an entry is not as it was stored');
}

function checksum(key: string, packed: Buffer): number {
  return crc32(packed.subarray(CHECKSUM), crc32(key));
}
