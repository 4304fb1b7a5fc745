// Anchors: records that a scan has read before, by which it recognizes that a page continues the previous one without a gap; and the
// positions at which scans resume.

import { createHash } from 'node:crypto';
import { boundedMap } from '../../core/bounded-map.ts';
import { canonicalJson, isJsonObject } from '../../schemas/json/json.ts';
import type { JsonValue } from '../../schemas/json/json.ts';
import type { KeyOf } from '../records/key-of.ts';
import type { PageRecords } from '../records/page-records.ts';
import { volatileFields } from '../records/volatile-fields.ts';

/** A record that was read: its key, and a digest of its content or of the bytes in which it was received. */
export type Anchor = readonly [key: string, digest: string];

/** The position at which a scan resumes, with the anchors that show whether the next page joins. Plain JSON, stored in cursors. */
export interface Position {
  /** List offset of the next page. */
  readonly offset: number;
  /** Number of records from the start of the newest page that joined to the start of the next page. */
  readonly step: number;
  /** Anchors (records chosen to recognize whether the next page joins) of each of the last pages that joined, in list order. */
  readonly anchors: readonly (readonly Anchor[])[];
  /** Number of consecutive steps back (to an earlier offset, because a page did not join) that led to this position. */
  readonly stepsBack: number;
  /** Fields that the digests of the anchor records leave out, as sorted JSON Pointers. Undefined for none. */
  readonly leftOut?: readonly string[];
  /** Page size, for a list read in whole pages: `offset` is a multiple of it. Undefined for other lists. */
  readonly pageSize?: number;
  /** Set if whole pages cannot overlap at this offset: the page is accepted without an anchor (a record that was read before). */
  readonly isBlind?: true;
}

/** Position at which a scan of a whole list begins. */
export const BEGINNING: Position = { offset: 0, step: 0, anchors: [], stepsBack: 0 };

/** Result of {@link joinPage}: whether a page joins the scan, and where the scan continues. */
export interface JoinResult {
  /** Whether the page joins: every record up to its end has been read, or has changed since. */
  readonly anchored: boolean;
  /** Whether unchanged records are in a different order than before: the list has no total order, and records may be missed. */
  readonly swapped: boolean;
  /**
   * Position of the next page; further back after a page that does not join. Computed on access, as it is not needed after the last page.
   */
  readonly next: Position;
  /** Whether there were too many consecutive steps back to earlier offsets, so that `next` is the beginning of the list. */
  readonly adrift: boolean;
}

/** Options of {@link joinPage}. */
export interface JoinOptions {
  /** Number of records by which the next page begins before the end of this one; at most half of the page is used. */
  readonly overlap: number;
  readonly keyOf: KeyOf;
  /** Fields that the digests of new anchor records leave out, as sorted JSON Pointers. Default none. */
  readonly leftOut?: readonly string[];
  /** Cache of content digests, shared by the scans of a list. Default none. */
  readonly contents?: ContentDigests;
}

/**
 * Number of newest pages of a scan whose anchors (records that were read before) are stored. Too small: a scan that steps back several
 * times meets no anchor.
 */
const ANCHORED_PAGES = 4;
/** Number of anchor records chosen from all over a page, so that a scan that steps back meets one. */
const SPREAD_PER_PAGE = 10;
/** Maximum number of anchor records taken from the end of a page. */
const MAX_LAST = 20;
/**
 * Number of consecutive steps back (to an earlier offset, because a page did not join) after which a scan begins again. Too large: a scan
 * of a list that changes quickly takes many requests to give up.
 */
const MAX_STEPS_BACK = 8;

/**
 * Compares a page with what a scan has read before, and computes where the scan continues.
 *
 * Records of a list shift while it is paged: after deletions, the plain next offset skips as many records as were deleted. So each page
 * begins `overlap` records early, and counts only if it contains an anchor: a record, unchanged, that the scan has read before. In a list
 * with a total order, everything before the anchor was read when the anchor was, and everything after it on the page follows without a gap.
 * A record that moved across the anchor did so because it changed, and the next poll or sweep reads it. A page without an anchor shows that
 * more records were removed than the overlap: the scan steps back to the start of the previous page, of which it has more anchors. The
 * first page of the list needs no anchor.
 *
 * A list without a total order, or sorted differently for each request, is detected by anchors that have changed their order.
 *
 * Fields that differ in every response would leave no record unchanged, so digests leave them out. If only the key of a record is left, a
 * digest of it would be the same after the record has moved. It is then made of the key and of the keys of the records before it in the
 * list: a moved record has other neighbours.
 */
export function joinPage(at: Position, records: PageRecords, options: JoinOptions): JoinResult {
  const page = anchorPage(records, options, at.leftOut ?? NO_FIELDS);
  let anchored = at.offset === 0 || at.isBlind === true;
  let swapped = false;
  for (const anchors of at.anchors) {
    let last = -1;
    for (const [key, digest] of anchors) {
      const place = page.placeOf(key);
      if (place === undefined || !page.isAsIn(digest, place)) continue;
      anchored = true;
      if (place < last) swapped = true;
      last = place;
    }
  }
  if (!anchored) {
    const adrift = at.stepsBack >= MAX_STEPS_BACK;
    const offset = adrift ? 0 : Math.max(0, at.offset - Math.max(1, at.step));
    const next = { ...replanned(at), offset, stepsBack: adrift ? 0 : at.stepsBack + 1 };
    return { anchored, swapped, next, adrift };
  }
  const next = lazily(() => positionBehind(at, records, page, options));
  return {
    anchored,
    swapped,
    get next() {
      return next();
    },
    adrift: false,
  };
}

/** Returns the position of a scan after a page that joins. */
function positionBehind(
  at: Position,
  records: PageRecords,
  page: AnchorPage,
  options: JoinOptions,
): Position {
  const { leftOut = NO_FIELDS } = options;
  // A server may return smaller pages than requested: use the number of received records, and always advance.
  const overlap = Math.min(options.overlap, Math.floor(records.length / 2));
  const step = Math.max(1, records.length - overlap);
  const before = at.leftOut ?? NO_FIELDS;
  const isAsBefore =
    leftOut.length === before.length && leftOut.every((field, place) => field === before[place]);
  const anchors = isAsBefore
    ? [...at.anchors, chooseAnchors(page, overlap)].slice(-ANCHORED_PAGES)
    : [chooseAnchors(anchorPage(records, options, leftOut), overlap)]; // earlier digests were made with other fields left out
  return {
    offset: at.offset + step,
    step,
    anchors,
    stepsBack: 0,
    ...(leftOut.length > 0 && { leftOut }),
  };
}

/** Returns the position without its planned page size and `isBlind`, so that the next page is planned again. */
export function replanned(at: Position): Position {
  const { offset, step, anchors, stepsBack, leftOut } = at;
  return { offset, step, anchors, stepsBack, ...(leftOut && { leftOut }) };
}

const NO_FIELDS: readonly string[] = [];

/** Keys and digests of a page's records by index, for the comparison with anchors (records that were read before). */
interface AnchorPage {
  readonly length: number;
  /** Key of the record at an index; undefined for a record that cannot be recognized again. */
  readonly keyAt: (place: number) => string | undefined;
  /** Index of the record with a key; undefined if there is none. */
  readonly placeOf: (key: string) => number | undefined;
  /**
   * Digest of the record at an index as it is stored in an anchor: of the record's content, or of its bytes if they are known. Undefined if
   * neither can be made.
   */
  readonly digest: (place: number, of: 'content' | 'bytes') => string | undefined;
  /** Whether an anchor record's digest matches the content or the bytes of the record at an index. */
  readonly isAsIn: (digest: string, place: number) => boolean;
}

/**
 * Creates the {@link AnchorPage} of a page. A record without a key is identified by the one before it, as equal records may be anywhere in
 * the list.
 */
function anchorPage(
  records: PageRecords,
  { keyOf, contents: met }: Pick<JoinOptions, 'keyOf' | 'contents'>,
  leftOut: readonly string[],
): AnchorPage {
  const { without } = volatileFields(leftOut);
  const ownKeyAt = (place: number) => records.at(place)?.key;
  const contents: (string | undefined)[] = []; // cached by index, as computing one may take parsing
  const content = (place: number): string | undefined => {
    if (!(place in contents)) contents[place] = contentOf(place);
    return contents[place];
  };
  const contentOf = (place: number): string | undefined => {
    const sentAs = met && leftOut.length === 0 ? records.at(place)!.sentAs() : undefined;
    if (!met || sentAs === undefined) return digestOfContent(place);
    const known = met.get(sentAs) ?? digestOfContent(place);
    if (known !== undefined) met.set(sentAs, known); // also after a hit, so that the entry is not evicted
    return known;
  };
  const digestOfContent = (place: number): string | undefined => {
    const record = records.at(place)!.json;
    const left = without(record);
    if (left === record || !isKeyAlone(left, keyOf)) return digestOf(left);
    const neighbours = Array.from({ length: NEIGHBOURS }, (_, k) => ownKeyAt(place - k));
    return neighbours.includes(undefined) ? undefined : digestOf(neighbours as string[]);
  };
  const bytes = (place: number) => {
    const digest = leftOut.length === 0 ? records.at(place)?.sentAs() : undefined;
    return digest && digestOfBytes(digest);
  };
  const behind = (place: number) => {
    const before = place > 0 ? content(place - 1) : undefined;
    return before === undefined ? undefined : `after ${before}`;
  };
  const keyAt = (place: number) => ownKeyAt(place) ?? behind(place);
  /** Index of the last record with each key, for pages in which records lack a key or share one. */
  const lastPlaces = lazily(() => new Map(records.all().map((_, place) => [keyAt(place), place])));
  const placeOf = (key: string): number | undefined => {
    const { keys } = records;
    if (!keys || keys.size < keys.length) return lastPlaces().get(key);
    const place = keys.placeOf(key);
    return place !== undefined && ownKeyAt(place) === key ? place : undefined;
  };
  return {
    length: records.length,
    keyAt,
    placeOf,
    digest: (place, of) => (of === 'bytes' ? bytes(place) : undefined) ?? content(place),
    isAsIn: (digest, place) =>
      digest.startsWith(BY_BYTES) ? digest === bytes(place) : digest === content(place),
  };
}

/** Returns a function that computes a value on the first call and returns the same value ever after. */
function lazily<T>(make: () => T): () => T {
  let made: T | undefined;
  return () => (made ??= make());
}

/**
 * Number of consecutive keys by which an anchor (a record that was read before) is recognized if it has no comparable fields except its
 * key: a record that moves within the list does not take its neighbours along.
 */
const NEIGHBOURS = 5;

/** Whether a record of which some fields were left out (`left`) has no fields except those that make up its key. */
function isKeyAlone(left: JsonValue, keyOf: KeyOf): boolean {
  if (!isJsonObject(left)) return false;
  const members = Object.entries(left);
  const key = keyOf(left);
  return members.every((member) => {
    const others = members.filter((other) => other !== member);
    return keyOf(Object.fromEntries(others)) !== key;
  });
}

/**
 * Chooses the anchor records of a page: its last records, for the next page, and a few spread over the page, for steps back. The last one
 * and every fifth have digests of their content, because a server may send the same record in different bytes the next time.
 */
function chooseAnchors(page: AnchorPage, overlap: number): readonly Anchor[] {
  const { digest, keyAt, length } = page;
  const stride = Math.max(1, Math.floor(length / SPREAD_PER_PAGE));
  const last = length - Math.min(overlap, MAX_LAST);
  const chosen: (readonly [place: number, key: string])[] = [];
  for (let place = 0; place < length; place += 1) {
    if (place < last && place % stride !== 0) continue;
    const key = keyAt(place);
    if (key !== undefined) chosen.push([place, key]);
  }
  return chosen.flatMap(([place, key], nth): Anchor[] => {
    const isByContent = (chosen.length - 1 - nth) % BY_CONTENT_EVERY === 0;
    const anchorDigest = digest(place, isByContent ? 'content' : 'bytes');
    return anchorDigest === undefined ? [] : [[key, anchorDigest]];
  });
}

/**
 * Interval at which the anchor records of a page have a digest of their content instead of their bytes. Too small: digests of content are
 * expensive, since the record is parsed, sorted and serialized.
 */
const BY_CONTENT_EVERY = 5;
/** Length of an anchor record's digest, in base64url characters: enough to tell the versions of one record apart. */
const DIGEST_LENGTH = 12;
/** Prefix of an anchor record's digest if it was made of the record's bytes; no digest of a record's content begins with it. */
const BY_BYTES = '=';

function digestOfBytes(digest: string): string {
  return BY_BYTES + Buffer.from(digest, 'latin1').toString('base64url').slice(0, DIGEST_LENGTH);
}

/** Digest of a record's content: its canonical JSON. */
function digestOf(record: JsonValue): string {
  return createHash('sha1')
    .update(canonicalJson(record))
    .digest('base64url')
    .slice(0, DIGEST_LENGTH);
}

/**
 * Cache of content digests, keyed by the digest of the bytes in which a record was received. A content digest takes twenty times as long as
 * one of bytes, since the record is parsed, sorted and serialized; and most anchors of a scan are the same as in the previous scan.
 */
export interface ContentDigests {
  /** Returns the content digest of the record with these bytes; undefined if they were not seen, or not recently. */
  readonly get: (digestOfBytes: string) => string | undefined;
  /** Adds the content digest of the record with these bytes, or renews its entry. */
  readonly set: (digestOfBytes: string, digestOfContent: string) => void;
}

/** Maximum number of cached content digests, about 100 bytes each: enough for the anchor records of a few hundred pages. */
const MAX_KEPT = 2_000;

/** Creates the cache of content digests for all scans of one list. */
export function contentDigests(): ContentDigests {
  return boundedMap(MAX_KEPT);
}
