import { hash } from 'node:crypto';
import { isJsonObject, setOwn } from '../../schemas/json/json.ts';
import type { JsonObject } from '../../schemas/json/json.ts';
import { endOfValue, valueBehind } from '../../schemas/json/json-bytes.ts';
import { parsedElement } from '../../schemas/json/page-elements.ts';
import { updatedAtOf } from './updated-at.ts';
import { freshRecords } from './fresh-record.ts';
import type { FreshOptions } from './fresh-record.ts';
import { SentRecord } from './sent-record.ts';
import type { ElementReader, PayloadDigest } from './sent-record.ts';

/** A record sent in the very bytes that were read before. */
export class KnownRecord extends SentRecord {
  /** The state of things that it was known in. */
  readonly asOf: number;
  /** As the record that its image was made of. */
  readonly isSame = true;
  readonly text: PayloadDigest;

  constructor(key: string, asOf: number, text: PayloadDigest, page: Buffer, at: number) {
    super(key, page, at, at + text.length);
    this.asOf = asOf;
    this.text = text;
  }

  get updatedAt(): number | null {
    return this.text.updatedAt;
  }
}

/** Tells records that were sent before by their bytes. */
export interface DigestMatcher {
  /** Reads a record as a {@link KnownRecord}, else as a `FreshRecord` where it can be encoded; any other is parsed. */
  readonly read: ElementReader;
  /** What to keep of a record that was parsed here and stays so. */
  readonly textOf: (record: JsonObject) => PayloadDigest | undefined;
}

/** What {@link digestMatcher} needs. */
export interface DigestMatcherOptions extends Omit<FreshOptions, 'encode'> {
  /** What was kept of the record of a key. */
  readonly known: (key: string) => PayloadDigest | undefined;
  /** Rises whenever something else may be known. */
  readonly asOf: () => number;
  /** For records that are not known. Default: they are parsed. */
  readonly encode?: FreshOptions['encode'];
}

/**
 * Recognises a record by the digest that is kept under its key. Which key that is, and so how long the
 * record would be, is guessed at from the bytes alone. A wrong guess does no harm: bytes of another digest
 * are not those that were kept under that key, and of the same digest they are, whatever led there.
 */
export function digestMatcher(options: DigestMatcherOptions): DigestMatcher {
  const { keyFields, keyOf, known, asOf, encode = () => undefined } = options;
  const names = keyFields.map((field) => [field, Buffer.from(JSON.stringify(field))] as const);
  const fresh = freshRecords({ keyFields, keyOf, encode }, payloadDigest);
  const parsed = new WeakMap<JsonObject, PayloadDigest>();

  /** Pages in whose rest a field of the key is not found: else each record would look to their end. */
  const exhausted = new WeakSet<Buffer>();

  /** What stands behind the next mention of each field of the key, put into a record. */
  const guess = (page: Buffer, at: number): string | undefined => {
    if (exhausted.has(page)) return undefined;
    const record: JsonObject = {};
    for (const [field, name] of names) {
      const start = behindName(page, name, at);
      if (start < 0) {
        exhausted.add(page);
        return undefined;
      }
      const text = page.toString('utf8', start, endOfValue(page, start));
      if (/^\d{1,15}$/.test(text)) setOwn(record, field, Number(text));
      else if (/^"[^"\\]*"$/.test(text)) setOwn(record, field, text.slice(1, -1));
      else return undefined; // rarely anything else is a key: it is parsed
    }
    return keyOf(record);
  };

  return {
    read: (page, at) => {
      const key = guess(page, at);
      const text = key === undefined ? undefined : known(key);
      if (key !== undefined && text && at + text.length <= page.length) {
        const end = at + text.length;
        if (digestOf(page.subarray(at, end)) === text.digest) {
          return { value: new KnownRecord(key, asOf(), text, page, at), end };
        }
      }
      const encoded = fresh(page, at);
      if (encoded) return encoded;
      const element = parsedElement(page, at);
      const { value, end } = element;
      if (isJsonObject(value))
        parsed.set(value, payloadDigest(page.subarray(at, end), updatedAtOf(value)));
      return element;
    },
    textOf: (record) => parsed.get(record),
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

const payloadDigest = (bytes: Buffer, updatedAt: number | null): PayloadDigest => ({
  digest: digestOf(bytes),
  length: bytes.length,
  updatedAt,
});

function digestOf(bytes: Buffer): string {
  return hash('sha256', bytes, 'binary').slice(0, 16);
}
