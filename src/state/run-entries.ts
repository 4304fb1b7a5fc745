import { CHECKSUM_BYTES, damaged, entry, expectWhole, sealed } from './entries.ts';

/**
 * Records that stood next to each other in a page, each as its image says, in bytes that are known again at one go, and
 * marked at one go.
 */
export interface Run {
  /** The first bytes of its digest. */
  readonly id: string;
  /** Of all its bytes, from the first record's first to the last one's last: 16 bytes, as `latin1`; see `run-digests.ts`. */
  readonly digest: string;
  /** Bytes. */
  readonly length: number;
  /** In the order of the page. */
  readonly members: readonly RunMember[];
}

/** A record of a run. */
export interface RunMember {
  readonly key: string;
  /** Its first byte and the one behind its last, from the run's first. */
  readonly at: number;
  readonly end: number;
  /** The record's `updated_at` in ms since the epoch; null when it has none. */
  readonly updatedAt: number | null;
}

/** What was seen of a run: all of its members have been, then. */
export interface RunHead {
  /** The newest sweep at the time of the newest sighting. */
  readonly seen: number;
  /** The newest sweep that read it whole. */
  readonly read: number;
  /** Marks that still look here. */
  readonly left: number;
  /** False once one of its members has changed, or was read without the others: it is never seen again. */
  readonly isLive: boolean;
}

/** Bytes of a digest that are a run's id. Two runs with one id are told apart by the rest. */
const ID_BYTES = 8;
const DIGEST_BYTES = 16;
const HEAD = { seen: 0, read: 4, left: 8, isLive: 12, end: 13 } as const;
const BODY = { digest: 0, length: DIGEST_BYTES, members: DIGEST_BYTES + 4 } as const;
/** In front of a member's key. */
const MEMBER = { at: 0, end: 4, updatedAt: 8, keyBytes: 16, key: 18 } as const;
/** A longer one is in no run. */
export const MAX_KEY_BYTES = 0xffff;

/** The id of a run with that digest. */
export function runId(digest: string): string {
  return digest.slice(0, ID_BYTES);
}

export function packRunHead(id: string, { seen, read, left, isLive }: RunHead): Buffer {
  const packed = entry(HEAD.end);
  packed.writeUInt32BE(seen, HEAD.seen);
  packed.writeUInt32BE(read, HEAD.read);
  packed.writeUInt32BE(left, HEAD.left);
  packed.writeUInt8(Number(isLive), HEAD.isLive);
  return sealed(id, packed);
}

/** @throws CellarstreamError `STATE_DAMAGED` when it is not what was stored under this id. */
export function unpackRunHead(id: string, packed: Buffer): RunHead {
  expectWhole(id, packed, HEAD.end);
  return {
    seen: packed.readUInt32BE(HEAD.seen),
    read: packed.readUInt32BE(HEAD.read),
    left: packed.readUInt32BE(HEAD.left),
    isLive: packed.readUInt8(HEAD.isLive) === 1,
  };
}

export function packRun({ id, digest, length, members }: Run): Buffer {
  const keys = members.map(({ key }) => Buffer.from(key));
  const bytes = keys.reduce((sum, key) => sum + MEMBER.key + key.length, BODY.members);
  const packed = entry(bytes);
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
  return sealed(id, packed);
}

/** @throws CellarstreamError `STATE_DAMAGED` when it is not what was stored under this id. */
export function unpackRun(id: string, packed: Buffer | undefined): StoredRun {
  if (!packed) throw damaged('a run is gone');
  expectWhole(id, packed, BODY.members);
  return new StoredRun(id, packed);
}

/** A run as it was stored. Its members stay packed until somebody asks for them: mostly nobody does. */
export class StoredRun implements Run {
  readonly id: string;
  readonly digest: string;
  readonly length: number;
  /** How many members it has. */
  readonly size: number;
  readonly #packed: Buffer;

  constructor(id: string, packed: Buffer) {
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

  /** The nth member, from 0. */
  member(nth: number): RunMember {
    let place: number = BODY.members;
    for (let before = 0; before < nth; before += 1) place = this.#behind(place);
    return this.#memberAt(place);
  }

  /** Where the key of each member stands, in UTF-8. */
  eachKey(tell: (bytes: Buffer, from: number, to: number) => void): void {
    this.#each((place, next) => tell(this.#packed, place + MEMBER.key, next));
  }

  /** The `updated_at` of each member, in ms since the epoch; null where it has none. */
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

  /** Where the member behind that at a place begins. */
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
    const updatedAt = this.#packed.readDoubleBE(place + MEMBER.updatedAt);
    return Number.isNaN(updatedAt) ? null : updatedAt;
  }
}
