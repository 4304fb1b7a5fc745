// Separates keyed records from rejects, and chooses the key fields of a list without a description.

import { createHash } from 'node:crypto';
import { canonicalJson, isJsonObject } from '../../schemas/json/json.ts';
import type { JsonObject, JsonValue } from '../../schemas/json/json.ts';
import { keyOfFields } from './key-of.ts';
import type { KeyOf } from './key-of.ts';
import { PageRecord, PageRun } from './page-record.ts';
import type { KeyedRecord } from './page-record.ts';
import type { PageRecords } from './page-records.ts';
import type { Stamps } from './stamps.ts';
import { volatileFields } from './volatile-fields.ts';
import type { VolatileFields } from './volatile-fields.ts';

/** Reason why an element of a page's `data` is rejected. */
export type RejectReason =
  'not-an-object' | 'no-key' | 'conflicting-duplicate' | 'too-large' | 'unreadable';

/** A reject: an element of a page's `data` that cannot be published as it is. */
export type RejectedRecord = RejectedJson | RejectedText;

/** Returns the list offset of a reject (a record that cannot be published) if known, otherwise `ofPage`: that of its page, or null. */
export function listedOffset(rejected: RejectedRecord, ofPage: number | null): number | null {
  return rejected.reason === 'unreadable' ? rejected.offset : ofPage;
}

/** A rejected element that is valid JSON. */
export interface RejectedJson {
  readonly reason: Exclude<RejectReason, 'unreadable'>;
  readonly raw: JsonValue;
  /** Key of the rejected record; null if it has none. */
  readonly key: string | null;
}

/** A rejected element that is not valid JSON. */
export interface RejectedText {
  readonly reason: 'unreadable';
  /** Text of the element. For a list with hidden personal fields: a JSON text with `sha256` and `length` of the element's text. */
  readonly raw: string;
  readonly key: null;
  readonly offset: number;
}

/** Records of a page, separated into those that can be published and those that are rejected. */
export interface SplitRecords {
  /** Records that can be published. Their keys are distinct. */
  readonly keyed: readonly KeyedRecord[];
  readonly rejected: readonly RejectedRecord[];
  /** Indexes of the `rejected` elements on the page, in the same order as `rejected`. */
  readonly rejectedAt: readonly number[];
}

/** The records of a page: single ones that can be published, runs of records that were recognized together, and rejected ones. */
export interface SplitPage extends SplitRecords {
  /** Runs of adjacent records that were recognized together. Their records are not in `keyed`. */
  readonly runs: readonly PageRun[];
}

/**
 * Separates the records of a page that can be published from those that are rejected. Runs (adjacent records that were recognized together)
 * are returned as runs, unless a record of the page has no key, or two have the same key.
 *
 * @param volatile Fields to ignore when records with the same key are compared: see {@link splitRecords}.
 */
export function splitPageRecords(records: PageRecords, volatile?: VolatileFields): SplitPage {
  const { keys, parts } = records;
  if (!keys || keys.size < records.length) {
    return { ...splitRecords(records.all(), volatile), runs: [] };
  }
  const keyed = parts.filter((part): part is KeyedRecord => part instanceof PageRecord);
  const runs = parts.filter((part) => part instanceof PageRun);
  return { keyed, runs, rejected: [], rejectedAt: [] };
}

/**
 * Separates records that can be published from rejects, in page order. Of several records with the same key, the first is published. The
 * others are dropped if they equal the first except for volatile fields, and rejected otherwise.
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

/**
 * Determines the keys of parsed records, and separates the records that can be published from the rejects. Without `stamps`, the records
 * have no modification and creation times.
 */
export function keyRecords(
  data: readonly JsonValue[],
  keyOf: KeyOf,
  stamps?: Stamps,
): SplitRecords {
  return splitRecords(data.map((json) => PageRecord.ofJson(json, { key: keyOf(json), stamps })));
}

/** Whether a record has a key. A record with a key is always a JSON object. */
function isKeyed(record: PageRecord): record is KeyedRecord {
  return record.key !== undefined;
}

function rejectOf({ json, unreadableAt: offset }: PageRecord): RejectedRecord {
  if (offset !== undefined) return { reason: 'unreadable', raw: json as string, key: null, offset };
  return { reason: isJsonObject(json) ? 'no-key' : 'not-an-object', raw: json, key: null };
}

/** Whether to report a rejected record: false if one with equal reason and content has been reported before. */
export type RejectFilter = (record: RejectedRecord) => boolean;

/**
 * Creates the filter for the rejects of one page (records that can't be published). It passes a reject unless one with equal reason and
 * content was passed before, or is known from an earlier read.
 *
 * @param isKnown Whether a reject with this digest was reported in an earlier read. Default: none was.
 * @param volatile Fields that are ignored when contents are compared.
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

/** Digest of the reason of a reject and of its content without volatile fields: 16 bytes, as a `latin1` string. */
export function rejectDigest({ reason, raw }: RejectedRecord, volatile?: VolatileFields): string {
  return createHash('sha256')
    .update(`${reason} ${canonicalJson(volatile ? volatile.without(raw) : raw)}`)
    .digest()
    .toString('latin1', 0, DIGEST_BYTES);
}

/** Result of {@link chooseKeyFields}: the key fields, or the names of all fields if no candidate is suitable. */
type KeyChoice =
  /** Names of the key fields: the first of the `candidates` of {@link chooseKeyFields} that is suitable. */
  | { readonly fields: readonly string[] }
  /** No candidate for the key fields is suitable. `seen`: sorted names of all fields, so that the operator can choose. */
  | { readonly fields: undefined; readonly seen: readonly string[] };

/**
 * A candidate for the key fields is suitable only if at most this fraction of a page's records has no key. Records without a key become
 * dead letters.
 */
const A_FEW = 1 / 10;
/** Fraction of a page's records that may have no key if no candidate for the key fields is suitable with `A_FEW`. */
const MOST = 1 / 5;

/**
 * Chooses the key fields of a list: returns the first suitable candidate (one field or several), or the names of all fields if none is.
 * Undefined for a page without JSON objects.
 *
 * A candidate is suitable if at least nine tenths of the JSON objects have a key, and no two objects with the same key differ. If no
 * candidate is suitable, four fifths are enough.
 *
 * @param data Elements of a page.
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

/** Returns the sorted names of all top-level fields of the records. */
export function fieldNames(records: readonly JsonObject[]): string[] {
  return [...new Set(records.flatMap(Object.keys))].sort();
}
