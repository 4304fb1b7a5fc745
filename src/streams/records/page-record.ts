// One element of a page, and the types of what is known about it: bytes, digest, image, run.

import { createHash, hash } from 'node:crypto';
import { instantOf } from '../../schemas/avro/instant.ts';
import { jsonText } from '../../schemas/json/json-bytes.ts';
import { isJsonObject, parseJson, stringifyJson } from '../../schemas/json/json.ts';
import type { JsonObject, JsonValue } from '../../schemas/json/json.ts';
import type { Body } from '../http/body.ts';

/** Digest and length of the bytes in which a record was received; stored to recognize the record when it is received unchanged. */
export interface PayloadDigest {
  /** SHA-256 of the record's bytes, truncated to 16 bytes, as a `latin1` string. */
  readonly digest: string;
  /** Number of bytes of the record. */
  readonly length: number;
  /** The record's `updated_at` in ms since the epoch; null when it has none. */
  readonly updatedAt: number | null;
}

/** A run: adjacent records whose bytes are known as a unit, and whose published images were all made from these bytes. */
export interface KnownRun {
  /** Identifier of the run of adjacent records in the image store. */
  readonly id: string;
  /** Digest of the bytes of the run of adjacent records: 16 bytes, as a `latin1` string. */
  readonly digest: string;
  /** Number of bytes of the run of adjacent records. */
  readonly length: number;
  /** Number of adjacent records in the run. */
  readonly size: number;
  /** The records of the run; created on each access. */
  readonly members: readonly KnownMember[];
  /** Returns the nth record of the run, from 0. */
  readonly member: (nth: number) => KnownMember;
  /** Calls `tell` with the key of each record of the run, as UTF-8: the bytes from `from` up to, not including, `to`. */
  readonly eachKey: (tell: (bytes: Uint8Array, from: number, to: number) => void) => void;
  /** Calls `tell` with the `updated_at` of each record of the run, in epoch ms; null for a record without one. */
  readonly eachUpdatedAt: (tell: (updatedAt: number | null) => void) => void;
}

/** A record of a run (adjacent records known as a unit by their bytes). */
export interface KnownMember {
  readonly key: string;
  /** Index of the record's first byte, counted from the start of the run. */
  readonly at: number;
  /** Index of the byte after the record's last one, counted from the start of the run. */
  readonly end: number;
  /** `updated_at` in epoch ms; null if the record has none. */
  readonly updatedAt: number | null;
}

/** Knowledge about the image (stored encoding) of a record that was read, before it is compared with the published image. */
export type RecordImage =
  /** The record is unchanged: its bytes equal those from which its published image was made. */
  | { readonly kind: 'published' }
  /** The image of the record was encoded with `codec`; a later codec, whose schema has more fields, may produce other bytes. */
  | { readonly kind: 'encoded'; readonly bytes: Buffer; readonly codec: ImageCodec };

/** {@link RecordImage} of an unchanged record: its bytes equal those from which its published image was made. */
export const PUBLISHED: RecordImage = { kind: 'published' };

/** Facts about a record that are known without parsing it. */
export interface RecordFacts {
  readonly key?: string | undefined;
  readonly image?: RecordImage | undefined;
  readonly digest?: PayloadDigest | undefined;
  /** The record's `updated_at` in epoch ms, null if it has none. If undefined, the record is parsed to determine it. */
  readonly updatedAt?: number | null | undefined;
  /** The record's `created_at` in epoch ms, null if it has none. If undefined, the record is parsed to determine it. */
  readonly createdAt?: number | null | undefined;
}

/** The bytes of a record in the body of a response: from `at` up to, not including, `end`. */
export interface RecordBytes {
  readonly page: Body;
  readonly at: number;
  readonly end: number;
}

/** Facts about one record of a page; those computed later are cached in it. */
interface OwnFacts extends RecordFacts {
  json?: JsonValue | undefined;
  digest?: PayloadDigest | undefined;
  updatedAt?: number | null | undefined;
  createdAt?: number | null | undefined;
  readonly bytes?: RecordBytes | undefined;
  readonly unreadableAt?: number | undefined;
}

/** Position of a recognized run of adjacent records in the body of a response: its first byte has the index `from`. */
interface RunBytes {
  readonly run: KnownRun;
  readonly page: Body;
  readonly from: number;
}

/**
 * One element of a page, in use from the decoding of the response to the Kafka transaction.
 *
 * It refers to the bytes in which it was received, and is parsed on access to `json`: parsed records that live as long as their page cost
 * the garbage collector about as much as parsing them.
 */
export class PageRecord {
  readonly #run: RunBytes | undefined;
  readonly #member: KnownMember | undefined;
  #own: OwnFacts | undefined;

  private constructor(own: OwnFacts | undefined, run?: RunBytes, member?: KnownMember) {
    this.#own = own;
    this.#run = run;
    this.#member = member;
  }

  /** Creates a record from its bytes in the body of a response, which are parsed on access. */
  static inBytes(bytes: RecordBytes, facts: RecordFacts): PageRecord {
    const { key, image, digest, updatedAt, createdAt } = facts;
    return new PageRecord({ key, image, digest, updatedAt, createdAt, bytes, json: undefined });
  }

  /** Creates a record that belongs to a run (adjacent records recognized as a unit) of a page. */
  static ofRun(place: RunBytes, member: KnownMember): PageRecord {
    return new PageRecord(undefined, place, member);
  }

  /** Creates a record from parsed JSON. */
  static ofJson(json: JsonValue, facts: RecordFacts = {}): PageRecord {
    return new PageRecord({ ...facts, json });
  }

  /** Creates the record of an element that is not JSON, from its text and its list offset. */
  static unreadable(text: string, offset: number): PageRecord {
    return new PageRecord({ json: text, unreadableAt: offset });
  }

  /** The record's key; undefined if it has none and so cannot be published. */
  get key(): string | undefined {
    return this.#member ? this.#member.key : this.#own?.key;
  }

  /** Knowledge about the record's image (its stored encoding); undefined if there is none. */
  get image(): RecordImage | undefined {
    return this.#member ? PUBLISHED : this.#own?.image;
  }

  /** The run (unit of adjacent records) as part of which the record was recognized; undefined for a single record. */
  get run(): KnownRun | undefined {
    return this.#run?.run;
  }

  /** List offset of an element that is not JSON; undefined if the element is JSON. */
  get unreadableAt(): number | undefined {
    return this.#own?.unreadableAt;
  }

  /** The record's bytes in the body of its response; undefined for a record made from parsed JSON. */
  get bytes(): RecordBytes | undefined {
    if (!this.#run || !this.#member) return this.#own?.bytes;
    const { page, from } = this.#run;
    return { page, at: from + this.#member.at, end: from + this.#member.end };
  }

  /** The record as parsed JSON; for an element that is not JSON, its text. */
  get json(): JsonValue {
    const own = this.#facts();
    if (own.json === undefined) {
      const { page, at, end } = this.bytes!;
      own.json = parseJson(jsonText(page.bytes.subarray(at, end)));
    }
    return own.json;
  }

  /**
   * Digest of the record's bytes, if it is known. For a record of a run (recognized together with adjacent ones) it is computed on access.
   */
  get digest(): PayloadDigest | undefined {
    if (!this.#member) return this.#own?.digest;
    const own = this.#facts();
    own.digest ??= digestOf(this.bytes!, this.updatedAt);
    return own.digest;
  }

  /** Returns the digest of the record's bytes as a `latin1` string; computes it on each call if {@link PageRecord.digest} is not known. */
  sentAs(): string | undefined {
    const { digest, bytes } = this;
    return (
      digest?.digest ?? (bytes && payloadDigest(bytes.page.bytes.subarray(bytes.at, bytes.end)))
    );
  }

  /** The record's `updated_at` in epoch ms; null if it has none. */
  get updatedAt(): number | null {
    if (this.#member) return this.#member.updatedAt;
    const own = this.#facts();
    if (own.updatedAt === undefined) own.updatedAt = instantIn(this.json, 'updated_at');
    return own.updatedAt;
  }

  /** The record's `created_at` in epoch ms; null if it has none. */
  get createdAt(): number | null {
    const own = this.#facts();
    if (own.createdAt === undefined) own.createdAt = instantIn(this.json, 'created_at');
    return own.createdAt;
  }

  /** Returns a copy of the record that belongs to no run, with the given image or without one. */
  withImage(image: RecordImage | undefined): this {
    const { bytes, key, digest } = this;
    const { json, createdAt } = this.#facts();
    const updatedAt = this.#member ? this.#member.updatedAt : this.#own?.updatedAt;
    return new PageRecord({ key, image, digest, updatedAt, createdAt, bytes, json }) as this;
  }

  /** Returns a copy of the record that belongs to no run, with these bytes and their digest. */
  withDigest(bytes: RecordBytes): PageRecord {
    const { updatedAt } = this;
    const digest = digestOf(bytes, updatedAt);
    const { key, image, createdAt, json } = this.#facts();
    return new PageRecord({ key, image, digest, updatedAt, createdAt, bytes, json });
  }

  /**
   * Returns the record with its personal fields hidden. For an element that is not JSON, the whole text is replaced by its digest and
   * length.
   */
  hidden(hide: (json: JsonValue) => JsonValue): PageRecord {
    if (this.unreadableAt === undefined)
      return PageRecord.ofJson(hide(this.json), { key: this.key });
    const text = this.json as string;
    const sha256 = createHash('sha256').update(text).digest('hex');
    const length = Buffer.byteLength(text);
    return PageRecord.unreadable(stringifyJson({ sha256, length }), this.unreadableAt);
  }

  #facts(): OwnFacts {
    return (this.#own ??= {});
  }
}

/** A record with a key, which can be published. */
export interface KeyedRecord extends PageRecord {
  readonly key: string;
  readonly json: JsonObject;
}

/** Returns the SHA-256 of some bytes, truncated to 16 bytes, as a `latin1` string. */
export function payloadDigest(bytes: Buffer): string {
  return hash('sha256', bytes, 'binary').slice(0, 16);
}

function digestOf({ page, at, end }: RecordBytes, updatedAt: number | null): PayloadDigest {
  return { digest: payloadDigest(page.bytes.subarray(at, end)), length: end - at, updatedAt };
}

function instantIn(json: JsonValue, field: string): number | null {
  return isJsonObject(json) ? instantOf(json, field) : null;
}

/** Encodes records into images, the bytes by which records are compared, and decodes them. */
export interface ImageCodec {
  /** Encodes a record; records that are equal except for the order of their fields give equal bytes. */
  encode(record: JsonObject): Buffer;
  /** Decodes the record from its image. */
  decode(bytes: Buffer): JsonObject;
}
