// Scans a list page by page: checks that pages join, counts distinct keys, and repeats a scan that is not consistent.

import { defer, EMPTY, expand, finalize, map, of, switchMap } from 'rxjs';
import type { Observable } from 'rxjs';
import { recordsOf } from '../decode/response.ts';
import type { Answer } from '../decode/response.ts';
import { PagePlan } from '../http/page-plan.ts';
import type { PagePlace, PlanFinding } from '../http/page-plan.ts';
import { KeyIndex } from '../records/key-index.ts';
import type { KeyOf } from '../records/key-of.ts';
import { PageRecords } from '../records/page-records.ts';
import { BEGINNING, contentDigests, joinPage, replanned } from './anchors.ts';
import type { ContentDigests, Position } from './anchors.ts';
import { idleness, isIdle } from './idleness.ts';
import { readAhead } from './read-ahead.ts';
import type { ReadAhead } from './read-ahead.ts';
import { ignoredFields as newIgnoredFields, standstill } from './standstill.ts';
import type { LeftOut } from './standstill.ts';

/** A page of a scan. */
export interface ScanPage {
  readonly answer: Answer;
  /** List offset of the page's first record. */
  readonly offset: number;
  /** Position at which the scan resumes once this page has been processed; undefined after the last page. */
  readonly next: Position | undefined;
}

/** A problem detected while a list is paged. Only `unsettled`, `gap` and `cut` mean that records may be missing. */
export type ScanTrouble =
  /**
   * The page has no anchor (unchanged record that was read before), so records were removed before it. The scan steps back to an earlier
   * offset.
   */
  | 'stepped-back'
  /** There were too many consecutive steps back to earlier offsets. The scan begins again. */
  | 'adrift'
  /** Unchanged records are in a different order than before: the list has no total order. */
  | 'reordered'
  /** A repetition of the scan read fewer records than `total_records`, which did not change. */
  | 'short'
  /** The last repetition of the scan was still reordered or short: records may have been missed. */
  | 'unsettled'
  /** The server claims a next page although pages bring no new records. The scan ends there. */
  | 'endless'
  /** A page has a gap: a record that no response contains, because every page with it fails. It is left out until the next scan. */
  | 'gap'
  /** The list is capped: the API serves no records from some offset on although the list has more. Those are only read by polls. */
  | 'cut'
  | PlanFinding;

/** Options of {@link pages}. */
export interface PagesOptions {
  /** Requests one page. Must emit asynchronously: 1,700 synchronous pages in a row overflow the stack. */
  readonly request: (query: PagePlace) => Observable<Answer>;
  /** Returns the key of a record. Must be the same function with which the decoder makes keys. */
  readonly keyOf: KeyOf;
  /** Number of records to request per page. Default 1,000, the most that the API returns; at least 2, since pages overlap. */
  readonly pageSize?: number;
  /** Number of records by which each page begins before the end of the previous one: 1 to half a page. Default 10. */
  readonly overlap?: number;
  /** Position to resume from. Default (undefined or null): the beginning of the list. A resumed scan is not compared with the total. */
  readonly from?: Position | null | undefined;
  /** Chooses offsets and sizes of requests by how the server treats them; shared by all scans of a list. Default a new one. */
  readonly plan?: PagePlan | undefined;
  /** Fields that are left out when anchor records are compared; shared by all scans of a list. Default: those that this scan detects. */
  readonly leftOut?: LeftOut;
  /** Cache of content digests of anchor records; shared by all scans of a list. Default a new one. */
  readonly contents?: ContentDigests;
  /** Subscribed before each page; the page is requested once it emits. Provides backpressure. Default: emits at once. */
  readonly permit?: () => Observable<unknown>;
  /**
   * Read-ahead of pages, so that slow responses do not slow down the scan. Default none: a page is requested after the previous one
   * arrived.
   */
  readonly ahead?: ReadAhead<Answer>;
  /** Called for each problem, with the list offset of its page. */
  readonly onTrouble?: (trouble: ScanTrouble, offset: number) => void;
}

/**
 * Scans a list page by page until its end; completes after the last page. If the list has a total order, no record that does not move
 * within it is missed, whatever is added, changed and removed during the scan: each page begins some records early, and counts only if it
 * contains a record that was read before, unchanged (an anchor). So records are emitted more than once.
 *
 * A server may begin pages at other offsets than requested, or return fewer records. Pages are then requested at the offsets where the
 * server does begin them, and still overlap (see {@link PagePlan}). The offset in a response and `has_next_page` are not relied on.
 *
 * If a field differs in every response, no record is ever unchanged. After three pages that did not join, without progress in between,
 * anchors leave out the fields that differ between records with equal `updated_at` (see {@link LeftOut}).
 *
 * A second check does not depend on the order of the list: if `total_records` did not change, the scan must have read as many distinct
 * records. If it read fewer, or if the total changed and unchanged records were reordered, the list is scanned again from the beginning
 * with a larger overlap, at most twice, until all have been read. In a list that puts changed records first, the first page of the repeated
 * round is often enough: the missing records have moved there during the scan.
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
    leftOut = newIgnoredFields(),
    plan = new PagePlan(),
    contents = contentDigests(),
    ahead = { most: 0 },
  } = options;
  const from = options.from ?? BEGINNING;
  const pageSize = Math.max(2, options.pageSize ?? 1_000);

  return defer(() => {
    let overlap = Math.max(1, options.overlap ?? 10); // `joinPage` limits it to half a page
    let round = 0;
    const tally = from.offset === 0 ? distinctKeyCounter() : undefined;
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
      const joint = joinPage(at, records, { overlap, keyOf, contents, leftOut: leftOut.fields() });
      const page = (next: Position | undefined): ScanPage => ({ answer, offset: at.offset, next });
      const tell = (trouble: ScanTrouble) => onTrouble?.(trouble, at.offset);

      if (answer.isCut && (length === 0 || joint.anchored)) {
        onTrouble?.('cut', at.offset + length);
        return page(undefined);
      }
      const { total_records: total, has_next_page: claimsNext } = pagination;
      const end = at.offset + length;
      // Servers that wrap around claim a next page even after the end.
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
        if (at.offset > 0) return page(BEGINNING); // the pages so far did not begin at the requested offsets
      }
      // Requests the page again, at the start of a whole page: the received one may be any page.
      if (!wasWhole && plan.isWhole && isElsewhere) return page(replanned(asked));

      if (joint.swapped && !reordered) tell('reordered');
      reordered ||= joint.swapped || at.isBlind === true;
      if (length === 0) emptyAt = at.offset;
      if (!joint.anchored) {
        tell(joint.adrift ? 'adrift' : 'stepped-back');
        leftOut.add(still.failed(records, leftOut.fields()));
        return page(still.mustReadBlind() ? { ...asked, isBlind: true } : joint.next);
      }
      // The server may claim a next page that is empty. The list then ends there, once a page that joins ends at the same offset again:
      // no record has moved in front of that offset.
      const isAtEmpty = end === emptyAt;
      const isOver = idle.isOver({
        hasNewKey: tally?.isCounting() ? isNews : undefined,
        isIdle: isIdle(at, records),
        isShort: length < place.pageSize,
        hasNext: claimsNext,
        end,
        total,
        pageSize,
      });
      if (isOver) tell('endless');
      // A server may return a short page and claim that it is the last. Its total shows otherwise, as long as pages bring new records.
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

      const isConsistent = missing === undefined ? !reordered : missing === 0;
      if (isConsistent) return page(undefined);
      if (round === MAX_REPEATED_ROUNDS) {
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
    /** Returns the position after a page that joined, aligned to a whole page if the list is read in whole pages. */
    const following = (next: Position, end: number): Position => {
      if (!plan.isWhole) return next;
      const { isBlind, ...place } = plan.next(end, end - next.offset, pageSize);
      const step = Math.max(1, place.offset - next.offset + next.step);
      return { ...replanned(next), ...place, step, ...(isBlind && { isBlind }) };
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

/**
 * Maximum number of repetitions of a scan that was not consistent; each has five times the overlap of the one before. Too large: a faulty
 * list is scanned in vain.
 */
const MAX_REPEATED_ROUNDS = 2;
/** Largest total for which a scan counts distinct keys, which bounds memory: a longer list is only checked for its order. */
const MAX_COUNTED = 250_000;

/** Creates the counter of a scan's distinct keys, whose number is compared with an unchanged total. */
function distinctKeyCounter() {
  const seen = new KeyIndex();
  /** Keys of the first page until a second page arrives: within one page every record counts towards the total, even if keys repeat. */
  let first: KeyIndex | undefined;
  let total: number | undefined;
  let counting = true;
  let repeats = 0; // number of records whose key repeats that of another record of their page

  const count = (keys: KeyIndex): boolean => {
    const before = seen.size;
    seen.addAll(keys);
    repeats += keys.length - keys.size;
    return seen.size > before;
  };
  return {
    /** Adds a page; returns whether it has a key not seen before. Always false once counting has stopped. */
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
    /** Whether keys are being counted: the total has not changed, and is not too large. */
    isCounting: (): boolean => counting && total !== undefined,
    /** Returns the number of records that the total implies and that were not read; undefined if keys are not counted. */
    missing: (): number | undefined =>
      counting && total !== undefined
        ? Math.max(0, total - (first ? first.length : seen.size + repeats))
        : undefined,
  };
}
