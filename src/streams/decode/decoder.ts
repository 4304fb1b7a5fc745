import type { Transcoded, WantedFields } from '../../schemas/avro/record-codec.ts';
import { endOfValue, valueBehind, parsedElement } from '../../schemas/json/json-bytes.ts';
import { setOwn } from '../../schemas/json/json.ts';
import type { JsonObject } from '../../schemas/json/json.ts';
import type { Elements } from '../../schemas/json/json-bytes.ts';
import type { Body } from '../http/body.ts';
import type { ImageCodec } from '../records/image-codec.ts';
import type { KeyOf } from '../records/key-of.ts';
import { PageRecord, payloadDigest, PUBLISHED } from '../records/page-record.ts';
import type { KnownRun, PayloadDigest } from '../records/page-record.ts';
import type { PagePart } from '../records/page-records.ts';
import { PageRun } from '../records/page-run.ts';

/**
 * Makes a record of the element that begins at a place of a page, and of those behind it that are known with it, and
 * tells the place behind the last of them. To be asked for from the front of a page to its back.
 *
 * @throws SyntaxError when it isn't JSON.
 */
export type Decoder = (page: Body, at: number) => Elements<PagePart>;

/** The same where no record is known. */
export type RecordDecoder = (page: Body, at: number) => Elements<PageRecord>;

/** Each record is parsed. Without `keyOf` none has a key. */
export function parsing(keyOf: KeyOf = () => undefined): RecordDecoder {
  return (page, at) => {
    const { value, end } = parsedElement(page.bytes, at);
    return { values: [PageRecord.ofJson(value, { key: keyOf(value) })], end };
  };
}

/** A record that was encoded from its bytes. */
export interface EncodedElement extends Transcoded {
  readonly codec: ImageCodec;
}

/** What {@link encoding} needs. */
export interface EncodingOptions {
  /** The fields that a key is made of. */
  readonly keyFields: readonly string[];
  /** The key of a record that has them. */
  readonly keyOf: KeyOf;
  /**
   * The image of the record that begins at a place of a page, and the fields that are wanted; undefined where it isn't
   * one, or there is no schema yet that has a field for whatever it holds.
   */
  readonly encode: (page: Buffer, at: number, wanted: WantedFields) => EncodedElement | undefined;
}

/** Records are encoded as they arrive: nothing of them is parsed but the fields that are looked at. Others go to `next`. */
export function encoding(
  { keyFields, keyOf, encode }: EncodingOptions,
  next: RecordDecoder,
): RecordDecoder {
  const wanted = { values: keyFields, instants: ['updated_at', 'created_at'] };
  return (page, at) => {
    const encoded = encode(page.bytes, at, wanted);
    const key = encoded && keyOf(encoded.fields);
    if (!encoded || key === undefined) return next(page, at);
    const { image: bytes, codec, end, instants } = encoded;
    const image = { kind: 'encoded', bytes, codec } as const;
    const [updatedAt, createdAt] = instants;
    const facts = { key, image, updatedAt, createdAt };
    return { values: [PageRecord.inBytes({ page, at, end }, facts)], end };
  };
}

/** What {@link matchingDigests} needs. */
export interface MatchingOptions extends Pick<EncodingOptions, 'keyFields' | 'keyOf'> {
  /** What was kept of the record of a key. */
  readonly known: (key: string) => PayloadDigest | undefined;
  /** The run that begins with a key. Default none does. */
  readonly knownRun?: (key: string) => KnownRun | undefined;
  /** What its digest is made by. Default {@link payloadDigest}. */
  readonly runDigest?: (bytes: Buffer) => string;
}

/**
 * Knows a record again by the digest that is kept under its key, or with all of the run that begins with it; any other goes
 * to `next`, and its digest is told. Which key that is, and so how long the record would be, is guessed at from the bytes
 * alone. A wrong guess does no harm: bytes of another digest are not those that were kept under that key, and of the same
 * digest they are, whatever led there.
 */
export function matchingDigests(options: MatchingOptions, next: RecordDecoder): Decoder {
  const { keyFields, keyOf, known } = options;
  const { knownRun = () => undefined, runDigest = payloadDigest } = options;
  const names = keyFields.map((field) => [field, Buffer.from(JSON.stringify(field))] as const);
  /** Pages in whose rest a field of the key is not found: else each record would look to their end. */
  const exhausted = new WeakSet<Body>();

  /** What stands behind the next mention of each field of the key, put into a record. */
  const guess = (page: Body, at: number): string | undefined => {
    if (exhausted.has(page)) return undefined;
    const { bytes } = page;
    const record: JsonObject = {};
    for (const [field, name] of names) {
      const start = behindName(bytes, name, at);
      if (start < 0) {
        exhausted.add(page);
        return undefined;
      }
      const text = bytes.toString('utf8', start, endOfValue(bytes, start));
      if (/^\d{1,15}$/.test(text)) setOwn(record, field, Number(text));
      else if (/^"[^"\\]*"$/.test(text)) setOwn(record, field, text.slice(1, -1));
      else return undefined; // rarely anything else is a key: it is parsed
    }
    return keyOf(record);
  };

  const inRun = (page: Body, at: number, key: string): Elements<PageRun> | undefined => {
    const run = knownRun(key);
    const end = at + (run?.length ?? 0);
    if (!run || end > page.bytes.length) return undefined;
    if (runDigest(page.bytes.subarray(at, end)) !== run.digest) return undefined;
    return { values: [new PageRun(run, page, at)], end };
  };
  const alone = (page: Body, at: number, key: string): Elements<PageRecord> | undefined => {
    const digest = known(key);
    const end = at + (digest?.length ?? 0);
    if (!digest || end > page.bytes.length) return undefined;
    if (payloadDigest(page.bytes.subarray(at, end)) !== digest.digest) return undefined;
    const { updatedAt } = digest;
    const facts = { key, image: PUBLISHED, digest, updatedAt };
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

/** Where the value behind the next mention of a name begins; -1 where there is none. */
function behindName(page: Buffer, name: Buffer, at: number): number {
  for (let found = page.indexOf(name, at); found >= 0; found = page.indexOf(name, found + 1)) {
    const start = valueBehind(page, found + name.length);
    if (start >= 0) return start;
  }
  return -1;
}
