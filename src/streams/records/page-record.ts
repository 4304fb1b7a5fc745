// One element of a page, and what is known about it.

import { createHash, hash } from 'node:crypto';
import { instantOf } from '../../schemas/avro/instant.ts';
import { jsonText } from '../../schemas/json/json-bytes.ts';
import { isJsonObject, parseJson, stringifyJson } from '../../schemas/json/json.ts';
import type { JsonObject, JsonValue } from '../../schemas/json/json.ts';
import type { Body } from '../http/body.ts';

/** Digest and length of a record's bytes, by which it is recognized when it is received unchanged. */
export interface PayloadDigest {
  /** SHA-256 of the record's bytes, truncated to 16 bytes, as a `latin1` string. */
  readonly digest: string;
  readonly length: number;
  /** The record's `updated_at` in ms since the epoch; null when it has none. */
  readonly updatedAt: number | null;
}

/** A run: adjacent records whose bytes are known as a unit, from which their published images were all made. */
export interface KnownRun {
  /** Identifier in the image store. */
  readonly id: string;
  /** Digest of the run's bytes: 16 bytes, as a `latin1` string. */
  readonly digest: string;
  readonly length: number;
  readonly size: number;
  /** The records of the run; created on each access. */
  readonly members: readonly KnownMember[];
  /** Returns the nth record of the run, from 0. */
  readonly member: (nth: number) => KnownMember;
  /** Calls `tell` with each key in UTF-8: the bytes from `from` up to, not including, `to`. */
  readonly eachKey: (tell: (bytes: Uint8Array, from: number, to: number) => void) => void;
  /** Calls `tell` with each `updated_at` in epoch ms. */
  readonly eachUpdatedAt: (tell: (updatedAt: number | null) => void) => void;
}

/** A record of a run. */
export interface KnownMember {
  readonly key: string;
  /** Index of the first byte in the run. */
  readonly at: number;
  /** Index of the byte after the last one in the run. */
  readonly end: number;
  /** `updated_at` in epoch ms; null if the record has none. */
  readonly updatedAt: number | null;
}

/** Image of a record before its comparison, as far as it is known. */
export type RecordImage =
  /** The record's bytes equal those from which its published image was made. */
  | { readonly kind: 'published' }
  /** The image, encoded with `codec`; a later codec, whose schema has more fields, may produce other bytes. */
  | { readonly kind: 'encoded'; readonly bytes: Buffer; readonly codec: ImageCodec };

export const PUBLISHED: RecordImage = { kind: 'published' };

/** Facts about a record that are known without parsing it. */
export interface RecordFacts {
  readonly key?: string | undefined;
  readonly image?: RecordImage | undefined;
  readonly digest?: PayloadDigest | undefined;
  /** In epoch ms, null if the record has none. If undefined, the record is parsed. */
  readonly updatedAt?: number | null | undefined;
  /** In epoch ms, null if the record has none. If undefined, the record is parsed. */
  readonly createdAt?: number | null | undefined;
}

/** A record's bytes in a body: from `at` up to, not including, `end`. */
export interface RecordBytes {
  readonly page: Body;
  readonly at: number;
  readonly end: number;
}

/** Facts about one record; those computed later are cached. */
interface OwnFacts extends RecordFacts {
  json?: JsonValue | undefined;
  digest?: PayloadDigest | undefined;
  updatedAt?: number | null | undefined;
  createdAt?: number | null | undefined;
  readonly bytes?: RecordBytes | undefined;
  readonly unreadableAt?: number | undefined;
}

/** A run in a body, from the index `from` on. */
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

  /** Creates a record that is parsed on access. */
  static inBytes(bytes: RecordBytes, facts: RecordFacts): PageRecord {
    const { key, image, digest, updatedAt, createdAt } = facts;
    return new PageRecord({ key, image, digest, updatedAt, createdAt, bytes, json: undefined });
  }

  /** Creates a record of a run. */
  static ofRun(place: RunBytes, member: KnownMember): PageRecord {
    return new PageRecord(undefined, place, member);
  }

  static ofJson(json: JsonValue, facts: RecordFacts = {}): PageRecord {
    return new PageRecord({ ...facts, json });
  }

  /** Creates the record of an element that is not JSON. */
  static unreadable(text: string, offset: number): PageRecord {
    return new PageRecord({ json: text, unreadableAt: offset });
  }

  /** The record's key; undefined if it has none and so cannot be published. */
  get key(): string | undefined {
    return this.#member ? this.#member.key : this.#own?.key;
  }

  get image(): RecordImage | undefined {
    return this.#member ? PUBLISHED : this.#own?.image;
  }

  /** The run as part of which the record was recognized. */
  get run(): KnownRun | undefined {
    return this.#run?.run;
  }

  /** List offset of an element that is not JSON; undefined if the element is JSON. */
  get unreadableAt(): number | undefined {
    return this.#own?.unreadableAt;
  }

  /** The record's bytes; undefined for a record made from parsed JSON. */
  get bytes(): RecordBytes | undefined {
    if (!this.#run || !this.#member) return this.#own?.bytes;
    const { page, from } = this.#run;
    return { page, at: from + this.#member.at, end: from + this.#member.end };
  }

  /** Parsed JSON; for an element that is not JSON, its text. */
  get json(): JsonValue {
    const own = this.#facts();
    if (own.json === undefined) {
      const { page, at, end } = this.bytes!;
      own.json = parseJson(jsonText(page.bytes.subarray(at, end)));
    }
    return own.json;
  }

  /** Digest of the record's bytes, if known; computed on access for a record of a run. */
  get digest(): PayloadDigest | undefined {
    if (!this.#member) return this.#own?.digest;
    const own = this.#facts();
    own.digest ??= digestOf(this.bytes!, this.updatedAt);
    return own.digest;
  }

  /** Returns the digest as a `latin1` string, computed on each call if it is not known. */
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

  /** Returns a copy that belongs to no run, with the given image. */
  withImage(image: RecordImage | undefined): this {
    const { bytes, key, digest } = this;
    const { json, createdAt } = this.#facts();
    const updatedAt = this.#member ? this.#member.updatedAt : this.#own?.updatedAt;
    return new PageRecord({ key, image, digest, updatedAt, createdAt, bytes, json }) as this;
  }

  /** Returns a copy that belongs to no run, with these bytes and their digest. */
  withDigest(bytes: RecordBytes): PageRecord {
    const { updatedAt } = this;
    const digest = digestOf(bytes, updatedAt);
    const { key, image, createdAt, json } = this.#facts();
    return new PageRecord({ key, image, digest, updatedAt, createdAt, bytes, json });
  }

  /** Hides personal fields. The text of an element that is not JSON is replaced by its digest and length. */
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

/** Encodes records into images, by which they are compared. */
export interface ImageCodec {
  /** Records that are equal except for the order of their fields give equal bytes. */
  encode(record: JsonObject): Buffer;
  /** Decodes the record from its image. */
  decode(bytes: Buffer): JsonObject;
}
