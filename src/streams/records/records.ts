// Which records of a page can be published: they have a key of their own. The others are rejects, of which each is news once; and fields
// that nobody has described are chosen as the key by how few rejects they leave.

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

/** A page, split into what can be published and what can't. */
export interface SplitRecords {
  readonly keyed: readonly KeyedRecord[];
  readonly rejected: readonly RejectedRecord[];
  /** The places of those on the page. */
  readonly rejectedAt: readonly number[];
}

/** The same of a page as it was decoded. */
export interface SplitPage extends SplitRecords {
  /** What the records that are not in `keyed` were known again with. */
  readonly runs: readonly PageRun[];
}

/** Splits a page, and leaves its runs as they are where each of its records has a key of its own. */
export function splitPage(records: PageRecords, volatile?: VolatileFields): SplitPage {
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
 * Splits a page into records with a key of their own and those that can't have one. Order is kept. Of several with one key the first has
 * it: the others are dropped if they say the same, volatile fields aside, else rejected.
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
    if (!isKeyed(record)) return reject(place, rejectedBy(record));
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

/** The same of JSON that somebody else has read. */
export function keyRecords(data: readonly JsonValue[], keyOf: KeyOf): SplitRecords {
  return splitRecords(data.map((json) => PageRecord.ofJson(json, { key: keyOf(json) })));
}

/** A record that has a key is an object. */
function isKeyed(record: PageRecord): record is KeyedRecord {
  return record.key !== undefined;
}

function rejectedBy({ json, unreadableAt: offset }: PageRecord): RejectedRecord {
  if (offset !== undefined) return { reason: 'unreadable', raw: json as string, key: null, offset };
  return { reason: isJsonObject(json) ? 'no-key' : 'not-an-object', raw: json, key: null };
}

/** Whether a reject is news. */
export type KnownRejects = (record: RejectedRecord) => boolean;

/**
 * True for a reject of a page that is told for the first time: it is none of those that `isKnown` by their digests, nor came before on its
 * page. So the same bad record is not reported again at every read. Its content counts: one that has changed is news.
 */
export function knownRejects(
  isKnown: (digest: string) => boolean = () => false,
  volatile?: VolatileFields,
): KnownRejects {
  const told = new Set<string>();
  return (record) => {
    const digest = rejectDigest(record, volatile);
    if (told.has(digest) || isKnown(digest)) return false;
    told.add(digest);
    return true;
  };
}

const DIGEST_BYTES = 16;

/** What tells rejects apart, volatile fields not among it: 16 bytes, as `latin1`. */
export function rejectDigest({ reason, raw }: RejectedRecord, volatile?: VolatileFields): string {
  return createHash('sha256')
    .update(`${reason} ${canonicalJson(volatile ? volatile.without(raw) : raw)}`)
    .digest()
    .toString('latin1', 0, DIGEST_BYTES);
}

/** What the records of a page say of the fields that could be their key. */
type KeyChoice =
  /** The first candidate that the records have, with a value of its own for each that differs. */
  | { readonly fields: readonly string[] }
  /** None is; the names of all fields seen, sorted, so that a person can choose. */
  | { readonly fields: undefined; readonly seen: readonly string[] };

/** Of a page, so many records may lack their key: they go to dead letters, and the rest goes on. */
const A_FEW = 1 / 10;
const MOST = 1 / 5;

/**
 * Chooses the key of records that nobody has described: the first of `candidates` (each one field, or several together) that the objects of
 * the page have, all but a tenth of them, and that tells them apart, save those that say the same. If there is none, the first that a fifth
 * of them may lack. A page without objects says nothing: undefined.
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

/** The names of all fields that these records have, sorted. */
export function fieldNames(records: readonly JsonObject[]): string[] {
  return [...new Set(records.flatMap(Object.keys))].sort();
}
