// Separates the records of a page that can be published, each with its own key, from rejects, which are reported once; and chooses the key
// fields of a list without a description, by how few rejects they leave.

import { createHash } from 'node:crypto';
import { canonicalJson, isJsonObject } from '../../schemas/json/json.ts';
import type { JsonObject, JsonValue } from '../../schemas/json/json.ts';
import { keyOfFields } from './key-of.ts';
import type { KeyOf } from './key-of.ts';
import { PageRecord } from './page-record.ts';
import type { KeyedRecord } from './page-record.ts';
import type { PageRecords, PageRun } from './page-records.ts';
import { volatileFields } from './volatile-fields.ts';
import type { VolatileFields } from './volatile-fields.ts';

/** Why an element of a response's `data` is not published as a record. */
export type RejectReason =
  'not-an-object' | 'no-key' | 'conflicting-duplicate' | 'too-large' | 'unreadable';

/** A reject: an element of a response's `data` that is not published as a record. */
export type RejectedRecord = RejectedJson | RejectedText;

/** Returns the list offset of a rejected element if it is known, otherwise that of its page (`ofPage`). */
export function listedOffset(rejected: RejectedRecord, ofPage: number): number {
  return rejected.reason === 'unreadable' ? rejected.offset : ofPage;
}

/** A rejected element that is JSON, but cannot be published as a record. */
export interface RejectedJson {
  readonly reason: Exclude<RejectReason, 'unreadable'>;
  /** The element as it was received. */
  readonly raw: JsonValue;
  /** The reject's key; null if it has none. */
  readonly key: string | null;
}

/** A rejected element that is not JSON. */
export interface RejectedText {
  readonly reason: 'unreadable';
  /** Text of the rejected element; for a list with hidden personal fields, the `sha256` and `length` of the text as JSON. */
  readonly raw: string;
  readonly key: null;
  /** List offset of the element. */
  readonly offset: number;
}

/** The records of a page, split into those that can be published and rejects. */
export interface SplitRecords {
  /** Records that can be published; their keys are distinct. */
  readonly keyed: readonly KeyedRecord[];
  readonly rejected: readonly RejectedRecord[];
  /** Index on the page of each element of `rejected`. */
  readonly rejectedAt: readonly number[];
}

/** The records of a decoded page, split into keyed records, recognized runs and rejects. */
export interface SplitPage extends SplitRecords {
  /** Recognized runs (units of adjacent records); their records are not in `keyed`. */
  readonly runs: readonly PageRun[];
}

/**
 * Splits a decoded page into keyed records, recognized runs and rejects. Runs are split into their records if any record of the page has no
 * key, or the same key as another.
 */
export function splitPageRecords(records: PageRecords, volatile?: VolatileFields): SplitPage {
  const { keys, parts } = records;
  if (!keys || keys.size < records.length) {
    return { ...splitRecords(records.all(), volatile), runs: [] };
  }
  const keyed: KeyedRecord[] = [];
  const runs: PageRun[] = [];
  for (const part of parts) {
    if (!(part instanceof PageRecord)) runs.push(part);
    else if (isKeyed(part)) keyed.push(part);
  }
  return { keyed, runs, rejected: [], rejectedAt: [] };
}

/**
 * Splits records into those with their own key and rejects, in order. Of several records with one key, the first is kept; the others are
 * dropped if they are equal to it except for volatile fields, otherwise rejected.
 */
export function splitRecords(
  records: readonly PageRecord[],
  volatile: VolatileFields = volatileFields([]),
): SplitRecords {
  const byKey = new Map<string, KeyedRecord>();
  const keyed: KeyedRecord[] = [];
  const rejected: RejectedRecord[] = [];
  const rejectedAt: number[] = [];
  const reject = (place: number, one: RejectedRecord) => {
    rejected.push(one);
    rejectedAt.push(place);
  };
  records.forEach((record, place) => {
    if (!isKeyed(record)) return reject(place, rejectOf(record));
    const first = byKey.get(record.key);
    if (first === undefined) {
      byKey.set(record.key, record);
      keyed.push(record);
    } else if (!volatile.isSame(record.json, first.json)) {
      const { json, key } = record;
      reject(place, { reason: 'conflicting-duplicate', raw: json, key });
    }
  });
  return { keyed, rejected, rejectedAt };
}

/** Makes keys for parsed JSON elements with `keyOf`, and splits the elements into keyed records and rejects. */
export function keyRecords(data: readonly JsonValue[], keyOf: KeyOf): SplitRecords {
  return splitRecords(data.map((json) => PageRecord.ofJson(json, { key: keyOf(json) })));
}

/** Whether a record has a key, which implies that it is an object. */
function isKeyed(record: PageRecord): record is KeyedRecord {
  return record.key !== undefined;
}

function rejectOf({ json, unreadableAt: offset }: PageRecord): RejectedRecord {
  if (offset !== undefined) return { reason: 'unreadable', raw: json as string, key: null, offset };
  return { reason: isJsonObject(json) ? 'no-key' : 'not-an-object', raw: json, key: null };
}

/** Returns whether a rejected element has not been reported before. */
export type RejectFilter = (record: RejectedRecord) => boolean;

/**
 * Creates the filter for the rejects of a page. It returns true for a reject whose digest is not known (`isKnown`) and did not occur before
 * on the page. So a bad record is not reported again at every read, but is reported again once its content has changed.
 */
export function newRejects(
  isKnown: (digest: string) => boolean = () => false,
  volatile?: VolatileFields,
): RejectFilter {
  const told = new Set<string>();
  return (record) => {
    const digest = rejectDigest(record, volatile);
    if (told.has(digest) || isKnown(digest)) return false;
    told.add(digest);
    return true;
  };
}

const DIGEST_BYTES = 16;

/** Returns the digest that identifies a reject, by its reason and its content without volatile fields: 16 bytes, as a `latin1` string. */
export function rejectDigest({ reason, raw }: RejectedRecord, volatile?: VolatileFields): string {
  return createHash('sha256')
    .update(`${reason} ${canonicalJson(volatile ? volatile.without(raw) : raw)}`)
    .digest()
    .toString('latin1', 0, DIGEST_BYTES);
}

/** Result of {@link chooseKeyFields}. */
type KeyChoice =
  /** The chosen key fields: the first suitable candidate. */
  | { readonly fields: readonly string[] }
  /** No candidate is suitable; `seen` has the sorted names of all fields, so that the operator can choose. */
  | { readonly fields: undefined; readonly seen: readonly string[] };

/**
 * First attempt at choosing key fields: fraction of a page's records that may lack the candidate fields. Such records become dead letters.
 */
const A_FEW = 1 / 10;
/**
 * Second attempt at choosing key fields: fraction of a page's records that may lack the candidate fields. Too large: a field that only some
 * kinds of records have is chosen as the key.
 */
const MOST = 1 / 5;

/**
 * Chooses the key fields of a list without a description, from the records of a page: the first of `candidates` (each of one field or
 * several) that at least nine tenths of the objects have, with distinct values unless the records are equal. If there is none, the first
 * that at least four fifths have. Undefined for a page without objects.
 */
export function chooseKeyFields(
  data: readonly JsonValue[],
  candidates: readonly (readonly string[])[],
): KeyChoice | undefined {
  const records = data.filter(isJsonObject);
  if (records.length === 0) return undefined;
  const fits = (most: number) =>
    candidates.find((candidate) => {
      const { rejected } = keyRecords(records, keyOfFields(candidate));
      return rejected.length <= most && rejected.every(({ reason }) => reason === 'no-key');
    });
  const fields = fits(records.length * A_FEW) ?? fits(records.length * MOST);
  if (fields) return { fields };
  return { fields: undefined, seen: fieldNames(records) };
}

/** Returns the names of all fields that occur in the records, sorted. */
export function fieldNames(records: readonly JsonObject[]): string[] {
  return [...new Set(records.flatMap(Object.keys))].sort();
}
