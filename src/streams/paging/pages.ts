import { defer, EMPTY, expand, finalize, map, of, switchMap } from 'rxjs';
import type { Observable } from 'rxjs';
import { recordsOf } from '../decode/answer.ts';
import type { Answer } from '../decode/answer.ts';
import { PagePlan } from '../http/page-plan.ts';
import type { PagePlace, PlanFinding } from '../http/page-plan.ts';
import { KeyIndex } from '../records/key-index.ts';
import type { KeyOf } from '../records/key-of.ts';
import { PageRecords } from '../records/page-records.ts';
import { BEGINNING, contentDigests, join, planned } from './anchors.ts';
import type { ContentDigests, Position } from './anchors.ts';
import { idleness, isIdle } from './idleness.ts';
import { readAhead } from './read-ahead.ts';
import type { ReadAhead } from './read-ahead.ts';
import { leftOut as newLeftOut, standstill } from './standstill.ts';
import type { LeftOut } from './standstill.ts';

/** A page of a scan. */
export interface ScanPage {
  readonly answer: Answer;
  readonly offset: number;
  /** Where the scan goes on once this page is dealt with; undefined when it was the last. */
  readonly next: Position | undefined;
}

/** What is wrong with a list while it is paged. None of it loses a record by itself. */
export type ScanTrouble =
  /** No anchor in the page: records were removed before it. The scan steps back. */
  | 'stepped-back'
  /** Too many steps back in a row: the scan begins again. */
  | 'adrift'
  /** Unchanged records have changed places: the list has no total order. */
  | 'reordered'
  /** Fewer records than a `total_records` that held still, at the front of a repetition too. */
  | 'short'
  /** Still reordered or short after the last repetition: records may have been missed. */
  | 'unsettled'
  /** A next page is claimed although nothing new comes any more: the reading ends there. */
  | 'endless'
  /** A page has a record that no answer holds: each page with it fails. It is left out, and tried again by the next reading. */
  | 'gap'
  /** The API refuses offsets from some place on, or seems to show no record behind one: those are only found by polls. */
  | 'cut'
  | PlanFinding;

/** What {@link pages} needs. */
export interface PagesOptions {
  /** Asks for one page; must answer asynchronously (expand over 1,700 synchronous ones overflows the stack). */
  readonly request: (query: PagePlace) => Observable<Answer>;
  /** What its records' keys are made of, as whoever decodes them knows it. */
  readonly keyOf: KeyOf;
  /** Records a page. Default 1,000, the most that the API gives; at least 2, since pages overlap. */
  readonly pageSize?: number;
  /** How many records before its end the next page begins: 1 to half a page. Default 10. */
  readonly overlap?: number;
  /** Where to begin; null as undefined: nothing was read yet. Default the beginning. A scan that is resumed is not held against the total. */
  readonly from?: Position | null | undefined;
  /**
   * Where pages are asked for, by what the server is known to do with offsets; kept by the caller for all scans of the list. Default a new
   * one.
   */
  readonly plan?: PagePlan | undefined;
  /** The fields that anchors leave out; kept by whoever scans the list again. Default those that this scan finds. */
  readonly leftOut?: LeftOut;
  /** Digests of what anchors were made of; kept likewise. Default those of this scan. */
  readonly contents?: ContentDigests;
  /** Waited for before each page is taken: back-pressure. Default no wait. */
  readonly permit?: () => Observable<unknown>;
  /**
   * Pages that are asked for before it is known that they are the next, so that slow answers cost no time.
   * Default none: a page is asked for when the one before has come.
   */
  readonly ahead?: ReadAhead<Answer>;
  /** Told of what may cost records or time, with the offset of the page. */
  readonly onTrouble?: (trouble: ScanTrouble, offset: number) => void;
}

/**
 * Reads a list whole, page by page, as a chain that expands while `has_next_page`; completes when
 * the last page has been emitted. Nothing that stands still in the list is missed, whatever is
 * added, changed and removed meanwhile, if the list has a total order: each page begins some records
 * early, and counts only when it shows one of those that were read before, unchanged. So records come
 * more than once.
 *
 * A server may begin pages elsewhere than asked, or give fewer records than asked: pages are then asked for where it does
 * begin them, and still overlap (see {@link PagePlan}). What it says about itself is not relied on: neither where a page
 * begins nor whether another one follows.
 *
 * A list in which a field differs in every answer shows no record unchanged. When pages have not joined
 * three times, and none has led further, anchors leave out the fields that differ in records with one
 * `updated_at`: see {@link LeftOut}.
 *
 * A second check does without that order: when `total_records` held still, as many records have to
 * come. If fewer did, or if the list betrayed itself by an order that changes from request to
 * request and its total moved, it is read again with a larger overlap, until as many have come, twice at most. A
 * list that puts what has changed first needs only its first page for that: records moved there
 * behind the reader's back, which is no trouble.
 *
 * @example
 * ```ts
 * import { keyOfFields, listRequest, login, pages } from 'cellarstream/streams';
 * import { tokenBucket, tokenSource } from 'cellarstream/streams';
 *
 * const loginUrl = new URL('https://api.example/v1/auth/public/login');
 * const logins = tokenBucket({ capacity: 10, windowMs: 61_000 });
 * const token$ = login({ url: loginUrl, apiKey: () => 'the key', limit: logins });
 * const tokens = tokenSource({ login: token$ });
 * const list = listRequest({ url: new URL('https://api.example/v1/orders'), tokens });
 *
 * const quota = tokenBucket({ capacity: 100, windowMs: 61_000 });
 * const keyOf = keyOfFields(['order_number']);
 * pages({ request: (page) => list(page, quota), keyOf }).subscribe({
 *   next: ({ offset, answer }) => console.log(`${answer.data.length} orders from ${offset} on`),
 *   error: console.error,
 * });
 * ```
 */
export function pages(options: PagesOptions): Observable<ScanPage> {
  const { request, keyOf, permit = () => of(undefined), onTrouble } = options;
  const {
    leftOut = newLeftOut(),
    plan = new PagePlan(),
    contents = contentDigests(),
    ahead = { most: 0 },
  } = options;
  const from = options.from ?? BEGINNING;
  const pageSize = Math.max(2, options.pageSize ?? 1_000);

  return defer(() => {
    let overlap = Math.max(1, options.overlap ?? 10); // half a page at most: join sees to it
    let round = 0;
    const tally = from.offset === 0 ? newTally() : undefined;
    let reordered = false;
    let short = false;
    let emptyAt: number | undefined;
    let isFixed = plan.isFixed;
    let still = standstill();
    const idle = idleness();
    leftOut.add(from.leftOut ?? []);
    if (from.pageSize !== undefined) plan.foundWhole();

    const take = (asked: Position, place: PagePlace, answer: Answer): ScanPage => {
      const { pagination, reported } = answer;
      const at = { ...asked, offset: answer.offset ?? place.offset };
      const records = recordsOf(answer);
      const { length } = records;
      const isNews = tally?.add(records, pagination.total_records);
      const missing = tally?.missing();
      const joint = join(at, records, { overlap, keyOf, contents, leftOut: leftOut.fields() });
      const page = (next: Position | undefined): ScanPage => ({ answer, offset: at.offset, next });
      const tell = (trouble: ScanTrouble) => onTrouble?.(trouble, at.offset);

      if (answer.isCut && (length === 0 || joint.anchored)) {
        onTrouble?.('cut', at.offset + length);
        return page(undefined);
      }
      const { total_records: total, has_next_page: claimsNext } = pagination;
      const end = at.offset + length;
      // Servers that wrap around claim a next page behind the end too.
      const hasMore = claimsNext && end < (total ?? Infinity);
      if (answer.hasGap) tell('gap');
      else plan.saw({ place, length, hasNext: hasMore, reported });
      const isElsewhere =
        length > 0 && reported?.offset !== undefined && reported.offset !== place.offset;
      const isStuck = idle.isStuck(at, records, joint.anchored);
      const wasWhole = plan.isWhole;
      if (!wasWhole && (isElsewhere || isStuck)) plan.foundWhole();
      if (wasWhole && isStuck) plan.foundStuck();
      plan.findings().forEach(tell);
      if (plan.isFixed && !isFixed) {
        isFixed = true;
        if (at.offset > 0) return page(BEGINNING); // offsets so far were none of its pages
      }
      // The page is asked for once more, where a whole page begins: this one may be any page.
      if (!wasWhole && plan.isWhole && isElsewhere) return page(planned(asked));

      if (joint.swapped && !reordered) tell('reordered');
      reordered ||= joint.swapped || at.isBlind === true;
      if (length === 0) emptyAt = at.offset;
      if (!joint.anchored) {
        tell(joint.adrift ? 'adrift' : 'stepped-back');
        leftOut.add(still.failed(records, leftOut.fields()));
        return page(still.mustReadBlind() ? { ...asked, isBlind: true } : joint.next);
      }
      // A list may claim a next page that is empty: it ends where nothing was, once it is seen again
      // that nothing moved in front of that place.
      const isAtEmpty = end === emptyAt;
      const isOver = idle.isOver({
        isNews: tally?.isCounting() ? isNews : undefined,
        isIdle: isIdle(at, records),
        isShort: length < place.pageSize,
        hasNext: claimsNext,
        end,
        total,
        pageSize,
      });
      if (isOver) tell('endless');
      // A server may take a page for full that it has cut short: its total knows better, as long as pages bring something new.
      const isCutShort =
        length < place.pageSize &&
        end < (total ?? 0) &&
        (tally?.isCounting() ? isNews === true : !isIdle(at, records));
      const hasNext = claimsNext || isCutShort;
      const last = !hasNext || isAtEmpty || isOver;
      const repeated = round > 0;
      if (repeated && missing === 0) return page(undefined);
      if (repeated && missing && !short && (last || isNews === false)) {
        short = true;
        tell('short');
      }
      if (!last) {
        const next = following(joint.next, end);
        still.joined(end, records, next.anchors.at(-1) ?? []);
        return page(next);
      }

      const settled = missing === undefined ? !reordered : missing === 0;
      if (settled) return page(undefined);
      if (round === REPEATS) {
        tell('unsettled');
        return page(undefined);
      }
      round += 1;
      overlap *= 5;
      reordered = false;
      short = false;
      still = standstill();
      return page(BEGINNING);
    };
    /** Where the scan goes on behind a page that joined. */
    const following = (next: Position, end: number): Position => {
      if (!plan.isWhole) return next;
      const { isBlind, ...place } = plan.next(end, end - next.offset, pageSize);
      const step = Math.max(1, place.offset - next.offset + next.step);
      return { ...planned(next), ...place, step, ...(isBlind && { isBlind }) };
    };
    const placeOf = ({ offset, pageSize: size }: Position): PagePlace =>
      size !== undefined && offset % size === 0
        ? { offset, pageSize: size }
        : plan.at(offset, pageSize);
    const askedAhead = readAhead(request, ahead);
    const read = (at: Position): Observable<ScanPage> =>
      permit().pipe(
        switchMap(() => {
          const place = placeOf(at);
          const placeAfter = ({ offset, pageSize: size }: PagePlace): PagePlace | undefined => {
            if (!plan.isWhole) return at.step > 0 ? plan.at(offset + at.step, pageSize) : undefined;
            const next = plan.next(offset + size, overlap, pageSize);
            return { offset: next.offset, pageSize: next.pageSize };
          };
          const after = (each: PagePlace): PagePlace | undefined => {
            const next = placeAfter(each);
            return next && next.offset < plan.servedTo ? next : undefined;
          };
          return askedAhead.take(place, after).pipe(map((answer) => take(at, place, answer)));
        }),
      );
    return read(from).pipe(
      expand(({ next }) => (next ? read(next) : EMPTY)),
      finalize(() => askedAhead.drop()),
    );
  });
}

/** Times a scan that did not add up is repeated, each with five times the overlap. */
const REPEATS = 2;
/** Keys that a scan counts, at most: of a longer list only its order is watched. */
const MAX_COUNTED = 250_000;

/** Counts distinct records, to hold them against a total that did not change. */
function newTally() {
  const seen = new KeyIndex();
  /** The keys of the first page, until there is a second one: on one page every record is one of the total, whatever its key. */
  let first: KeyIndex | undefined;
  let total: number | undefined;
  let counting = true;
  let repeats = 0; // records that have the key of another one of their page

  const count = (keys: KeyIndex): boolean => {
    const before = seen.size;
    seen.addAll(keys);
    repeats += keys.length - keys.size;
    return seen.size > before;
  };
  return {
    /** Whether a page has a record that had not been seen; false once nothing is counted any more. */
    add: (records: PageRecords, pageTotal: number | undefined): boolean => {
      const isFirst = total === undefined;
      total ??= pageTotal;
      counting &&= total !== undefined && total === pageTotal && total <= MAX_COUNTED;
      const keys = counting ? records.keys : undefined;
      if (!keys) {
        counting = false;
        seen.clear();
        first = undefined;
        return false;
      }
      if (isFirst) {
        first = keys;
        return keys.length > 0;
      }
      if (first) count(first);
      first = undefined;
      return count(keys);
    },
    /** Whether keys are counted: the total has held still, and is not too large. */
    isCounting: (): boolean => counting && total !== undefined,
    /** Records that must be there and were not seen; undefined when that can't be told. */
    missing: (): number | undefined =>
      counting && total !== undefined
        ? Math.max(0, total - (first ? first.length : seen.size + repeats))
        : undefined,
  };
}
