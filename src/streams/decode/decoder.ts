// Decoders that make records from the elements of a page: by parsing, by encoding, or by recognizing known bytes.

import type { Transcoded, WantedFields } from '../../schemas/avro/record-codec.ts';
import { endOfValue, valueAfterName, parsedElement } from '../../schemas/json/json-bytes.ts';
import { setOwn } from '../../schemas/json/json.ts';
import type { JsonObject } from '../../schemas/json/json.ts';
import type { Elements } from '../../schemas/json/json-bytes.ts';
import type { Body } from '../http/body.ts';
import type { KeyOf } from '../records/key-of.ts';
import { PageRecord, PageRun, payloadDigest, PUBLISHED } from '../records/page-record.ts';
import type { ImageCodec, KnownRun, PayloadDigest } from '../records/page-record.ts';
import type { PagePart } from '../records/page-records.ts';
import type { Stamps } from '../records/stamps.ts';

/**
 * Decodes the element at byte `at` of a page, or a run that begins there (adjacent records that are recognized together as unchanged).
 * Returns the records, and the index of the byte after the last one. Must be called for the elements of a page in their order.
 *
 * @throws SyntaxError if the element is not JSON; RangeError if it is nested too deeply.
 */
export type Decoder = (page: Body, at: number) => Elements<PagePart>;

export type RecordDecoder = (page: Body, at: number) => Elements<PageRecord>;

/** Creates a decoder that parses each element. Without `keyOf`, records have no key; without `stamps`, their stamps are null. */
export function parsingDecoder(keyOf: KeyOf = () => undefined, stamps?: Stamps): RecordDecoder {
  return (page, at) => {
    const { value, end } = parsedElement(page.bytes, at);
    return { values: [PageRecord.ofJson(value, { key: keyOf(value), stamps })], end };
  };
}

export interface EncodedElement extends Transcoded {
  readonly codec: ImageCodec;
}

export interface EncodingOptions {
  readonly keyFields: readonly string[];
  /** Makes a key from the key fields of a record. */
  readonly keyOf: KeyOf;
  readonly stamps: Stamps;
  /**
   * Encodes the record at byte `at` of a page, and returns its image and the values of the top-level fields that `wanted` names. Undefined
   * if the element does not fit the schema, or if there is no schema yet.
   */
  readonly encode: (page: Buffer, at: number, wanted: WantedFields) => EncodedElement | undefined;
}

/**
 * Creates a decoder that encodes records into images directly from their bytes, and parses only the key fields and the stamps. Elements
 * that cannot be encoded, or have no key, are passed to the decoder `next`.
 */
export function encodingDecoder(
  { keyFields, keyOf, stamps, encode }: EncodingOptions,
  next: RecordDecoder,
): RecordDecoder {
  const { values, instants } = stamps.wanted;
  const wanted = { values: [...keyFields, ...values], instants };
  return (page, at) => {
    const encoded = encode(page.bytes, at, wanted);
    const key = encoded && keyOf(encoded.fields);
    if (!encoded || key === undefined) return next(page, at);
    const { image: bytes, codec, end } = encoded;
    const image = { kind: 'encoded', bytes, codec } as const;
    const updatedAt = stamps.updatedIn(encoded);
    const createdAt = stamps.createdIn(encoded);
    const facts = { key, image, updatedAt, createdAt, stamps };
    return { values: [PageRecord.inBytes({ page, at, end }, facts)], end };
  };
}

interface MatchingOptions extends Pick<EncodingOptions, 'keyFields' | 'keyOf' | 'stamps'> {
  /** Returns the stored digest of the published record with this key; undefined if there is none. */
  readonly payloadDigestOf: (key: string) => PayloadDigest | undefined;
  /**
   * Returns the stored run (adjacent records that are recognized together) whose first record has this key; undefined if there is none.
   * Default: no runs are known.
   */
  readonly knownRun?: (key: string) => KnownRun | undefined;
  /** Computes the digest of the bytes of a run (adjacent records of a page). Default: {@link payloadDigest}. */
  readonly runDigest?: (bytes: Buffer) => string;
}

/**
 * Creates a decoder that recognizes unchanged records, or runs (adjacent records with a common digest), by digests of their bytes:
 *
 * 1. The key of the element is guessed from its bytes.
 * 2. The digest that is stored for the key says how many bytes to compare. If these bytes have that digest, the record or run is
 *    recognized. A wrong guess thus does no harm.
 * 3. Otherwise the element is passed to the decoder `next`.
 */
export function digestDecoder(options: MatchingOptions, next: RecordDecoder): Decoder {
  const { keyFields, keyOf, stamps, payloadDigestOf } = options;
  const { knownRun = () => undefined, runDigest = payloadDigest } = options;
  const names = keyFields.map((field) => [field, Buffer.from(JSON.stringify(field))] as const);
  /** Pages in which a search for a key field reached the end without success. They are not searched again, as that is slow. */
  const exhausted = new WeakSet<Body>();

  /**
   * Guesses the key of the record at byte `at`: each key field gets the value that follows the next occurrence of the field's name in the
   * page. Undefined if there is no such value, or a value of a kind that keys rarely have.
   */
  const guess = (page: Body, at: number): string | undefined => {
    if (exhausted.has(page)) return undefined;
    const { bytes } = page;
    const record: JsonObject = {};
    for (const [field, name] of names) {
      const start = valueAfterMention(bytes, name, at);
      if (start < 0) {
        exhausted.add(page);
        return undefined;
      }
      const text = bytes.toString('utf8', start, endOfValue(bytes, start));
      if (/^\d{1,15}$/.test(text)) setOwn(record, field, Number(text));
      else if (/^"[^"\\]*"$/.test(text)) setOwn(record, field, text.slice(1, -1));
      else return undefined; // other values are rarely part of a key: the element is parsed instead
    }
    return keyOf(record);
  };

  const inRun = (page: Body, at: number, key: string): Elements<PageRun> | undefined => {
    const run = knownRun(key);
    const end = at + (run?.length ?? 0);
    if (!run || end > page.bytes.length) return undefined;
    if (runDigest(page.bytes.subarray(at, end)) !== run.digest) return undefined;
    return { values: [new PageRun(run, page, at, stamps)], end };
  };
  const alone = (page: Body, at: number, key: string): Elements<PageRecord> | undefined => {
    const digest = payloadDigestOf(key);
    const end = at + (digest?.length ?? 0);
    if (!digest || end > page.bytes.length) return undefined;
    if (payloadDigest(page.bytes.subarray(at, end)) !== digest.digest) return undefined;
    const { updatedAt } = digest;
    const facts = { key, image: PUBLISHED, digest, updatedAt, stamps };
    return { values: [PageRecord.inBytes({ page, at, end }, facts)], end };
  };

  return (page, at) => {
    const key = guess(page, at);
    const found = key === undefined ? undefined : (inRun(page, at, key) ?? alone(page, at, key));
    if (found) return found;
    const { values, end } = next(page, at);
    return { values: values.map((value) => value.withDigest({ page, at, end })), end };
  };
}

/** Returns the index of the value after the next occurrence of a field name; -1 if there is none. */
function valueAfterMention(page: Buffer, name: Buffer, at: number): number {
  for (let found = page.indexOf(name, at); found >= 0; found = page.indexOf(name, found + 1)) {
    const start = valueAfterName(page, found + name.length);
    if (start >= 0) return start;
  }
  return -1;
}
