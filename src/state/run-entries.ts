// Runs (adjacent records of a page, recognized as a unit by their bytes), and their binary formats in the image store.

import { createCipheriv } from 'node:crypto';
import {
  CHECKSUM_BYTES,
  allocateEntry,
  expectLength,
  timeAt,
  type Sighting,
  withChecksum,
} from './entries.ts';

/**
 * Adjacent records of a page that all equal their stored images. A later read recognizes their bytes as a unit, and marks all of them as
 * seen.
 */
export interface Run {
  /** Id of the run of records: the first eight bytes of its digest, as `latin1`. */
  readonly id: string;
  /**
   * Digest of the bytes of the run (adjacent records of a page that are recognized together): 16 bytes, as `latin1`; see
   * {@link runDigests}.
   */
  readonly digest: string;
  /** Length of the run (adjacent records of a page), from the first byte of its first record to the last byte of its last one, in bytes. */
  readonly length: number;
  readonly members: readonly RunMember[];
}

export interface RunMember {
  readonly key: string;
  /** Offset of the record's first byte from the first byte of the run, in bytes. `end` is the offset after the record's last byte. */
  readonly at: number;
  readonly end: number;
  /** The record's modification time in ms since the epoch; null when it has none. */
  readonly updatedAt: number | null;
}

/**
 * Entry of the image store for a run (adjacent records that are recognized as a unit): in which sweeps the run was last seen and last read.
 * The entry applies to each of the run's records.
 */
export interface RunHead extends Sighting {
  /** Number of keys whose marks (which say when the key was last seen) refer to this run of adjacent records. */
  readonly refCount: number;
  /**
   * Whether the run can be recognized. False once one of its records has changed or was deleted, or a sweep has read one of its records
   * without the others.
   */
  readonly isLive: boolean;
}

/** Length in bytes of a run's id, which is the beginning of its digest. The full digest distinguishes two runs with the same id. */
const ID_BYTES = 8;
const DIGEST_BYTES = 16;
const HEAD = { seen: 0, read: 4, refCount: 8, isLive: 12, end: 13 } as const;
const BODY = { digest: 0, length: DIGEST_BYTES, members: DIGEST_BYTES + 4 } as const;
/**
 * Byte offsets of the fields in the stored entry of one record of a run. `at` and `end` contain the record's begin and end in the run's
 * bytes.
 */
const MEMBER = { at: 0, end: 4, updatedAt: 8, keyBytes: 16, key: 18 } as const;
/** Longest key of a record in a run (adjacent records), in bytes; 16 bits store its length. */
export const MAX_KEY_BYTES = 0xffff;

export function runId(digest: string): string {
  return digest.slice(0, ID_BYTES);
}

export function packRunHead(
  id: string,
  { lastSeenSweep, lastReadSweep, refCount, isLive }: RunHead,
): Buffer {
  const packed = allocateEntry(HEAD.end);
  packed.writeUInt32BE(lastSeenSweep, HEAD.seen);
  packed.writeUInt32BE(lastReadSweep, HEAD.read);
  packed.writeUInt32BE(refCount, HEAD.refCount);
  packed.writeUInt8(Number(isLive), HEAD.isLive);
  return withChecksum(id, packed);
}

export function unpackRunHead(id: string, packed: Buffer): RunHead {
  expectLength(id, packed, HEAD.end);
  return {
    lastSeenSweep: packed.readUInt32BE(HEAD.seen),
    lastReadSweep: packed.readUInt32BE(HEAD.read),
    refCount: packed.readUInt32BE(HEAD.refCount),
    isLive: packed.readUInt8(HEAD.isLive) === 1,
  };
}

export function packRun(id: string, { digest, length, members }: Run): Buffer {
  const keys = members.map(({ key }) => Buffer.from(key));
  const bytes = keys.reduce((sum, key) => sum + MEMBER.key + key.length, BODY.members);
  const packed = allocateEntry(bytes);
  packed.write(digest, BODY.digest, 'latin1');
  packed.writeUInt32BE(length, BODY.length);
  let place: number = BODY.members;
  for (const [nth, { at, end, updatedAt }] of members.entries()) {
    const key = keys[nth]!;
    packed.writeUInt32BE(at, place + MEMBER.at);
    packed.writeUInt32BE(end, place + MEMBER.end);
    packed.writeDoubleBE(updatedAt ?? NaN, place + MEMBER.updatedAt);
    packed.writeUInt16BE(key.length, place + MEMBER.keyBytes);
    key.copy(packed, place + MEMBER.key);
    place += MEMBER.key + key.length;
  }
  return withChecksum(id, packed);
}

/**
 * A run (adjacent records of a page) in its stored form. Its records are decoded only on request, because recognizing a run needs only its
 * digest and its length.
 */
export class StoredRun implements Run {
  readonly id: string;
  readonly digest: string;
  readonly length: number;
  readonly size: number;
  readonly #packed: Buffer;

  /** @throws CellarstreamError `STATE_DAMAGED` when the entry is too short, or its checksum does not match the id and the content. */
  constructor(id: string, packed: Buffer) {
    expectLength(id, packed, BODY.members);
    this.id = id;
    this.digest = packed.toString('latin1', BODY.digest, BODY.length);
    this.length = packed.readUInt32BE(BODY.length);
    this.#packed = packed;
    let size = 0;
    this.#each(() => (size += 1));
    this.size = size;
  }

  get members(): readonly RunMember[] {
    const members: RunMember[] = [];
    this.#each((place) => members.push(this.#memberAt(place)));
    return members;
  }

  member(nth: number): RunMember {
    let place: number = BODY.members;
    for (let before = 0; before < nth; before += 1) place = this.#behind(place);
    return this.#memberAt(place);
  }

  /** Calls `tell` for each record. The record's key is in `bytes`, in UTF-8, from index `from` (included) to `to` (excluded). */
  eachKey(tell: (bytes: Buffer, from: number, to: number) => void): void {
    this.#each((place, next) => tell(this.#packed, place + MEMBER.key, next));
  }

  /** Calls `tell` with each record's modification time in epoch ms, or with null if the record has none. */
  eachUpdatedAt(tell: (updatedAt: number | null) => void): void {
    this.#each((place) => tell(this.#updatedAt(place)));
  }

  #each(tell: (place: number, next: number) => void): void {
    const behind = this.#packed.length - CHECKSUM_BYTES;
    for (let place: number = BODY.members; place < behind;) {
      const next = this.#behind(place);
      tell(place, next);
      place = next;
    }
  }

  /**
   * Returns the byte offset within `#packed` at which the entry of the next record begins. `place` is the offset of the current record's
   * entry.
   */
  #behind(place: number): number {
    return place + MEMBER.key + this.#packed.readUInt16BE(place + MEMBER.keyBytes);
  }

  #memberAt(place: number): RunMember {
    return {
      key: this.#packed.toString('utf8', place + MEMBER.key, this.#behind(place)),
      at: this.#packed.readUInt32BE(place + MEMBER.at),
      end: this.#packed.readUInt32BE(place + MEMBER.end),
      updatedAt: this.#updatedAt(place),
    };
  }

  #updatedAt(place: number): number | null {
    return timeAt(this.#packed, place + MEMBER.updatedAt);
  }
}

/**
 * Returns a function that computes the digest by which a run (adjacent records of a page) is recognized: GMAC keyed with the image store's
 * secret, 16 bytes, as `latin1`. An attacker who knows digests could construct two texts with the same digest, so digests never leave the
 * state folder.
 */
export function runDigests(secret: Buffer): (bytes: Buffer) => string {
  return (bytes) => {
    // For 200 KB, GMAC takes a seventh of the time of SHA-256. Without the secret, two such texts have the same digest with a chance
    // of 2^-114.
    const mac = createCipheriv('aes-128-gcm', secret, NONCE);
    mac.setAAD(bytes);
    mac.final();
    return mac.getAuthTag().toString('latin1');
  };
}

/** Nonce of GMAC. A constant nonce is safe only because digests are never disclosed. */
const NONCE = Buffer.alloc(12);
