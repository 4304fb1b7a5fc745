import { hash } from 'node:crypto';
import { isJsonObject, parseJson, setOwn } from '../schemas/json.ts';
import type { JsonObject, JsonValue } from '../schemas/json.ts';
import { endOfValue, parsedElement, valueBehind } from '../schemas/page-elements.ts';
import type { Element } from '../schemas/page-elements.ts';
import { updatedAtOf } from './diff.ts';
import type { KeyOf } from './records.ts';

/** What is kept of the bytes that a record was sent in. */
export interface SentText {
  /** Their SHA-256, cut to 16 bytes, as `latin1`. */
  readonly digest: string;
  /** How many they are. */
  readonly length: number;
  /** The record's `updated_at` in ms since the epoch; null when it has none. */
  readonly updatedAt: number | null;
}

/** An element of a page: as it was parsed, or known without. */
export type Sent = JsonValue | KnownRecord;

/** A record sent in the very bytes that were parsed before: it is parsed again only if somebody asks. */
export class KnownRecord {
  readonly key: string;
  /** The state of things that it was known in. */
  readonly asOf: number;
  /** As the record that its image was made of. */
  readonly isSame = true;
  readonly text: SentText;
  readonly #bytes: Buffer;
  #record: JsonObject | undefined;

  constructor(key: string, asOf: number, text: SentText, bytes: Buffer) {
    this.key = key;
    this.asOf = asOf;
    this.text = text;
    this.#bytes = bytes;
  }

  get updatedAt(): number | null {
    return this.text.updatedAt;
  }

  get record(): JsonObject {
    return (this.#record ??= parseJson(this.#bytes.toString()) as JsonObject);
  }
}

/** What was sent, as JSON. */
export function jsonOf(sent: Sent): JsonValue {
  return sent instanceof KnownRecord ? sent.record : sent;
}

/** The key of an element; undefined where it has none. */
export function keyIn(sent: Sent, keyOf: KeyOf): string | undefined {
  return sent instanceof KnownRecord ? sent.key : keyOf(sent);
}

/** The `updated_at` of an element, in ms since the epoch; null where it has none. */
export function updatedAtIn(sent: Sent): number | null {
  if (sent instanceof KnownRecord) return sent.updatedAt;
  return isJsonObject(sent) ? updatedAtOf(sent) : null;
}

/** Tells records that were sent before by their bytes. */
export interface Recogniser {
  /**
   * The element that begins at a place of a page: a {@link KnownRecord}, or parsed. To be asked for from
   * the front of a page to its back.
   *
   * @throws SyntaxError when it isn't JSON.
   */
  readonly read: (page: Buffer, at: number) => Element<Sent>;
  /** What to keep of a record that was parsed here. */
  readonly textOf: (record: JsonObject) => SentText | undefined;
}

/** What {@link recogniser} needs. */
export interface RecogniserOptions {
  /** The fields that a key is made of. */
  readonly keyFields: readonly string[];
  /** The key of a record that has them. */
  readonly keyOf: KeyOf;
  /** What was kept of the record of a key. */
  readonly known: (key: string) => SentText | undefined;
  /** Rises whenever something else may be known. */
  readonly asOf: () => number;
}

/**
 * Recognises a record by the digest that is kept under its key. Which key that is, and so how long the
 * record would be, is guessed at from the bytes alone. A wrong guess does no harm: bytes of another digest
 * are not those that were kept under that key, and of the same digest they are, whatever led there.
 */
export function recogniser({ keyFields, keyOf, known, asOf }: RecogniserOptions): Recogniser {
  const names = keyFields.map((field) => [field, Buffer.from(JSON.stringify(field))] as const);
  const parsed = new WeakMap<JsonObject, Pick<SentText, 'digest' | 'length'>>();

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
        const bytes = page.subarray(at, at + text.length);
        if (digestOf(bytes) === text.digest) {
          return { value: new KnownRecord(key, asOf(), text, bytes), end: at + text.length };
        }
      }
      const { value, end } = parsedElement(page, at);
      const bytes = page.subarray(at, end);
      if (isJsonObject(value)) parsed.set(value, { digest: digestOf(bytes), length: bytes.length });
      return { value, end };
    },
    textOf: (record) => {
      const text = parsed.get(record);
      return text && { ...text, updatedAt: updatedAtOf(record) };
    },
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

function digestOf(bytes: Buffer): string {
  return hash('sha256', bytes, 'binary').slice(0, 16);
}
