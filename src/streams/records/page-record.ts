import { createHash, hash } from 'node:crypto';
import { isJsonObject, parseJson, stringifyJson } from '../../schemas/json/json.ts';
import type { JsonObject, JsonValue } from '../../schemas/json/json.ts';
import type { ImageCodec } from './image-codec.ts';
import { instantOf } from './updated-at.ts';

/** What is kept of the bytes that a record was sent in. */
export interface PayloadDigest {
  /** Their SHA-256, cut to 16 bytes, as `latin1`. */
  readonly digest: string;
  /** How many they are. */
  readonly length: number;
  /** The record's `updated_at` in ms since the epoch; null when it has none. */
  readonly updatedAt: number | null;
}

/** Records that stand next to each other in bytes that were kept, each as its image says. */
export interface KnownRun {
  readonly id: string;
  /** SHA-256 of its bytes, cut to 16 bytes, as `latin1`. */
  readonly digest: string;
  /** How many they are. */
  readonly length: number;
  readonly members: readonly {
    readonly key: string;
    /** Its first byte and the one behind its last, from the run's first. */
    readonly at: number;
    readonly end: number;
    /** In ms since the epoch; null when it has none. */
    readonly updatedAt: number | null;
  }[];
}

/** What is known of a record's image before it is held against the published one. */
export type RecordImage =
  /** The record came in the bytes that the published image was made of, as it was then. */
  | { readonly kind: 'published' }
  /** The image is made already; a schema that has grown since makes other bytes. */
  | { readonly kind: 'encoded'; readonly bytes: Buffer; readonly codec: ImageCodec };

/** What is known of a record beside its bytes. */
export interface RecordFacts {
  readonly key?: string | undefined;
  readonly image?: RecordImage | undefined;
  readonly digest?: PayloadDigest | undefined;
  readonly run?: KnownRun | undefined;
  /** Ms since the epoch, null for none; left out, the record is looked at. */
  readonly updatedAt?: number | null | undefined;
  readonly createdAt?: number | null | undefined;
}

/** Where a record stands in the body of an answer: from its first byte to behind its last one. */
export interface RecordBytes {
  readonly page: Buffer;
  readonly at: number;
  readonly end: number;
}

/**
 * One element of a page, from the body of an answer to the transaction.
 *
 * It is kept as the bytes that it was sent in, and parsed when somebody asks for its JSON: parsed records that live as
 * long as their page cost the garbage collector about as much as parsing them.
 */
export class PageRecord {
  /** What its topic knows it by; undefined for one that can't be published. */
  readonly key: string | undefined;
  readonly image: RecordImage | undefined;
  /** The run that it was known again with. */
  readonly run: KnownRun | undefined;
  /** Of an element that is no JSON: its place in the list; else undefined. */
  readonly unreadableAt: number | undefined;
  /** Where it stands, of one that was sent in an answer. */
  readonly bytes: RecordBytes | undefined;
  #digest: PayloadDigest | undefined;
  #json: JsonValue | undefined;
  #updatedAt: number | null | undefined;
  #createdAt: number | null | undefined;

  private constructor(
    bytes: RecordBytes | undefined,
    json: JsonValue | undefined,
    { key, image, digest, run, updatedAt, createdAt }: RecordFacts,
    unreadableAt?: number,
  ) {
    this.key = key;
    this.image = image;
    this.run = run;
    this.unreadableAt = unreadableAt;
    this.bytes = bytes;
    this.#digest = digest;
    this.#json = json;
    this.#updatedAt = updatedAt;
    this.#createdAt = createdAt;
  }

  /** A record that is parsed when somebody asks for it. */
  static inBytes(bytes: RecordBytes, facts: RecordFacts): PageRecord {
    return new PageRecord(bytes, undefined, facts);
  }

  /** A record as JSON. */
  static ofJson(json: JsonValue, facts: RecordFacts = {}): PageRecord {
    return new PageRecord(undefined, json, facts);
  }

  /** An element that is no JSON: nothing is known of it but its text and its place in the list. */
  static unreadable(text: string, offset: number): PageRecord {
    return new PageRecord(undefined, text, {}, offset);
  }

  /** What was sent; of an element that is no JSON its text. */
  get json(): JsonValue {
    if (this.#json === undefined) {
      const { page, at, end } = this.bytes!;
      this.#json = parseJson(page.toString('utf8', at, end));
    }
    return this.#json;
  }

  /** Of its bytes, where somebody looked; those of a run's members are looked at when somebody asks. */
  get digest(): PayloadDigest | undefined {
    if (this.#digest === undefined && this.run && this.bytes) {
      const { page, at, end } = this.bytes;
      const digest = payloadDigest(page.subarray(at, end));
      this.#digest = { digest, length: end - at, updatedAt: this.updatedAt };
    }
    return this.#digest;
  }

  /** Its `updated_at` in ms since the epoch; null when it has none. */
  get updatedAt(): number | null {
    if (this.#updatedAt === undefined) this.#updatedAt = instantIn(this.json, 'updated_at');
    return this.#updatedAt;
  }

  /** Its `created_at`, likewise. */
  get createdAt(): number | null {
    if (this.#createdAt === undefined) this.#createdAt = instantIn(this.json, 'created_at');
    return this.#createdAt;
  }

  /** The same record by itself, with its image or without one. */
  withImage(image: RecordImage | undefined): this {
    const { key, digest } = this;
    const facts = { key, digest, updatedAt: this.#updatedAt, createdAt: this.#createdAt };
    return new PageRecord(this.bytes, this.#json, { ...facts, image }) as this;
  }

  /** The same record with its bytes, and the digest of them. */
  withDigest(bytes: RecordBytes): PageRecord {
    const { key, image, updatedAt } = this;
    const { page, at, end } = bytes;
    const digest = {
      ...{ digest: payloadDigest(page.subarray(at, end)), length: end - at },
      updatedAt,
    };
    const facts = { key, image, digest, updatedAt, createdAt: this.#createdAt };
    return new PageRecord(bytes, this.#json, facts, this.unreadableAt);
  }

  /** The same record without what is hidden of it. Of an element that is no JSON nobody can say where that is. */
  hidden(hide: (json: JsonValue) => JsonValue): PageRecord {
    if (this.unreadableAt === undefined)
      return PageRecord.ofJson(hide(this.json), { key: this.key });
    const text = this.json as string;
    const sha256 = createHash('sha256').update(text).digest('hex');
    const length = Buffer.byteLength(text);
    return PageRecord.unreadable(stringifyJson({ sha256, length }), this.unreadableAt);
  }
}

/** A record that can be published. */
export interface KeyedRecord extends PageRecord {
  readonly key: string;
  readonly json: JsonObject;
}

/** SHA-256, cut to 16 bytes, as `latin1`. */
export function payloadDigest(bytes: Buffer): string {
  return hash('sha256', bytes, 'binary').slice(0, 16);
}

/** Whether all of a page is JSON. */
export function isReadable(records: readonly PageRecord[]): boolean {
  return records.every(({ unreadableAt }) => unreadableAt === undefined);
}

function instantIn(json: JsonValue, field: string): number | null {
  return isJsonObject(json) ? instantOf(json, field) : null;
}
