import { isJsonObject } from '../schemas/json.ts';
import type { JsonObject } from '../schemas/json.ts';
import { parsedElement } from '../schemas/page-elements.ts';
import type { ImageCodec } from './change.ts';
import { instantOf, updatedAtOf } from './diff.ts';
import type { KeyOf } from './records.ts';
import { SentRecord } from './sent-record.ts';
import type { ElementReader, SentText } from './sent-record.ts';

/** A record's image, and what has encoded it. */
export interface Encoded {
  readonly image: Buffer;
  readonly values: ImageCodec;
}

/** A record that was encoded as it arrived. */
export class FreshRecord extends SentRecord {
  readonly image: Buffer;
  /** What has encoded it: a schema that has grown since makes other bytes of it. */
  readonly values: ImageCodec;
  readonly updatedAt: number | null;
  /** Its `created_at` in ms since the epoch; null when it has none. */
  readonly createdAt: number | null;
  readonly text: SentText | undefined;
  /** Whether it is new: known when its turn has come. */
  isNew: boolean | undefined;

  constructor(
    key: string,
    bytes: Buffer,
    about: Encoded & Pick<FreshRecord, 'updatedAt' | 'createdAt' | 'text'>,
  ) {
    super(key, bytes);
    this.image = about.image;
    this.values = about.values;
    this.updatedAt = about.updatedAt;
    this.createdAt = about.createdAt;
    this.text = about.text;
    this.isNew = undefined;
  }
}

/** What {@link freshRecord} needs. */
export interface FreshOptions {
  readonly keyOf: KeyOf;
  /** The image of a record, if there is a schema that has a field for whatever it holds. */
  readonly encode: (record: JsonObject) => Encoded | undefined;
}

/**
 * A record that was parsed just now, encoded: what is left of it then is its image and its bytes.
 *
 * @returns undefined where it has no key, or can't be encoded yet.
 */
export function freshRecord(
  record: JsonObject,
  bytes: Buffer,
  { keyOf, encode }: FreshOptions,
  text?: SentText,
): FreshRecord | undefined {
  const key = keyOf(record);
  const encoded = key === undefined ? undefined : encode(record);
  if (key === undefined || !encoded) return undefined;
  const updatedAt = text ? text.updatedAt : updatedAtOf(record);
  const createdAt = instantOf(record, 'created_at');
  return new FreshRecord(key, bytes, { ...encoded, updatedAt, createdAt, text });
}

/** Reads the elements of a page, each record as a {@link FreshRecord} where that can be. */
export function freshReader(options: FreshOptions): ElementReader {
  return (page, at) => {
    const { value, end } = parsedElement(page, at);
    if (!isJsonObject(value)) return { value, end };
    return { value: freshRecord(value, page.subarray(at, end), options) ?? value, end };
  };
}
