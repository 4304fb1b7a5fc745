import { crc32 } from 'node:zlib';
import { CellarstreamError } from '../core/errors.ts';

/** The last published image of a record. */
export interface StoredImage {
  /** Of the event that published it. */
  readonly sequence: number;
  /** Of the schema that `bytes` are written in. */
  readonly schemaId: number;
  /** The record as Avro, without a header. */
  readonly bytes: Buffer;
}

/** The bytes that a record was sent in as its image was made, or found to be still right. */
export interface KeptText {
  /** 16 bytes, as `latin1`. */
  readonly digest: string;
  /** Bytes. */
  readonly length: number;
  /** The record's `updated_at` in ms since the epoch; null when it has none. */
  readonly updatedAt: number | null;
}

/** When a key was seen: numbers of sweeps. */
export interface Mark {
  /** The newest sweep at the time of the newest sighting. */
  readonly seen: number;
  /** The newest sweep that read it. */
  readonly read: number;
  /** Whether the key has an image: one that is not found then has been lost. */
  readonly hasImage: boolean;
  /** What its image says, as it was sent; undefined where nobody looked. */
  readonly text: KeptText | undefined;
  /** The run that it is in: that was seen when the run was. One with a run has a text. */
  readonly run: RunPlace | undefined;
}

/** A place in a run. */
export interface RunPlace {
  /** Of the run. */
  readonly id: string;
  readonly isFirst: boolean;
}

export const UNMARKED: Mark = {
  ...{ seen: 0, read: 0, hasImage: false },
  ...{ text: undefined, run: undefined },
};

// Every entry ends with a checksum of its key and of all that stands before: what is stored under a wrong
// key is as wrong as what has changed.
export const CHECKSUM_BYTES = 4;
/** What the checksum of anything that ends with its own checksum comes to. */
const RESIDUE = 0x2144df1c;
const DIGEST_BYTES = 16;
const IMAGE = { sequence: 0, schemaId: 8, bytes: 12 } as const;
const MARK = { seen: 0, read: 4, hasImage: 8, end: 9 } as const;
/** Behind the mark, where there is one. */
const TEXT = { length: 9, updatedAt: 13, digest: 21, end: 21 + DIGEST_BYTES } as const;
/** Behind the text, where there is one. */
const RUN = { id: TEXT.end, isFirst: TEXT.end + 8, end: TEXT.end + 9 } as const;
/** Prefix of the key in the checksum of a mark with a run. */
const IN_RUN = 'in a run ';

export function packImage(key: string, { sequence, schemaId, bytes }: StoredImage): Buffer {
  const packed = entry(IMAGE.bytes + bytes.length);
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
    bytes: packed.subarray(IMAGE.bytes, packed.length - CHECKSUM_BYTES),
  };
}

export function packMark(key: string, { seen, read, hasImage, text, run }: Mark): Buffer {
  const packed = entry(run ? RUN.end : text ? TEXT.end : MARK.end);
  packed.writeUInt32BE(seen, MARK.seen);
  packed.writeUInt32BE(read, MARK.read);
  packed.writeUInt8(Number(hasImage), MARK.hasImage);
  if (text) {
    packed.writeUInt32BE(text.length, TEXT.length);
    packed.writeDoubleBE(text.updatedAt ?? NaN, TEXT.updatedAt);
    packed.write(text.digest, TEXT.digest, 'latin1');
  }
  if (!run) return sealed(key, packed);
  packed.write(run.id, RUN.id, 'latin1');
  packed.writeUInt8(Number(run.isFirst), RUN.isFirst);
  return sealed(IN_RUN + key, packed);
}

/** @throws CellarstreamError `STATE_DAMAGED` when it is not what was stored under this key. */
export function unpackMark(key: string, packed: Buffer): Mark {
  const inRun = packed.length === RUN.end + CHECKSUM_BYTES;
  expectWhole(inRun ? IN_RUN + key : key, packed, MARK.end);
  return {
    seen: packed.readUInt32BE(MARK.seen),
    read: packed.readUInt32BE(MARK.read),
    hasImage: packed.readUInt8(MARK.hasImage) === 1,
    text: inRun || packed.length === TEXT.end + CHECKSUM_BYTES ? textIn(packed) : undefined,
    run: inRun ? { id: runIdIn(packed)!, isFirst: packed.readUInt8(RUN.isFirst) === 1 } : undefined,
  };
}

/** The run of a packed mark, which is not held against its checksum. */
export function runIdIn(packed: Buffer): string | undefined {
  if (packed.length !== RUN.end + CHECKSUM_BYTES) return undefined;
  return packed.toString('latin1', RUN.id, RUN.isFirst);
}

/**
 * Whether a mark says that its key was seen since a sweep began, by that one or
 * the next: for who goes through all of them, and unpacks only those that say something else. It is not held against its
 * checksum: a mark that wrongly says so is unpacked a sweep later.
 */
export function saysSeen(packed: Buffer, since: number): boolean {
  if (packed.length < MARK.end) return false;
  const seen = packed.readUInt32BE(MARK.seen);
  return seen === since || seen === since + 1;
}

function textIn(packed: Buffer): KeptText {
  const updatedAt = packed.readDoubleBE(TEXT.updatedAt);
  return {
    length: packed.readUInt32BE(TEXT.length),
    updatedAt: Number.isNaN(updatedAt) ? null : updatedAt,
    digest: packed.toString('latin1', TEXT.digest, TEXT.end),
  };
}

export function packBytes(key: string, bytes: Buffer): Buffer {
  const packed = entry(bytes.length);
  bytes.copy(packed);
  return sealed(key, packed);
}

/** @throws CellarstreamError `STATE_DAMAGED` when it is not what was stored under this key. */
export function unpackBytes(key: string, packed: Buffer): Buffer {
  expectWhole(key, packed, 0);
  return packed.subarray(0, packed.length - CHECKSUM_BYTES);
}

/** Plain JSON, as text. */
export function packJson(key: string, value: unknown): Buffer {
  return packBytes(key, Buffer.from(JSON.stringify(value)));
}

/** @throws CellarstreamError `STATE_DAMAGED` when it is not what was stored under this key. */
export function unpackJson<T>(key: string, packed: Buffer): T {
  return JSON.parse(unpackBytes(key, packed).toString('utf8')) as T;
}

/** What was found says that the images can't be relied on. */
export function damaged(what: string, cause?: unknown): CellarstreamError {
  return new CellarstreamError('STATE_DAMAGED', `the stored images are damaged: ${what}`, {
    ...(cause !== undefined && { cause }),
  });
}

/** Room for an entry of so many bytes. */
export function entry(bytes: number): Buffer {
  return Buffer.allocUnsafe(bytes + CHECKSUM_BYTES);
}

/** An entry with its checksum. */
export function sealed(key: string, packed: Buffer): Buffer {
  const end = packed.length - CHECKSUM_BYTES;
  packed.writeUInt32LE(crc32(packed.subarray(0, end), crc32(key)), end); // little-endian, for the residue
  return packed;
}

/** @throws CellarstreamError `STATE_DAMAGED` when it is not what was stored under this key. */
export function expectWhole(key: string, packed: Buffer, least: number): void {
  const isWhole = packed.length >= least + CHECKSUM_BYTES && crc32(packed, crc32(key)) === RESIDUE;
  if (!isWhole) throw damaged('an entry is not as it was stored');
}
