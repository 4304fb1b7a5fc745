// One element of a page, and what is known about it. Runs of such elements.

import { createHash, hash } from 'node:crypto';
import { jsonText } from '../../schemas/json/json-bytes.ts';
import { parseJson, stringifyJson } from '../../schemas/json/json.ts';
import type { JsonObject, JsonValue } from '../../schemas/json/json.ts';
import type { Body } from '../http/body.ts';
import type { KeyIndex } from './key-index.ts';
import type { Stamps } from './stamps.ts';

/** Digest and length of a record's bytes. A record that is received again unchanged is recognized by them. */
export interface PayloadDigest {
  /** SHA-256 of the record's bytes, truncated to 16 bytes, as a `latin1` string. */
  readonly digest: string;
  readonly length: number;
  /** The record's modification time in epoch ms; null if it has none. */
  readonly updatedAt: number | null;
}

/**
 * A run: adjacent records of earlier pages that are recognized together by a digest of their bytes. The published image of each was made
 * from these bytes.
 */
export interface KnownRun {
  /** Identifier, in the image store, of this run (adjacent records that are recognized by one digest). */
  readonly id: string;
  /** Digest of the bytes of the run's records: 16 bytes, as a `latin1` string. */
  readonly digest: string;
  readonly length: number;
  readonly size: number;
  /** The records of the run, created anew on each access. */
  readonly members: readonly KnownMember[];
  /** Returns the nth record of the run, counted from 0. */
  readonly member: (nth: number) => KnownMember;
  /** Calls `tell` with the key of each record of the run: UTF-8 text in `bytes`, from index `from` up to, not including, `to`. */
  readonly eachKey: (tell: (bytes: Uint8Array, from: number, to: number) => void) => void;
  /** Calls `tell` with the modification time of each record of the run, in epoch ms; null for a record without one. */
  readonly eachUpdatedAt: (tell: (updatedAt: number | null) => void) => void;
}

/** A record of a {@link KnownRun} (adjacent records that are recognized together by a digest of their bytes). */
export interface KnownMember {
  readonly key: string;
  /** Index of the record's first byte, within the bytes of the run of records that contains it. */
  readonly at: number;
  /** Index of the byte after the record's last byte, within the bytes of the run of records that contains it. */
  readonly end: number;
  /** The record's modification time in epoch ms; null if it has none. */
  readonly updatedAt: number | null;
}

/** The image (encoded content) of a received record, before it is compared with the published image. */
export type RecordImage =
  /** The image equals the published one, because the record has the bytes from which the published image was made. */
  | { readonly kind: 'published' }
  /** The record's image, encoded with `codec`. A later codec, whose schema has more fields, may encode the record to other bytes. */
  | { readonly kind: 'encoded'; readonly bytes: Buffer; readonly codec: ImageCodec };

export const PUBLISHED: RecordImage = { kind: 'published' };

/** Facts about a record that are known without parsing its JSON. */
export interface RecordFacts {
  readonly key?: string | undefined;
  readonly image?: RecordImage | undefined;
  readonly digest?: PayloadDigest | undefined;
  /** The record's modification time in epoch ms; null if it has none. Undefined if it is unknown without parsing the record. */
  readonly updatedAt?: number | null | undefined;
  /** The record's creation time in epoch ms; null if it has none. Undefined if it is unknown without parsing the record. */
  readonly createdAt?: number | null | undefined;
  /**
   * Reads the modification or creation time from the parsed record if `updatedAt` or `createdAt` is undefined. Without `stamps`, an
   * undefined time counts as null.
   */
  readonly stamps?: Stamps | undefined;
}

/** The bytes of a record in a response body: from index `at` up to, not including, `end`. */
export interface RecordBytes {
  readonly page: Body;
  readonly at: number;
  readonly end: number;
}

/**
 * Data that a {@link PageRecord} stores itself. For a record of a run (adjacent records that are recognized together), these are only data
 * that were computed later, such as the parsed JSON.
 */
interface OwnFacts extends RecordFacts {
  json?: JsonValue | undefined;
  digest?: PayloadDigest | undefined;
  updatedAt?: number | null | undefined;
  createdAt?: number | null | undefined;
  readonly bytes?: RecordBytes | undefined;
  readonly unreadableAt?: number | undefined;
}

/**
 * One element of a page, from the decoding of the response until its Kafka transaction is committed.
 *
 * A record refers to the bytes in which it was received, and is parsed only on access to `json`: parsed records that live as long as their
 * page make garbage collection expensive.
 */
export class PageRecord {
  readonly #run: PageRun | undefined;
  readonly #member: KnownMember | undefined;
  #own: OwnFacts | undefined;

  private constructor(own: OwnFacts | undefined, run?: PageRun, member?: KnownMember) {
    this.#own = own;
    this.#run = run;
    this.#member = member;
  }

  /** Creates a record from its bytes. It is parsed on access to `json`. */
  static inBytes(bytes: RecordBytes, facts: RecordFacts): PageRecord {
    const { key, image, digest, updatedAt, createdAt, stamps } = facts;
    const json = undefined;
    return new PageRecord({ key, image, digest, updatedAt, createdAt, stamps, bytes, json });
  }

  /** Creates the record object for `member`, a record of the run (adjacent records that are recognized together) at `place`. */
  static ofRun(place: PageRun, member: KnownMember): PageRecord {
    return new PageRecord(undefined, place, member);
  }

  static ofJson(json: JsonValue, facts: RecordFacts = {}): PageRecord {
    return new PageRecord({ ...facts, json });
  }

  /** Creates the record for an element that is not JSON. `offset` is its list offset. */
  static unreadable(text: string, offset: number): PageRecord {
    return new PageRecord({ json: text, unreadableAt: offset });
  }

  /** The record's key; undefined if the record has no valid key and therefore cannot be published. */
  get key(): string | undefined {
    return this.#member ? this.#member.key : this.#own?.key;
  }

  get image(): RecordImage | undefined {
    return this.#member ? PUBLISHED : this.#own?.image;
  }

  /** The run (adjacent records recognized together by their bytes) that contains the record; undefined if the record is in no run. */
  get run(): KnownRun | undefined {
    return this.#run?.run;
  }

  /** List offset of the record if its element of the response is not JSON; undefined if the element is JSON. */
  get unreadableAt(): number | undefined {
    return this.#own?.unreadableAt;
  }

  /** The bytes in which the record was received; undefined for a record made from parsed JSON, and for an element that is not JSON. */
  get bytes(): RecordBytes | undefined {
    if (!this.#run || !this.#member) return this.#own?.bytes;
    const { page, from } = this.#run;
    return { page, at: from + this.#member.at, end: from + this.#member.end };
  }

  /** The parsed JSON, or the text of an element that is not JSON. */
  get json(): JsonValue {
    const own = this.#facts();
    if (own.json === undefined) {
      const { page, at, end } = this.bytes!;
      own.json = parseJson(jsonText(page.bytes.subarray(at, end)));
    }
    return own.json;
  }

  /**
   * Digest of the record's bytes. Undefined for a record outside a run, unless the decoder or {@link PageRecord.withDigest} has computed
   * the digest.
   */
  get digest(): PayloadDigest | undefined {
    if (!this.#member) return this.#own?.digest;
    const own = this.#facts();
    own.digest ??= digestOf(this.bytes!, this.updatedAt);
    return own.digest;
  }

  /**
   * Returns the digest of the record's bytes as a `latin1` string, and computes it if it is not known. Undefined for a record without
   * bytes.
   */
  sentAs(): string | undefined {
    const { digest, bytes } = this;
    return (
      digest?.digest ?? (bytes && payloadDigest(bytes.page.bytes.subarray(bytes.at, bytes.end)))
    );
  }

  /**
   * Reads the record's modification and creation time from its JSON if they are not known yet. If undefined, unknown times count as null.
   */
  get stamps(): Stamps | undefined {
    return this.#run ? this.#run.stamps : this.#own?.stamps;
  }

  /** The record's modification time in epoch ms; null if it has none. */
  get updatedAt(): number | null {
    if (this.#member) return this.#member.updatedAt;
    const own = this.#facts();
    if (own.updatedAt === undefined) own.updatedAt = this.stamps?.updatedAt(this.json) ?? null;
    return own.updatedAt;
  }

  /** The record's creation time in epoch ms; null if it has none. */
  get createdAt(): number | null {
    const own = this.#facts();
    if (own.createdAt === undefined) own.createdAt = this.stamps?.createdAt(this.json) ?? null;
    return own.createdAt;
  }

  /**
   * Returns a copy of the record with `image` as its encoded content. The copy is not part of a run (adjacent records that are recognized
   * together).
   */
  withImage(image: RecordImage | undefined): this {
    const { bytes, key, digest, stamps } = this;
    const { json, createdAt } = this.#facts();
    const updatedAt = this.#member ? this.#member.updatedAt : this.#own?.updatedAt;
    const facts = { key, image, digest, updatedAt, createdAt, stamps, bytes, json };
    return new PageRecord(facts) as this;
  }

  /**
   * Returns a copy of the record with the given bytes and their digest. The copy is not part of a run (adjacent records recognized
   * together).
   */
  withDigest(bytes: RecordBytes): PageRecord {
    const { updatedAt, stamps } = this;
    const digest = digestOf(bytes, updatedAt);
    const { key, image, createdAt, json } = this.#facts();
    return new PageRecord({ key, image, digest, updatedAt, createdAt, stamps, bytes, json });
  }

  /**
   * Returns a copy whose personal fields are hidden by `hide`. The copy has no bytes, digest or image. The text of an element that is not
   * JSON is replaced by its digest and length.
   */
  hidden(hide: (json: JsonValue) => JsonValue): PageRecord {
    const { key, stamps } = this;
    if (this.unreadableAt === undefined) return PageRecord.ofJson(hide(this.json), { key, stamps });
    const text = this.json as string;
    const sha256 = createHash('sha256').update(text).digest('hex');
    const length = Buffer.byteLength(text);
    return PageRecord.unreadable(stringifyJson({ sha256, length }), this.unreadableAt);
  }

  #facts(): OwnFacts {
    return (this.#own ??= {});
  }
}

/** A run on a page: adjacent records recognized together by a digest of their bytes. Record objects are created only on request. */
export class PageRun {
  readonly run: KnownRun;
  readonly page: Body;
  /** Index in the response body `page` of the first byte of the run's first record. */
  readonly from: number;
  /** Reads the records' creation times from their JSON. If undefined, the records of the run have no creation time (null). */
  readonly stamps: Stamps | undefined;

  constructor(run: KnownRun, page: Body, from: number, stamps?: Stamps) {
    this.run = run;
    this.page = page;
    this.from = from;
    this.stamps = stamps;
  }

  get size(): number {
    return this.run.size;
  }

  /** Creates the object for the nth record of this run of records, from 0. */
  record(nth: number): PageRecord {
    return PageRecord.ofRun(this, this.run.member(nth));
  }

  /** Creates the objects of all records of the run, in order. */
  records(): readonly PageRecord[] {
    return this.run.members.map((member) => PageRecord.ofRun(this, member));
  }

  /** Adds the keys of all records of this run (adjacent records that were recognized together) to `index`, in page order. */
  addKeysTo(index: KeyIndex): void {
    this.run.eachKey((bytes, from, to) => index.addBytes(bytes, from, to));
  }
}

export interface KeyedRecord extends PageRecord {
  readonly key: string;
  readonly json: JsonObject;
}

/** Returns the SHA-256 of bytes, truncated to 16 bytes, as a `latin1` string. */
export function payloadDigest(bytes: Buffer): string {
  return hash('sha256', bytes, 'binary').slice(0, 16);
}

function digestOf({ page, at, end }: RecordBytes, updatedAt: number | null): PayloadDigest {
  return { digest: payloadDigest(page.bytes.subarray(at, end)), length: end - at, updatedAt };
}

/** Encodes records into images: the bytes that are stored. Two records are compared by their images. */
export interface ImageCodec {
  /** Encodes a record into its image. Records that are equal except for the order of their fields have equal images. */
  encode(record: JsonObject): Buffer;
  /** Decodes an image, and returns the record that it was encoded from. */
  decode(bytes: Buffer): JsonObject;
}
