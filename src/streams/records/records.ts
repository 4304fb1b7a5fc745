// Separates keyed records from rejects, and chooses the key fields of a list without a description.

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

/** Why an element of `data` is not published. */
export type RejectReason =
  'not-an-object' | 'no-key' | 'conflicting-duplicate' | 'too-large' | 'unreadable';

/** An element of `data` that is not published. */
export type RejectedRecord = RejectedJson | RejectedText;

/** Returns the list offset of a reject if it is known, otherwise that of its page. */
export function listedOffset(rejected: RejectedRecord, ofPage: number): number {
  return rejected.reason === 'unreadable' ? rejected.offset : ofPage;
}

/** A rejected element that is JSON. */
export interface RejectedJson {
  readonly reason: Exclude<RejectReason, 'unreadable'>;
  readonly raw: JsonValue;
  /** Key of the reject; null if it has none. */
  readonly key: string | null;
}

/** A rejected element that is not JSON. */
export interface RejectedText {
  readonly reason: 'unreadable';
  /** Its text; for a list with hidden personal fields, `sha256` and `length` of the text as JSON. */
  readonly raw: string;
  readonly key: null;
  readonly offset: number;
}

/** Keyed records and rejects. */
export interface SplitRecords {
  /** Records that can be published; their keys are distinct. */
  readonly keyed: readonly KeyedRecord[];
  readonly rejected: readonly RejectedRecord[];
  /** Indexes of `rejected` on the page. */
  readonly rejectedAt: readonly number[];
}

/** Keyed records, runs and rejects. */
export interface SplitPage extends SplitRecords {
  /** Recognized runs; their records are not in `keyed`. */
  readonly runs: readonly PageRun[];
}

/** Splits a page. Runs are split into their records if any record has no key, or the same as another. */
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

/** Makes keys for parsed JSON, and splits the records. */
export function keyRecords(data: readonly JsonValue[], keyOf: KeyOf): SplitRecords {
  return splitRecords(data.map((json) => PageRecord.ofJson(json, { key: keyOf(json) })));
}

/** A record with a key is an object. */
function isKeyed(record: PageRecord): record is KeyedRecord {
  return record.key !== undefined;
}

function rejectOf({ json, unreadableAt: offset }: PageRecord): RejectedRecord {
  if (offset !== undefined) return { reason: 'unreadable', raw: json as string, key: null, offset };
  return { reason: isJsonObject(json) ? 'no-key' : 'not-an-object', raw: json, key: null };
}

/** Whether a reject has not been reported before. */
export type RejectFilter = (record: RejectedRecord) => boolean;

/**
 * Creates the filter for the rejects of a page: a bad record is reported again only once its content has changed. `isKnown`: whether a
 * digest was reported at an earlier read.
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

/** Digest of a reject's reason and content without volatile fields: 16 bytes, as a `latin1` string. */
export function rejectDigest({ reason, raw }: RejectedRecord, volatile?: VolatileFields): string {
  return createHash('sha256')
    .update(`${reason} ${canonicalJson(volatile ? volatile.without(raw) : raw)}`)
    .digest()
    .toString('latin1', 0, DIGEST_BYTES);
}

/** Result of {@link chooseKeyFields}. */
type KeyChoice =
  /** The first suitable candidate. */
  | { readonly fields: readonly string[] }
  /** `seen`: sorted names of all fields, so that the operator can choose. */
  | { readonly fields: undefined; readonly seen: readonly string[] };

/** Fraction of the records that may lack the candidate fields, at the first and at the second attempt. Such records become dead letters. */
const A_FEW = 1 / 10;
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

/** Returns the names of all fields of the records, sorted. */
export function fieldNames(records: readonly JsonObject[]): string[] {
  return [...new Set(records.flatMap(Object.keys))].sort();
}
