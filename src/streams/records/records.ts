import { isJsonObject } from '../../schemas/json/json.ts';
import { volatileFields } from './volatile-fields.ts';
import type { VolatileFields } from './volatile-fields.ts';
import { jsonOf, keyIn, SentRecord } from './sent-record.ts';
import type { Sent } from './sent-record.ts';
import type { JsonObject, JsonValue } from '../../schemas/json/json.ts';
import { UnreadableRecord } from '../http/unreadable-record.ts';
import { type KeyOf } from './key-of.ts';

/** A record and the key that its topic knows it by; a {@link SentRecord} is one. */
export interface KeyedRecord {
  readonly key: string;
  readonly record: JsonObject;
}

/** Why an element of `data` can't be published as it is. */
export type RejectReason =
  'not-an-object' | 'no-key' | 'conflicting-duplicate' | 'too-large' | 'unreadable';

/** An element of `data` that is not published, as it came. */
export type RejectedRecord = RejectedJson | RejectedText;

/** Where it stands: its own place where it has one, else that of its page. */
export function offsetOf(rejected: RejectedRecord, ofPage: number): number {
  return rejected.reason === 'unreadable' ? rejected.offset : ofPage;
}

/** One that is JSON. */
export interface RejectedJson {
  readonly reason: Exclude<RejectReason, 'unreadable'>;
  readonly raw: JsonValue;
  /** Null where it has none. */
  readonly key: string | null;
}

/** One that is none. */
export interface RejectedText {
  readonly reason: 'unreadable';
  /** Its text; of a list with hidden fields its `sha256` and `length` as JSON. */
  readonly raw: string;
  readonly key: null;
  /** Its own in the list. */
  readonly offset: number;
}

/**
 * Splits a page into records with a key of their own and those that can't have one. Order is kept. Of
 * several with one key the first has it: the others are dropped if they say the same, volatile fields
 * aside, else rejected.
 */
export function keyRecords(
  data: readonly Sent[],
  keyOf: KeyOf,
  volatile?: VolatileFields,
): { readonly keyed: KeyedRecord[]; readonly rejected: RejectedRecord[] } {
  const { isSame } = volatile ?? volatileFields([]);
  const byKey = new Map<string, KeyedRecord>();
  const rejected: RejectedRecord[] = [];
  for (const raw of data) {
    if (raw instanceof UnreadableRecord) {
      const { text, offset } = raw;
      rejected.push({ reason: 'unreadable', raw: text, key: null, offset });
      continue;
    }
    const isKept = raw instanceof SentRecord;
    if (!isKept && !isJsonObject(raw)) {
      rejected.push({ reason: 'not-an-object', raw, key: null });
      continue;
    }
    const key = keyIn(raw, keyOf);
    if (key === undefined) {
      rejected.push({ reason: 'no-key', raw: jsonOf(raw), key: null });
      continue;
    }
    const first = byKey.get(key);
    if (first === undefined) byKey.set(key, isKept ? raw : { key, record: raw });
    else if (!isSame(jsonOf(raw) as JsonObject, first.record)) {
      rejected.push({ reason: 'conflicting-duplicate', raw: jsonOf(raw), key });
    }
  }
  return { keyed: [...byKey.values()], rejected };
}
