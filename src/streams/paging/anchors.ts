// Anchors, by which a scan recognizes that a page continues the previous one without a gap; and the positions at which scans resume.

import { hash } from 'node:crypto';
import { boundedMap } from '../../core/bounded-map.ts';
import { canonicalJson, isJsonObject } from '../../schemas/json/json.ts';
import type { JsonValue } from '../../schemas/json/json.ts';
import type { KeyOf } from '../records/key-of.ts';
import type { PageRecords } from '../records/page-records.ts';
import { volatileFields } from '../records/volatile-fields.ts';

/** Key and digest of a record that the scan has read. A later page that has this record unchanged follows without a gap. */
export type Anchor = readonly [key: string, digest: string];

/** The position at which a scan resumes. Plain JSON, stored in cursors. */
export interface Position {
  /** List offset of the page to read next. */
  readonly offset: number;
  /**
   * Number of records by which the scan last advanced. If the page at `offset` leaves a gap, the scan steps back by this number or, if
   * `earlier` is set, to a position in it.
   */
  readonly step: number;
  /**
   * Anchors of the newest accepted pages, one array per page, in list order. The next page leaves no gap if it shows one of these records
   * unchanged.
   */
  readonly anchors: readonly (readonly Anchor[])[];
  /** Number of times in a row that the scan has stepped back to an earlier offset; 0 once a page continues the scan. */
  readonly stepsBack: number;
  /**
   * Fields that were removed from the records before the digests in `anchors` were computed, as sorted JSON Pointers. Undefined if none
   * were removed.
   */
  readonly leftOut?: readonly string[];
  /** Page size of the next request. If undefined, or if `offset` is not a multiple of it, the page plan chooses the page size. */
  readonly pageSize?: number;
  /** Set if the scan accepts the page at this position even without an anchor (an unchanged record that the scan has read before). */
  readonly isBlind?: true;
  /**
   * Value to send in place of the offset: the key of the record before the page, the cursor or address from the previous response, or the
   * page number. Undefined for the first page, and in a list that is paged by offset.
   */
  readonly cursor?: string;
  /**
   * Start positions of the last few accepted pages, in list order. If the next page leaves a gap, the scan steps back to them. Only for
   * lists paged by the key of a record.
   */
  readonly earlier?: readonly Pick<Position, 'offset' | 'cursor'>[];
}

export const BEGINNING: Position = { offset: 0, step: 0, anchors: [], stepsBack: 0 };

/** Result of {@link joinPage}: whether a page continues the scan without a gap, and where the scan continues. */
export interface JoinResult {
  /**
   * Whether the page continues the scan without a gap: it contains an unchanged record that was read before, or is accepted without one
   * (like the first page).
   */
  readonly anchored: boolean;
  /**
   * Whether unchanged records are in a different order than when the scan read them before. The list then has no total order, and records
   * may be missed.
   */
  readonly swapped: boolean;
  /** Position of the next page. If the page does not continue the scan (`anchored` false), a position further back. Computed on access. */
  readonly next: Position;
  /** Whether this page has no anchor after `MAX_STEPS_BACK` steps back in a row. `next` is then the beginning of the list. */
  readonly adrift: boolean;
  /**
   * Whether the page has keys of anchors (records that the scan read before), but no digest can be computed for any of them. Such a page
   * can't be matched, and stepping back does not help.
   */
  readonly lacksDigests: boolean;
}

/** Options of {@link joinPage}. */
export interface JoinOptions {
  /** Number of records by which the next page begins before the end of this one. Limited to half of the page. */
  readonly overlap: number;
  readonly keyOf: KeyOf;
  /** Fields to ignore in the digests of the page's new anchors (see {@link Anchor}), as sorted JSON Pointers. */
  readonly leftOut: readonly string[];
  /** Cache of the digests of records' contents, shared by the scans of a list. */
  readonly contents: ContentDigests;
}

/**
 * Number of a scan's newest pages whose anchors (records that link later pages to them) are stored. If it is too small, a scan that steps
 * back several times finds no anchor.
 */
const ANCHORED_PAGES = 4;
/**
 * Maximum number of pages by which a scan can step back, in a list that is paged by record key. It limits the length of
 * {@link Position.earlier}.
 */
export const MAX_EARLIER = ANCHORED_PAGES;
/**
 * Approximate number of anchors (records by which later pages are joined to this one) that are spread over a page. If it is too small, a
 * scan that steps back may find no anchor.
 */
const SPREAD_PER_PAGE = 10;
const MAX_LAST = 20;
/**
 * Maximum number of consecutive steps back before a scan begins again at the start of the list. If it is too large, a list that changes
 * quickly costs many requests.
 */
const MAX_STEPS_BACK = 8;

/**
 * Compares a page with what a scan has read before, and computes where the scan continues.
 *
 * - Each page begins `overlap` records before the end of the previous one, because deletions move later records to smaller list offsets.
 * - A page is accepted if it contains an anchor: an unchanged record that the scan has read before. In a list with a total order, the scan
 *   has then read all records before the anchor, and the records after it follow without a gap.
 * - A record moves across the anchor only if it is changed, and then the next poll or sweep reads it.
 * - After a page without an anchor, the scan steps back to the start of the previous page. The first page of the list needs no anchor.
 * - If anchors are in a different order than before, the list has no total order.
 *
 * Digests of anchors leave out the fields that differ in every response; otherwise no record would count as unchanged.
 */
export function joinPage(at: Position, records: PageRecords, options: JoinOptions): JoinResult {
  const page = new AnchorPage(records, options, at.leftOut ?? NO_FIELDS);
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
    const known = at.anchors.flat().flatMap(([key]) => page.placeOf(key) ?? []);
    // Possible only if all fields except the key are ignored: then too few records precede, and earlier pages overlap by as few.
    const lacksDigests =
      known.length > 0 && known.every((place) => page.digest(place, 'content') === undefined);
    return { anchored, swapped, next, adrift, lacksDigests };
  }
  let next: Position | undefined;
  return {
    anchored,
    swapped,
    get next() {
      return (next ??= positionBehind(at, records, page, options));
    },
    adrift: false,
    lacksDigests: false,
  };
}

function positionBehind(
  at: Position,
  records: PageRecords,
  page: AnchorPage,
  options: JoinOptions,
): Position {
  const { leftOut } = options;
  // A server may return smaller pages than requested: use the number of received records, and always advance.
  const overlap = Math.min(options.overlap, Math.floor(records.length / 2));
  const step = Math.max(1, records.length - overlap);
  const before = at.leftOut ?? NO_FIELDS;
  const isAsBefore =
    leftOut.length === before.length && leftOut.every((field, place) => field === before[place]);
  const anchors = isAsBefore
    ? [...at.anchors, chooseAnchors(page, overlap)].slice(-ANCHORED_PAGES)
    : [chooseAnchors(new AnchorPage(records, options, leftOut), overlap)]; // earlier digests were made with other fields left out
  return {
    offset: at.offset + step,
    step,
    anchors,
    stepsBack: 0,
    ...(leftOut.length > 0 && { leftOut }),
  };
}

/** Returns a position without its fixed page size and cursor, so that offset and size of the next request are chosen anew. */
export function replanned(at: Position): Position {
  const { offset, step, anchors, stepsBack, leftOut } = at;
  return { offset, step, anchors, stepsBack, ...(leftOut && { leftOut }) };
}

const NO_FIELDS: readonly string[] = [];

/** A page's records as the scan compares them with anchors (records that it read before): key and digest of the record at each index. */
class AnchorPage {
  readonly #records: PageRecords;
  readonly #keyOf: KeyOf;
  readonly #known: ContentDigests;
  readonly #isComplete: boolean;
  readonly #without: (record: JsonValue) => JsonValue;
  /** Digests of content by index, cached because a record may have to be parsed for its digest. */
  readonly #contents: (string | undefined)[] = [];
  /** Last index at which each key occurs. Computed only if a record of the page has no key, or several records have the same key. */
  #lastPlaces: ReadonlyMap<string | undefined, number> | undefined;

  /** @param leftOut Fields that are left out of the content when a record's digest is computed. */
  constructor(records: PageRecords, { keyOf, contents }: JoinOptions, leftOut: readonly string[]) {
    this.#records = records;
    this.#keyOf = keyOf;
    this.#known = contents;
    this.#isComplete = leftOut.length === 0;
    this.#without = volatileFields(leftOut).without;
  }

  get length(): number {
    return this.#records.length;
  }

  /**
   * Returns a text that identifies the record at index `place` of the page: its key. For a record without a key, the text is `after` and
   * the content digest of the previous record. Undefined if that digest is missing.
   */
  keyAt(place: number): string | undefined {
    const key = this.#ownKeyAt(place);
    if (key !== undefined) return key;
    // The record's own content may occur anywhere in the list.
    const before = place > 0 ? this.#content(place - 1) : undefined;
    return before === undefined ? undefined : `after ${before}`;
  }

  placeOf(key: string): number | undefined {
    const { keys } = this.#records;
    if (!keys || keys.size < keys.length) {
      const records = this.#records.all();
      this.#lastPlaces ??= new Map(records.map((_, place) => [this.keyAt(place), place]));
      return this.#lastPlaces.get(key);
    }
    const place = keys.placeOf(key);
    return place !== undefined && this.#ownKeyAt(place) === key ? place : undefined;
  }

  /**
   * Returns a digest of the record at index `place`; undefined if it cannot be computed. With `bytes`, it is made of the record's bytes if
   * possible, otherwise of its content.
   */
  digest(place: number, of: 'content' | 'bytes'): string | undefined {
    return (of === 'bytes' ? this.#bytes(place) : undefined) ?? this.#content(place);
  }

  /**
   * Whether the record at index `place` still has `digest`, which was computed for it on an earlier page: from its bytes if `digest` begins
   * with `BY_BYTES`, otherwise from its content.
   */
  isAsIn(digest: string, place: number): boolean {
    return digest === (digest.startsWith(BY_BYTES) ? this.#bytes(place) : this.#content(place));
  }

  #ownKeyAt(place: number): string | undefined {
    return this.#records.at(place)?.key;
  }

  #bytes(place: number): string | undefined {
    const digest = this.#isComplete ? this.#records.at(place)?.sentAs() : undefined;
    return digest && digestOfBytes(digest);
  }

  #content(place: number): string | undefined {
    if (!(place in this.#contents)) this.#contents[place] = this.#contentOf(place);
    return this.#contents[place];
  }

  #contentOf(place: number): string | undefined {
    const sentAs = this.#isComplete ? this.#records.at(place)!.sentAs() : undefined;
    if (sentAs === undefined) return this.#digestOfContent(place);
    const known = this.#known.get(sentAs) ?? this.#digestOfContent(place);
    if (known !== undefined) this.#known.set(sentAs, known); // also after a hit, so that the entry is not evicted
    return known;
  }

  #digestOfContent(place: number): string | undefined {
    const record = this.#records.at(place)!.json;
    const left = this.#without(record);
    if (left === record || !isKeyAlone(left, this.#keyOf)) return digestOf(left);
    // Nothing but the key is left to compare. A record that moves gets other neighbours, so the keys before it show that it has moved.
    const neighbours = Array.from({ length: NEIGHBOURS }, (_, k) => this.#ownKeyAt(place - k));
    return neighbours.includes(undefined) ? undefined : digestOf(neighbours as string[]);
  }
}

/**
 * Number of keys that make up the digest of a record if all its fields except the key are ignored: its own key and those of the records
 * before it.
 */
const NEIGHBOURS = 5;

/** Whether `left`, a record without its ignored fields, has no fields besides those of its key. */
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
 * Chooses a page's anchors (records that link later pages to it): its last records, which the next page overlaps, and a few that are spread
 * over the page, in case the scan steps back.
 */
function chooseAnchors(page: AnchorPage, overlap: number): readonly Anchor[] {
  const { length } = page;
  const stride = Math.max(1, Math.floor(length / SPREAD_PER_PAGE));
  const last = length - Math.min(overlap, MAX_LAST);
  const chosen: (readonly [place: number, key: string])[] = [];
  for (let place = 0; place < length; place += 1) {
    if (place < last && place % stride !== 0) continue;
    const key = page.keyAt(place);
    if (key !== undefined) chosen.push([place, key]);
  }
  return chosen.flatMap(([place, key], nth): Anchor[] => {
    const isByContent = (chosen.length - 1 - nth) % BY_CONTENT_EVERY === 0;
    const anchorDigest = page.digest(place, isByContent ? 'content' : 'bytes');
    return anchorDigest === undefined ? [] : [[key, anchorDigest]];
  });
}

/**
 * Number of successive anchors of which one is recognized by its content, even if the server sends it in different bytes. The others are
 * recognized by their bytes. If the number is too small, more records have to be parsed.
 */
const BY_CONTENT_EVERY = 5;
/** Length of a digest in base64url characters. Sufficient to distinguish the versions of one record. */
const DIGEST_LENGTH = 12;
/** Prefix of anchor digests made from a record's bytes. Digests made from a record's content are base64url, which has no `=`. */
const BY_BYTES = '=';

function digestOfBytes(digest: string): string {
  return BY_BYTES + Buffer.from(digest, 'latin1').toString('base64url').slice(0, DIGEST_LENGTH);
}

function digestOf(record: JsonValue): string {
  return hash('sha1', canonicalJson(record), 'base64url').slice(0, DIGEST_LENGTH);
}

/** Cache of the digests of records' contents, by the digest of their bytes. A digest of content takes twenty times as long to compute. */
export interface ContentDigests {
  /** Returns the content digest; undefined if it is not in the cache. */
  readonly get: (digestOfBytes: string) => string | undefined;
  /** Adds an entry, or marks it as recently used. */
  readonly set: (digestOfBytes: string, digestOfContent: string) => void;
}

/**
 * Maximum number of entries in a cache of content digests, about 100 bytes each. If it is too small, digests are computed again in each
 * scan.
 */
const MAX_DIGESTS = 2_000;

export function contentDigests(): ContentDigests {
  return boundedMap(MAX_DIGESTS);
}
