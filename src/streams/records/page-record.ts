import { createHash, hash } from 'node:crypto';
import { isJsonObject, parseJson, stringifyJson } from '../../schemas/json/json.ts';
import { jsonText } from '../../schemas/json/json-bytes.ts';
import type { JsonObject, JsonValue } from '../../schemas/json/json.ts';
import type { Body } from '../http/body.ts';
import type { ImageCodec } from './image-codec.ts';
import { instantOf } from '../../schemas/avro/instant.ts';

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
  /** Of its bytes: 16 bytes, as `latin1`. */
  readonly digest: string;
  /** How many they are. */
  readonly length: number;
  /** How many records it has. */
  readonly size: number;
  /** Made anew each time that somebody asks. */
  readonly members: readonly KnownMember[];
  /** The nth of them, from 0. */
  readonly member: (nth: number) => KnownMember;
  /** Where the key of each stands, in UTF-8. */
  readonly eachKey: (tell: (bytes: Uint8Array, from: number, to: number) => void) => void;
  /** The `updated_at` of each, in ms since the epoch; null where it has none. */
  readonly eachUpdatedAt: (tell: (updatedAt: number | null) => void) => void;
}

/** A record of a run. */
export interface KnownMember {
  readonly key: string;
  /** Its first byte and the one behind its last, from the run's first. */
  readonly at: number;
  readonly end: number;
  /** In ms since the epoch; null when it has none. */
  readonly updatedAt: number | null;
}

/** What is known of a record's image before it is held against the published one. */
export type RecordImage =
  /** The record came in the bytes that the published image was made of, as it was then. */
  | { readonly kind: 'published' }
  /** The image is made already; a schema that has grown since makes other bytes. */
  | { readonly kind: 'encoded'; readonly bytes: Buffer; readonly codec: ImageCodec };

/** Of a record that came in the bytes of its published image. */
export const PUBLISHED: RecordImage = { kind: 'published' };

/** What is known of a record beside its bytes. */
export interface RecordFacts {
  readonly key?: string | undefined;
  readonly image?: RecordImage | undefined;
  readonly digest?: PayloadDigest | undefined;
  /** Ms since the epoch, null for none; left out, the record is looked at. */
  readonly updatedAt?: number | null | undefined;
  readonly createdAt?: number | null | undefined;
}

/** Where a record stands in the body of an answer: from its first byte to behind its last one. */
export interface RecordBytes {
  readonly page: Body;
  readonly at: number;
  readonly end: number;
}

/** What a record has of its own; what is looked at is kept. */
interface OwnFacts extends RecordFacts {
  json?: JsonValue | undefined;
  digest?: PayloadDigest | undefined;
  updatedAt?: number | null | undefined;
  createdAt?: number | null | undefined;
  readonly bytes?: RecordBytes | undefined;
  readonly unreadableAt?: number | undefined;
}

/** Where a run stands. */
export interface RunBytes {
  readonly run: KnownRun;
  readonly page: Body;
  readonly from: number;
}

/**
 * One element of a page, from the body of an answer to the transaction.
 *
 * It is kept as the bytes that it was sent in, and parsed when somebody asks for its JSON: parsed records that live as
 * long as their page cost the garbage collector about as much as parsing them.
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

  /** A record that is parsed when somebody asks for it. */
  static inBytes(bytes: RecordBytes, facts: RecordFacts): PageRecord {
    const { key, image, digest, updatedAt, createdAt } = facts;
    return new PageRecord({ key, image, digest, updatedAt, createdAt, bytes, json: undefined });
  }

  /** A member of a run that stands in a page. */
  static ofRun(place: RunBytes, member: KnownMember): PageRecord {
    return new PageRecord(undefined, place, member);
  }

  /** A record as JSON. */
  static ofJson(json: JsonValue, facts: RecordFacts = {}): PageRecord {
    return new PageRecord({ ...facts, json });
  }

  /** An element that is no JSON: nothing is known of it but its text and its place in the list. */
  static unreadable(text: string, offset: number): PageRecord {
    return new PageRecord({ json: text, unreadableAt: offset });
  }

  /** What its topic knows it by; undefined for one that can't be published. */
  get key(): string | undefined {
    return this.#member ? this.#member.key : this.#own?.key;
  }

  get image(): RecordImage | undefined {
    return this.#member ? PUBLISHED : this.#own?.image;
  }

  /** The run that it was known again with. */
  get run(): KnownRun | undefined {
    return this.#run?.run;
  }

  /** Of an element that is no JSON: its place in the list; else undefined. */
  get unreadableAt(): number | undefined {
    return this.#own?.unreadableAt;
  }

  /** Where it stands, of one that was sent in an answer. */
  get bytes(): RecordBytes | undefined {
    if (!this.#run || !this.#member) return this.#own?.bytes;
    const { page, from } = this.#run;
    return { page, at: from + this.#member.at, end: from + this.#member.end };
  }

  /** What was sent; of an element that is no JSON its text. */
  get json(): JsonValue {
    const own = this.#facts();
    if (own.json === undefined) {
      const { page, at, end } = this.bytes!;
      own.json = parseJson(jsonText(page.bytes.subarray(at, end)));
    }
    return own.json;
  }

  /** Of its bytes, where somebody looked; those of a run's members are looked at when somebody asks. */
  get digest(): PayloadDigest | undefined {
    if (!this.#member) return this.#own?.digest;
    const own = this.#facts();
    own.digest ??= digestOf(this.bytes!, this.updatedAt);
    return own.digest;
  }

  /** The same, as `latin1`. If nobody has looked it is worked out, each time that it is asked for. */
  sentAs(): string | undefined {
    const { digest, bytes } = this;
    return (
      digest?.digest ?? (bytes && payloadDigest(bytes.page.bytes.subarray(bytes.at, bytes.end)))
    );
  }

  /** Its `updated_at` in ms since the epoch; null when it has none. */
  get updatedAt(): number | null {
    if (this.#member) return this.#member.updatedAt;
    const own = this.#facts();
    if (own.updatedAt === undefined) own.updatedAt = instantIn(this.json, 'updated_at');
    return own.updatedAt;
  }

  /** Its `created_at`, likewise. */
  get createdAt(): number | null {
    const own = this.#facts();
    if (own.createdAt === undefined) own.createdAt = instantIn(this.json, 'created_at');
    return own.createdAt;
  }

  /** The same record by itself, with its image or without one. */
  withImage(image: RecordImage | undefined): this {
    const { bytes, key, digest } = this;
    const { json, createdAt } = this.#facts();
    const updatedAt = this.#member ? this.#member.updatedAt : this.#own?.updatedAt;
    return new PageRecord({ key, image, digest, updatedAt, createdAt, bytes, json }) as this;
  }

  /** The same record with its bytes, and the digest of them. */
  withDigest(bytes: RecordBytes): PageRecord {
    const { updatedAt } = this;
    const digest = digestOf(bytes, updatedAt);
    const { key, image, createdAt, json } = this.#facts();
    return new PageRecord({ key, image, digest, updatedAt, createdAt, bytes, json });
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

  #facts(): OwnFacts {
    return (this.#own ??= {});
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

function digestOf({ page, at, end }: RecordBytes, updatedAt: number | null): PayloadDigest {
  return { digest: payloadDigest(page.bytes.subarray(at, end)), length: end - at, updatedAt };
}

function instantIn(json: JsonValue, field: string): number | null {
  return isJsonObject(json) ? instantOf(json, field) : null;
}
