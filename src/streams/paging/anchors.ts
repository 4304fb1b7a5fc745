// Anchors: records by which a page is known to join what was read before, and where a scan goes on.

import { createHash } from 'node:crypto';
import { boundedMap } from '../../core/bounded-map.ts';
import { canonicalJson, isJsonObject } from '../../schemas/json/json.ts';
import type { JsonValue } from '../../schemas/json/json.ts';
import type { KeyOf } from '../records/key-of.ts';
import type { PageRecords } from '../records/page-records.ts';
import { volatileFields } from '../records/volatile-fields.ts';

/** A record that was read, by its key and a digest of its content or of the bytes that it was sent in. */
export type Anchor = readonly [key: string, digest: string];

/** Where a scan goes on, and how it knows the place again. Plain JSON: a cursor carries it. */
export interface Position {
  readonly offset: number;
  /** Records from where the newest page that joined began to where the next one does. */
  readonly step: number;
  /** Some records of each of the newest pages, in the order of the list; the newest page last. */
  readonly anchors: readonly (readonly Anchor[])[];
  /** Steps back in a row that have led here. */
  readonly stepsBack: number;
  /** Fields that the anchors leave out, as JSON Pointers, sorted. Absent where they leave out none. */
  readonly leftOut?: readonly string[];
  /** Records to ask for, of a list that is read in whole pages: `offset` is a multiple of it. Absent for other lists. */
  readonly pageSize?: number;
  /** Whole pages can't overlap here: the page is taken without an anchor. */
  readonly isBlind?: true;
}

/** Where a scan of a whole list begins. */
export const BEGINNING: Position = { offset: 0, step: 0, anchors: [], stepsBack: 0 };

/** What a page is to a scan. */
export interface Joint {
  /** The page joins what was read: everything up to its end has been read, or has changed since. */
  readonly anchored: boolean;
  /** Records that have not changed stand in another order than before: no total order, no promise. */
  readonly swapped: boolean;
  /** Where to go on; after a page that does not join, further back. Worked out when asked for: behind a last page nobody does. */
  readonly next: Position;
  /** Too many steps back in a row: `next` is the beginning. */
  readonly adrift: boolean;
}

/** How pages overlap, for {@link join}. */
export interface JoinOptions {
  /** How many records before the end of a page the next one begins; at most half the page is. */
  readonly overlap: number;
  readonly keyOf: KeyOf;
  /** Fields that new anchors leave out, as JSON Pointers, sorted. Default none. */
  readonly leftOut?: readonly string[];
  /** Of contents that were met before. Default none. */
  readonly contents?: ContentDigests;
}

const PAGES_KEPT = 4;
const SPREAD_PER_PAGE = 10;
const MAX_LAST = 20;
const MAX_STEPS_BACK = 8;

/**
 * Holds a page against what a scan has read before, and says where to go on.
 *
 * A list that changes while it is paged moves under the reader: after deletions a plain next offset skips as many records. So each page
 * begins `overlap` records early and counts only when it shows, unchanged, a record that the scan has read before: in a list with a total
 * order everything before such an anchor was read when the anchor was, and everything behind it in the page is next to it. A record that
 * moved across the anchor did so because it changed, and the next window reads it. A page without an anchor says that more was removed than
 * the overlap: the scan steps back to where the page before began, where it knows more records. The beginning needs no anchor.
 *
 * The same reading of a list that was never sorted, or is sorted anew for each request, shows in anchors that have changed places.
 *
 * Fields that differ in every answer would leave no record unchanged. Anchors leave them out; but not all that tells whether a record has
 * changed: one of which nothing but its key is left is known by the keys of those that stand before it, or it might have moved.
 */
export function join(at: Position, records: PageRecords, options: JoinOptions): Joint {
  const page = identify(records, options, at.leftOut ?? NONE);
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
    const next = { ...planned(at), offset, stepsBack: adrift ? 0 : at.stepsBack + 1 };
    return { anchored, swapped, next, adrift };
  }
  const next = once(() => behind(at, records, page, options));
  return {
    anchored,
    swapped,
    get next() {
      return next();
    },
    adrift: false,
  };
}

/** Where a scan goes on behind a page that joins. */
function behind(at: Position, records: PageRecords, page: Page, options: JoinOptions): Position {
  const { leftOut = NONE } = options;
  // A server may give smaller pages than it was asked for: go by what came, and always forward.
  const overlap = Math.min(options.overlap, Math.floor(records.length / 2));
  const step = Math.max(1, records.length - overlap);
  const before = at.leftOut ?? NONE;
  const isAsBefore =
    leftOut.length === before.length && leftOut.every((field, place) => field === before[place]);
  const anchors = isAsBefore
    ? [...at.anchors, choose(page, overlap)].slice(-PAGES_KEPT)
    : [choose(identify(records, options, leftOut), overlap)]; // others would be of other contents
  return {
    offset: at.offset + step,
    step,
    anchors,
    stepsBack: 0,
    ...(leftOut.length > 0 && { leftOut }),
  };
}

/** A position whose page is planned anew. */
export function planned(at: Position): Position {
  const { offset, step, anchors, stepsBack, leftOut } = at;
  return { offset, step, anchors, stepsBack, ...(leftOut && { leftOut }) };
}

const NONE: readonly string[] = [];

interface Page {
  readonly length: number;
  /** Of the record at a place; undefined for one that can't be known again. */
  readonly keyAt: (place: number) => string | undefined;
  /** Undefined where no record has the key. */
  readonly placeOf: (key: string) => number | undefined;
  /**
   * What an anchor keeps of the record at a place: of its content, or of its bytes where they are known;
   * undefined where that says too little.
   */
  readonly digest: (place: number, of: 'content' | 'bytes') => string | undefined;
  /** Whether the record at a place is the one of which an anchor keeps this. */
  readonly isAsIn: (digest: string, place: number) => boolean;
}

/** A record without a key goes by the one before it: its like may be anywhere in the list. */
function identify(
  records: PageRecords,
  { keyOf, contents: met }: Pick<JoinOptions, 'keyOf' | 'contents'>,
  leftOut: readonly string[],
): Page {
  const { without } = volatileFields(leftOut);
  const ownKeyAt = (place: number) => records.at(place)?.key;
  const contents: (string | undefined)[] = []; // worked out when asked for, once: it may take parsing
  const content = (place: number): string | undefined => {
    if (!(place in contents)) contents[place] = contentOf(place);
    return contents[place];
  };
  const contentOf = (place: number): string | undefined => {
    const sentAs = met && leftOut.length === 0 ? records.at(place)!.sentAs() : undefined;
    if (!met || sentAs === undefined) return digestOfContent(place);
    const known = met.get(sentAs) ?? digestOfContent(place);
    if (known !== undefined) met.set(sentAs, known); // also where it was met: what is met again is kept
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
  /** Of a page in which a record has no key, or that of another one: the last of them has it. */
  const lastPlaces = once(() => new Map(records.all().map((_, place) => [keyAt(place), place])));
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

/** What a one-page list never asks for is not made. */
function once<T>(make: () => T): () => T {
  let made: T | undefined;
  return () => (made ??= make());
}

/** So many keys in a row are a place in a list: a record that moves takes no neighbours along. */
const NEIGHBOURS = 5;

/** Whether nothing is left of a record but what its key is made of. */
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
 * The last records of a page, for the next one; a few spread over it, for steps back. The last and some
 * others by their content: a server may send that in other bytes the next time.
 */
function choose(page: Page, overlap: number): readonly Anchor[] {
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
    const kept = digest(place, isByContent ? 'content' : 'bytes');
    return kept === undefined ? [] : [[key, kept]];
  });
}

/** Of the anchors of a page; content has to be parsed, sorted and written. */
const BY_CONTENT_EVERY = 5;
const DIGEST_LENGTH = 12;
/** Before a digest of bytes; no digest of content begins so. */
const BY_BYTES = '=';

function digestOfBytes(digest: string): string {
  return BY_BYTES + Buffer.from(digest, 'latin1').toString('base64url').slice(0, DIGEST_LENGTH);
}

/** Enough of a hash to tell the versions of one record apart. */
function digestOf(record: JsonValue): string {
  return createHash('sha1')
    .update(canonicalJson(record))
    .digest('base64url')
    .slice(0, DIGEST_LENGTH);
}

/**
 * Digests of records' contents, by those of the bytes that they were sent in. A content is parsed, put in order and written, which
 * takes twenty times as long as a digest of its bytes; and most anchors of a scan are those of the scan before.
 */
export interface ContentDigests {
  /** Undefined where the bytes were not met, or long ago. */
  readonly get: (digestOfBytes: string) => string | undefined;
  /** These bytes were looked into. */
  readonly set: (digestOfBytes: string, digestOfContent: string) => void;
}

/** Some 100 bytes each: those of the anchors of some hundred pages. */
const MAX_KEPT = 2_000;

/** For all scans of one list. */
export function contentDigests(): ContentDigests {
  return boundedMap(MAX_KEPT);
}
