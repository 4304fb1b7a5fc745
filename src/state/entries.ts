// Binary formats of the image store's entries, each with a checksum.

import { crc32 } from 'node:zlib';
import { CellarstreamError } from '../core/errors.ts';

/** Stored image of a record: its content as last published, in Avro. */
export interface StoredImage {
  /** Sequence number of the event that published the image. */
  readonly sequence: number;
  /** Id, in the schema registry, of the schema with which `bytes` are encoded. */
  readonly schemaId: number;
  /** The record in Avro, without the header of the Confluent wire format. */
  readonly bytes: Buffer;
}

/** Digest of a record's JSON bytes as the API sent them. The content of these bytes equals that of the stored image. */
export interface StoredPayloadDigest {
  /** The digest of the record's JSON bytes: 16 bytes, as a `latin1` string. */
  readonly digest: string;
  /** Length of the record's JSON in bytes. */
  readonly length: number;
  /** The record's modification time in ms since the epoch; null when it has none. */
  readonly updatedAt: number | null;
}

/**
 * When the API last showed a key, or a run (adjacent records of a page), as numbers of sweeps. Sweeps are recurring full scans of the list;
 * each has a higher number than the one before.
 */
export interface Sighting {
  /**
   * Number of the newest sweep (full scan) that had begun when the key or run of records was last shown by a read of any kind, such as a
   * poll.
   */
  readonly lastSeenSweep: number;
  /** Number of the newest sweep (full scan) that read the key or run of records. Reads of other kinds, such as polls, do not count. */
  readonly lastReadSweep: number;
}

/** Entry of the image store for a key: when the API last showed the key, and data about its record. */
export interface Mark extends Sighting {
  /** Whether an image of the record (its content as published) was stored. If so and the image is missing, the store is damaged. */
  readonly hasImage: boolean;
  /** Digest of the record's JSON bytes as the API sent them. Their content equals that of the stored image. Undefined if none is known. */
  readonly payloadDigest: StoredPayloadDigest | undefined;
  /**
   * The run (adjacent records that are recognized as a unit) to which the key belongs; undefined if it belongs to none. The key also counts
   * as seen whenever the run is seen.
   */
  readonly run: RunMembership | undefined;
}

/** The run (adjacent records of a page, recognized as a unit by their bytes) that a key belongs to. */
export interface RunMembership {
  readonly id: string;
  readonly isFirst: boolean;
}

export const UNMARKED: Mark = {
  lastSeenSweep: 0,
  lastReadSweep: 0,
  hasImage: false,
  payloadDigest: undefined,
  run: undefined,
};

// Every entry ends with a checksum of its key and its content: an entry stored under a wrong key is as damaged as a changed one.
export const CHECKSUM_BYTES = 4;
/** Constant result of CRC-32 for any data that ends with its own CRC-32. */
const RESIDUE = 0x2144df1c;
const DIGEST_BYTES = 16;
const IMAGE = { sequence: 0, schemaId: 8, bytes: 12 } as const;
const MARK = { seen: 0, read: 4, hasImage: 8, end: 9 } as const;
/**
 * Byte offsets, within a stored mark (the entry that says when a key was last seen), of data about the record's JSON: its length, its
 * modification time and its digest. A mark without a digest is shorter and lacks these bytes.
 */
const PAYLOAD_DIGEST = { length: 9, updatedAt: 13, digest: 21, end: 21 + DIGEST_BYTES } as const;
/**
 * Byte offsets, within a stored mark, of the run (adjacent records of a page) to which the mark's key belongs. The mark of a key that is in
 * no run is shorter and lacks these bytes.
 */
const RUN = {
  id: PAYLOAD_DIGEST.end,
  isFirst: PAYLOAD_DIGEST.end + 8,
  end: PAYLOAD_DIGEST.end + 9,
} as const;
/**
 * Prefix for the key in the checksum of a mark (a key's entry in the image store). Used only if the key belongs to a run (adjacent records
 * of a page, recognized together). It is not stored.
 */
const IN_RUN = 'in a run ';

export function packImage(key: string, { sequence, schemaId, bytes }: StoredImage): Buffer {
  const packed = allocateEntry(IMAGE.bytes + bytes.length);
  packed.writeDoubleBE(sequence, IMAGE.sequence);
  packed.writeUInt32BE(schemaId, IMAGE.schemaId);
  bytes.copy(packed, IMAGE.bytes);
  return withChecksum(key, packed);
}

/** Decodes a stored image. @throws CellarstreamError `STATE_DAMAGED` when the checksum does not match the key and the content. */
export function unpackImage(key: string, packed: Buffer): StoredImage {
  expectLength(key, packed, IMAGE.bytes);
  return {
    sequence: packed.readDoubleBE(IMAGE.sequence),
    schemaId: packed.readUInt32BE(IMAGE.schemaId),
    bytes: packed.subarray(IMAGE.bytes, packed.length - CHECKSUM_BYTES),
  };
}

export function packMark(
  key: string,
  { lastSeenSweep, lastReadSweep, hasImage, payloadDigest, run }: Mark,
): Buffer {
  const packed = allocateEntry(run ? RUN.end : payloadDigest ? PAYLOAD_DIGEST.end : MARK.end);
  packed.writeUInt32BE(lastSeenSweep, MARK.seen);
  packed.writeUInt32BE(lastReadSweep, MARK.read);
  packed.writeUInt8(Number(hasImage), MARK.hasImage);
  if (payloadDigest) {
    packed.writeUInt32BE(payloadDigest.length, PAYLOAD_DIGEST.length);
    packed.writeDoubleBE(payloadDigest.updatedAt ?? NaN, PAYLOAD_DIGEST.updatedAt);
    packed.write(payloadDigest.digest, PAYLOAD_DIGEST.digest, 'latin1');
  }
  if (!run) return withChecksum(key, packed);
  packed.write(run.id, RUN.id, 'latin1');
  packed.writeUInt8(Number(run.isFirst), RUN.isFirst);
  return withChecksum(IN_RUN + key, packed);
}

/**
 * Decodes a key's mark: the store's entry that says when the API last showed the key.
 *
 * @throws CellarstreamError `STATE_DAMAGED` when the checksum does not match the key and the content.
 */
export function unpackMark(key: string, packed: Buffer): Mark {
  const inRun = packed.length === RUN.end + CHECKSUM_BYTES;
  expectLength(inRun ? IN_RUN + key : key, packed, MARK.end);
  // A mark with a run always has a digest.
  const hasDigest = inRun || packed.length === PAYLOAD_DIGEST.end + CHECKSUM_BYTES;
  return {
    lastSeenSweep: packed.readUInt32BE(MARK.seen),
    lastReadSweep: packed.readUInt32BE(MARK.read),
    hasImage: packed.readUInt8(MARK.hasImage) === 1,
    payloadDigest: hasDigest ? payloadDigestIn(packed) : undefined,
    run: inRun ? { id: runIdIn(packed)!, isFirst: packed.readUInt8(RUN.isFirst) === 1 } : undefined,
  };
}

/** Returns the id of the run in a stored mark; undefined if the key is in no run. Does not verify the mark's checksum. */
export function runIdIn(packed: Buffer): string | undefined {
  if (packed.length !== RUN.end + CHECKSUM_BYTES) return undefined;
  return packed.toString('latin1', RUN.id, RUN.isFirst);
}

/**
 * Whether a stored mark says that its key was last seen during sweep number `since` or the following one. This check is fast and ignores
 * the checksum. False proves nothing: the key may have been seen in a later sweep, or as a part of its run.
 */
export function isSeenSince(packed: Buffer, since: number): boolean {
  if (packed.length < MARK.end) return false;
  const seen = packed.readUInt32BE(MARK.seen);
  return seen === since || seen === since + 1;
}

function payloadDigestIn(packed: Buffer): StoredPayloadDigest {
  return {
    length: packed.readUInt32BE(PAYLOAD_DIGEST.length),
    updatedAt: timeAt(packed, PAYLOAD_DIGEST.updatedAt),
    digest: packed.toString('latin1', PAYLOAD_DIGEST.digest, PAYLOAD_DIGEST.end),
  };
}

/** Reads a modification time in epoch ms; null if NaN is stored, which stands for no time. */
export function timeAt(packed: Buffer, at: number): number | null {
  const time = packed.readDoubleBE(at);
  return Number.isNaN(time) ? null : time;
}

export function packBytes(key: string, bytes: Buffer): Buffer {
  const packed = allocateEntry(bytes.length);
  bytes.copy(packed);
  return withChecksum(key, packed);
}

/** Returns a stored entry without its checksum. @throws CellarstreamError `STATE_DAMAGED` if the checksum doesn't match key and content. */
export function unpackBytes(key: string, packed: Buffer): Buffer {
  expectLength(key, packed, 0);
  return packed.subarray(0, packed.length - CHECKSUM_BYTES);
}

/** Creates the error `STATE_DAMAGED`; `what` describes the damage. */
export function damagedError(what: string, cause?: unknown): CellarstreamError {
  return new CellarstreamError(
    'STATE_DAMAGED',
    `the store of published records in STATE_DIR is damaged (${what}): the service deletes it and rebuilds it from Kafka by itself. If this happens again, check the disk`,
    { ...(cause !== undefined && { cause }) },
  );
}

/** Allocates the buffer for an entry of the image store: `bytes` bytes of content, and the space for the checksum after them. */
export function allocateEntry(bytes: number): Buffer {
  return Buffer.allocUnsafe(bytes + CHECKSUM_BYTES);
}

/** Computes the checksum of an entry over its key and its content, writes it into the last bytes of `packed`, and returns `packed`. */
export function withChecksum(key: string, packed: Buffer): Buffer {
  const end = packed.length - CHECKSUM_BYTES;
  packed.writeUInt32LE(crc32(packed.subarray(0, end), crc32(key)), end); // little-endian, as RESIDUE requires
  return packed;
}

/**
 * Verifies the checksum and the minimum length (`least`, in bytes without the checksum) of a stored entry.
 *
 * @throws CellarstreamError `STATE_DAMAGED` when one of them is wrong.
 */
export function expectLength(key: string, packed: Buffer, least: number): void {
  const isWhole = packed.length >= least + CHECKSUM_BYTES && crc32(packed, crc32(key)) === RESIDUE;
  if (!isWhole) throw damagedError('the checksum of an entry does not match');
}
