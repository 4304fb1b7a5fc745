import { parsedElement } from '../../schemas/json/page-elements.ts';
import type { Element } from '../../schemas/json/page-elements.ts';
import type { Transcoded } from '../../schemas/avro/record-codec.ts';
import type { ImageCodec } from '../diff/change.ts';
import { updatedAtOf } from './updated-at.ts';
import { instantOf } from './updated-at.ts';
import type { KeyOf } from './key-of.ts';
import { SentRecord } from './sent-record.ts';
import type { ElementReader, PayloadDigest } from './sent-record.ts';

/** A record's image, and what has encoded it. */
export interface Encoded {
  readonly image: Buffer;
  readonly values: ImageCodec;
}

/** A record that was encoded from its bytes. */
export interface EncodedElement extends Encoded, Transcoded {}

/** A record that was encoded as it arrived. */
export class FreshRecord extends SentRecord {
  readonly image: Buffer;
  /** What has encoded it: a schema that has grown since makes other bytes of it. */
  readonly values: ImageCodec;
  readonly updatedAt: number | null;
  /** Its `created_at` in ms since the epoch; null when it has none. */
  readonly createdAt: number | null;
  readonly text: PayloadDigest | undefined;
  /** Whether it is new: known when its turn has come. */
  isNew: boolean | undefined;

  constructor(
    key: string,
    page: Buffer,
    at: number,
    about: EncodedElement & Pick<FreshRecord, 'updatedAt' | 'createdAt' | 'text'>,
  ) {
    super(key, page, at, about.end);
    this.image = about.image;
    this.values = about.values;
    this.updatedAt = about.updatedAt;
    this.createdAt = about.createdAt;
    this.text = about.text;
    this.isNew = undefined;
  }
}

/** What {@link freshRecords} needs. */
export interface FreshOptions {
  /** The fields that a key is made of. */
  readonly keyFields: readonly string[];
  /** The key of a record that has them. */
  readonly keyOf: KeyOf;
  /**
   * The image of the record that begins at a place of a page, and the fields that are wanted; undefined where it isn't
   * one, or there is no schema yet that has a field for whatever it holds.
   */
  readonly encode: (
    page: Buffer,
    at: number,
    wanted: readonly string[],
  ) => EncodedElement | undefined;
}

/** Reads the record that begins at a place of a page; undefined where it has no key, or can't be encoded yet. */
export type FreshReader = (page: Buffer, at: number) => Element<FreshRecord> | undefined;

/**
 * Encodes records as they arrive: what is left of one then is its image and its bytes.
 *
 * @param textOf What to keep of its bytes. Default nothing.
 */
export function freshRecords(
  { keyFields, keyOf, encode }: FreshOptions,
  textOf?: (bytes: Buffer, updatedAt: number | null) => PayloadDigest,
): FreshReader {
  const wanted = [...new Set([...keyFields, 'created_at', 'updated_at'])];
  return (page, at) => {
    const encoded = encode(page, at, wanted);
    if (!encoded) return undefined;
    const { end, fields } = encoded;
    const key = keyOf(fields);
    if (key === undefined) return undefined;
    const updatedAt = updatedAtOf(fields);
    const createdAt = instantOf(fields, 'created_at');
    const text = textOf?.(page.subarray(at, end), updatedAt);
    return {
      value: new FreshRecord(key, page, at, { ...encoded, updatedAt, createdAt, text }),
      end,
    };
  };
}

/** Reads the elements of a page, each record as a {@link FreshRecord} where that can be. */
export function freshReader(options: FreshOptions): ElementReader {
  const fresh = freshRecords(options);
  return (page, at) => fresh(page, at) ?? parsedElement(page, at);
}
