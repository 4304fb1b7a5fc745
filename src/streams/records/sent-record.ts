import { isJsonObject, parseJson } from '../../schemas/json/json.ts';
import type { JsonObject, JsonValue } from '../../schemas/json/json.ts';
import type { Element } from '../../schemas/json/page-elements.ts';
import { updatedAtOf } from './updated-at.ts';
import type { KeyOf } from './key-of.ts';
import { UnreadableRecord } from '../http/unreadable-record.ts';

/** An element of a page: as it was parsed, a record that is kept as its bytes, or one that is no JSON. */
export type Sent = JsonValue | SentRecord | UnreadableRecord;

/** What is kept of the bytes that a record was sent in. */
export interface PayloadDigest {
  /** Their SHA-256, cut to 16 bytes, as `latin1`. */
  readonly digest: string;
  /** How many they are. */
  readonly length: number;
  /** The record's `updated_at` in ms since the epoch; null when it has none. */
  readonly updatedAt: number | null;
}

/**
 * A record as the bytes that it was sent in, which are parsed if somebody asks. Parsed records that live
 * as long as their page cost the garbage collector about as much as parsing them.
 */
export abstract class SentRecord {
  readonly key: string;
  /** Its `updated_at` in ms since the epoch; null when it has none. */
  abstract readonly updatedAt: number | null;
  /** Of its bytes, where somebody looked. */
  abstract readonly text: PayloadDigest | undefined;
  readonly #page: Buffer;
  readonly #at: number;
  readonly #end: number;
  #record: JsonObject | undefined;

  /** The object in a page, from its first byte to behind its last one. */
  constructor(key: string, page: Buffer, at: number, end: number) {
    this.key = key;
    this.#page = page;
    this.#at = at;
    this.#end = end;
  }

  get record(): JsonObject {
    return (this.#record ??= this.#parsed());
  }

  #parsed(): JsonObject {
    return parseJson(this.#page.toString('utf8', this.#at, this.#end)) as JsonObject;
  }
}

/**
 * The element that begins at a place of a page, and the place behind it. To be asked for from the front of
 * a page to its back.
 *
 * @throws SyntaxError when it isn't JSON.
 */
export type ElementReader = (page: Buffer, at: number) => Element<Sent>;

/** What was sent, as JSON; of what is none its text. */
export function jsonOf(sent: Sent): JsonValue {
  if (sent instanceof UnreadableRecord) return sent.text;
  return sent instanceof SentRecord ? sent.record : sent;
}

/** The key of an element; undefined where it has none. */
export function keyIn(sent: Sent, keyOf: KeyOf): string | undefined {
  if (sent instanceof UnreadableRecord) return undefined;
  return sent instanceof SentRecord ? sent.key : keyOf(sent);
}

/** The `updated_at` of an element, in ms since the epoch; null where it has none. */
export function updatedAtIn(sent: Sent): number | null {
  if (sent instanceof SentRecord) return sent.updatedAt;
  if (sent instanceof UnreadableRecord) return null;
  return isJsonObject(sent) ? updatedAtOf(sent) : null;
}
