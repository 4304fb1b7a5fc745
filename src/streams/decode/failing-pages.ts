import {
  catchError,
  concatMap,
  defer,
  finalize,
  from,
  map,
  of,
  switchMap,
  tap,
  throwError,
  toArray,
} from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import { CellarstreamError } from '../../core/errors.ts';
import { stringifyJson } from '../../schemas/json/json.ts';
import type { ListQuery } from '../http/list-query.ts';
import type { LogicalClock, Span } from '../http/logical-clock.ts';
import type { PagePlace, PagePlan } from '../http/page-plan.ts';
import type { PagePatience } from '../http/page-request.ts';
import { PageRecord } from '../records/page-record.ts';
import type { Answer } from './answer.ts';
import type { FailingPlaces } from './failing-places.ts';
import { OffsetLimit } from './offset-limit.ts';

/** A page's request failed in a way that may depend on what it asked for; `error` says how. */
export class PageFailure extends Error {
  readonly error: unknown;

  constructor(error: unknown) {
    super('the page failed');
    this.error = error;
  }
}

/** Statuses other than 5xx with which servers answer to pages that are too large, misplaced, or beyond the end. */
const STATUSES: ReadonlySet<number> = new Set([400, 404, 408, 413, 414, 416, 422]);
/** Those that say that a repetition is pointless. */
const REFUSALS: ReadonlySet<number> = new Set([400, 413, 414, 416, 422]);

/** Whether an error may depend on which page was asked for. An outage causes the same errors: only another page tells them apart. */
export function mayBeOfPage(error: unknown): boolean {
  if (!(error instanceof CellarstreamError)) return false;
  if (error.code === 'API_UNREACHABLE' || error.code === 'API_ANSWER') return true;
  const status = Number(error.context.status);
  return error.code === 'API_STATUS' && (status >= 500 || STATUSES.has(status));
}

function isPageRefused(error: unknown): boolean {
  return error instanceof CellarstreamError && REFUSALS.has(Number(error.context.status));
}

/** Failures in a row, and ms from the first to the newest, before a page is suspected. Too small: a short outage is taken for a bad page. */
const LEAST_FAILURES = 3;
const LEAST_MS = 5_000;

/**
 * How a page is asked for. `some`: a few times. `one`: once. `probe`: once too, as a page that other lanes read as well, so that a refusal says
 * something about the token.
 */
export type PageTries = 'some' | 'one' | 'probe';

/** Counts the failures of one page, and says after each whether the page is given up, to be read in another way. */
export function pagePatience(scheduler: SchedulerLike, tries: PageTries): PagePatience {
  let failures = 0;
  let since: number | undefined;
  return {
    isOfPage: (error) => tries !== 'probe' && isPageRefused(error),
    isGivenUp: (error) => {
      if (!mayBeOfPage(error)) return false;
      failures += 1;
      since ??= scheduler.now();
      if (tries !== 'some') return tries === 'one' || !isPageRefused(error);
      return failures >= LEAST_FAILURES && scheduler.now() - since >= LEAST_MS;
    },
  };
}

/** What {@link failingPages} needs. */
export interface FailingPagesOptions {
  /** Asks for another page; errors with a {@link PageFailure} after its tries. */
  readonly ask: (query: ListQuery, tries: PageTries) => Observable<Answer>;
  readonly plan: PagePlan;
  readonly places: FailingPlaces;
  readonly clock: LogicalClock;
  readonly scheduler: SchedulerLike;
}

/** Failing records side by side, at most: more of them are no fault of the records. */
const MAX_IN_A_ROW = 10;
/** Records behind a failing one that a page has to show, so that the next page can begin behind it too. */
const LEAST_BEHIND = 20;

/**
 * Reads a page that failed again and again in another way: smaller, elsewhere, or around the record that makes it fail.
 *
 * A page of one record elsewhere is asked for first. If it fails too, the API is at fault and not the page, and the page's own
 * error is thrown: the caller tries again later. A page of two records there shows whether the server begins pages where they are
 * asked for; if it does not, only whole pages are asked for (see {@link PagePlan}). Then the page is split, and the part that fails is split again. If all parts
 * can be had, the page was too large: its first part is the answer, and the plan has the new size. If it comes down to one record,
 * that record is asked for, then the page behind it, the one before it, and the record again. If it failed both times it has not
 * moved, and the parts are one page with a gap: an unreadable record, whose text says after which key it stands. So a page takes
 * some 20 requests once, and three whenever it is read later (see {@link FailingPlaces}).
 *
 * If every record from some place on fails, the API serves the list up to there only (see {@link OffsetLimit}): the answer has the
 * page's records in front of that place, and says that the list is cut. The place is remembered by the plan, and costs some seven
 * requests when it is met again.
 */
export function failingPages(
  options: FailingPagesOptions,
): (query: ListQuery & PagePlace, error: unknown) => Observable<Answer> {
  const { ask, plan, places, clock, scheduler } = options;
  const limit = new OffsetLimit(scheduler);

  const narrowed = (query: ListQuery & PagePlace, error: unknown): Observable<Answer> =>
    defer(() => {
      const { offset, pageSize } = query;
      const isDated = query.modifiedFromDate !== undefined;
      const begin = clock.begin();
      const unsettled = new Map<number, Answer>();
      let isUsed = false; // `begin` is the span of the answer
      const settle = (answer: Answer) => {
        clock.settle(answer.span.begin);
        if (!isUsed) answer.records?.settle(); // a joined page still reads the bodies of its parts
      };
      /** The page there; undefined if it fails. */
      const attempt = (part: PagePlace, tries: PageTries = 'one'): Observable<Answer | undefined> =>
        ask({ ...query, ...part }, tries).pipe(
          tap((answer) => {
            unsettled.set(answer.span.begin, answer);
            if (plan.isWhole || !isElsewhere(answer, part)) return;
            plan.foundWhole();
            throw error; // the page is tried again, in parts that the server does not move
          }),
          catchError((failure: unknown) =>
            failure instanceof PageFailure ? of(undefined) : throwError(() => failure),
          ),
        );
      const failed = () => throwError(() => error);
      /** Odd offsets; the first one outside of the page. */
      const [outside, ...inside] = offset > 0 ? [1, 5] : [pageSize | 1, 1, 5];
      const probe = () => attempt({ offset: outside, pageSize: 1 }, 'probe');

      const split = (
        page: PagePlace,
        front: Answer | undefined,
        good: number,
      ): Observable<Answer> => {
        const parts = plan.split(page);
        if (parts.length === 0) return alone(page.offset, front);
        const one = (
          nth: number,
          before: Answer | undefined,
          largest: number,
        ): Observable<Answer> => {
          const part = parts[nth]!;
          const isLast = nth === parts.length - 1;
          // A page as large as this one was fine: its size is not what makes it fail.
          if (isLast && largest >= page.pageSize) return split(part, before, largest);
          return attempt(part).pipe(
            switchMap((answer) => {
              if (!answer) return split(part, before, largest);
              const first = before ?? answer;
              const size = Math.max(largest, part.pageSize);
              if (!isLast) return one(nth + 1, first, size);
              plan.tooLarge(size);
              return of(first);
            }),
          );
        };
        return one(0, front, good);
      };
      const alone = (at: number, front: Answer | undefined): Observable<Answer> =>
        attempt({ offset: at, pageSize: 1 }, 'some').pipe(
          switchMap((answer) => (answer ? of(front ?? answer) : limited(at))),
          switchMap((answer) => (answer ? of(answer) : across(at))),
        );

      /** The page up to an offset from which on the API serves nothing. */
      const limitedTo = (at: number, { pagination, serverTime, elapsedMs = 0 }: Answer) =>
        front(at).pipe(
          map((data): Answer => {
            isUsed = true;
            plan.limitFound(at);
            const span = clock.answered(begin);
            const nothingBehind = { ...pagination, has_next_page: false };
            return { span, serverTime, elapsedMs, data, pagination: nothingBehind, isCut: true };
          }),
        );
      /** The page up to an offset if the API serves nothing from there on, and `other` elsewhere; undefined if it does. */
      const limitedBy = (other: Answer, at: number, isKnown = false) => {
        if (at === 0) return of(undefined);
        const { total_records: total } = other.pagination;
        return limit.isAt({ attempt, at, total, pageSize }).pipe(
          switchMap((isLimit) => {
            if (!isLimit) return of(undefined);
            const isBelieved = isKnown || limit.isLasting(isPageRefused(error));
            return isBelieved ? limitedTo(at, other) : failed();
          }),
        );
      };
      const limited = (at: number, isKnown = false): Observable<Answer | undefined> =>
        probe().pipe(switchMap((other) => (other ? limitedBy(other, at, isKnown) : failed())));

      const behind = (row: number[], at: number, most: number): Observable<Answer[]> => {
        const part = plan.from(at, Math.max(1, most));
        return attempt(part).pipe(
          switchMap((answer) => {
            if (answer) return more([answer], part.offset + part.pageSize, part.pageSize);
            if (part.pageSize > 1) return behind(row, at, Math.ceil(part.pageSize / 2));
            if (row.push(at) > MAX_IN_A_ROW) return failed();
            return probe().pipe(
              switchMap((other) =>
                other ? behind(row, at + 1, offset + pageSize - at - 1) : failed(),
              ),
            );
          }),
        );
      };
      /** Whole pages may be as short as one record just behind the failing one: then several. */
      const more = (answers: Answer[], at: number, length: number): Observable<Answer[]> => {
        const isEnough = length >= LEAST_BEHIND || !answers.at(-1)!.pagination.has_next_page;
        if (!plan.isWhole || isEnough) return of(answers);
        const part = plan.from(at, pageSize);
        return attempt(part).pipe(
          switchMap((answer) =>
            answer
              ? more([...answers, answer], part.offset + part.pageSize, length + part.pageSize)
              : of(answers),
          ),
        );
      };
      /** The records from the page's begin to the failing one: several whole pages, if one can't show them all. */
      const front = (
        at: number,
        read: readonly PageRecord[] = [],
      ): Observable<readonly PageRecord[]> => {
        const begins = offset + read.length;
        if (begins >= at) return of(read);
        const part = plan.from(begins, at - begins);
        return attempt(part).pipe(
          switchMap((answer) =>
            answer?.data.length === part.pageSize ? front(at, [...read, ...answer.data]) : failed(),
          ),
        );
      };
      const joined = (
        before: readonly PageRecord[],
        row: readonly number[],
        after: readonly Answer[],
      ): Answer => {
        isUsed = true;
        const key = before.at(-1)?.key;
        const gaps = row.map((at) => PageRecord.unreadable(gapText(isDated, key), at));
        const data = [...before, ...gaps, ...after.flatMap((each) => each.data)];
        const { serverTime, elapsedMs = 0 } = after[0]!;
        const { pagination } = after.at(-1)!;
        const span: Span = clock.answered(begin);
        return { span, serverTime, elapsedMs, data, pagination, hasGap: true };
      };
      const across = (at: number): Observable<Answer> => {
        const row = [at];
        return behind(row, at + 1, offset + pageSize - at - 1).pipe(
          switchMap((after) =>
            front(at).pipe(
              switchMap((before) =>
                from(row).pipe(
                  concatMap((each) => attempt({ offset: each, pageSize: 1 })),
                  toArray(),
                  switchMap((again) => {
                    if (again.some((each) => each !== undefined)) return failed();
                    if (row.length === 1) {
                      const [last, next] = [before.at(-1), after[0]!.data[0]];
                      places.add(isDated, { at, after: last?.key, before: next?.key });
                    }
                    return of(joined(before, row, after));
                  }),
                ),
              ),
            ),
          ),
        );
      };

      /** Around the place that failed the last time, if its neighbours are the same; undefined if not. */
      const asBefore = (): Observable<Answer | undefined> => {
        const known = places.find(isDated, offset, pageSize);
        if (!known) return of(undefined);
        const { place, until } = known;
        const part = plan.from(place.at + 1, Math.max(1, until - place.at - 1));
        return attempt(part).pipe(
          switchMap((answer) => {
            if (!answer || answer.data[0]?.key !== place.before) return of(undefined);
            return more([answer], part.offset + part.pageSize, part.pageSize).pipe(
              switchMap((after) =>
                front(place.at).pipe(
                  map((before) => {
                    const isSame = before.length === 0 || before.at(-1)?.key === place.after;
                    return isSame ? joined(before, [place.at], after) : undefined;
                  }),
                ),
              ),
            );
          }),
          catchError((failure: unknown) =>
            failure === error ? of(undefined) : throwError(() => failure),
          ),
        );
      };
      /** The page up to where the API was seen to serve the list, if that is still so; undefined if not. */
      const asLimited = (): Observable<Answer | undefined> => {
        const at = Math.max(offset, plan.servedTo);
        if (at >= offset + pageSize) return of(undefined);
        return limited(at, true).pipe(
          tap((answer) => {
            if (!answer) plan.limitFound(Infinity);
          }),
        );
      };
      const search = (): Observable<Answer> => {
        places.forget(isDated, offset, pageSize);
        return probe().pipe(
          switchMap((other) => {
            if (!other) return failed();
            const { total_records: total } = other.pagination;
            if (offset > 0 && total !== undefined && total <= offset)
              return of(nothingBehind(other));
            // Whole pages keep their size: a part of it has to be one as well.
            const size = plan.isWhole
              ? pageSize
              : Math.min(pageSize, Math.max(1, (total ?? Infinity) - offset));
            const inParts = () =>
              (size < pageSize ? attempt({ offset, pageSize: size }) : of(undefined)).pipe(
                switchMap((found) =>
                  found ? of(found) : split({ offset, pageSize: size }, undefined, 0),
                ),
              );
            return (
              pageSize > 1 && !plan.isWhole && !plan.isTrying
                ? placed(outside, inside, other)
                : of(true)
            ).pipe(
              switchMap((isPlaced) => {
                if (!isPlaced) plan.foundWhole();
                return isAligned() ? attempt({ offset, pageSize }) : of(undefined);
              }),
              switchMap((found) => {
                if (found) return of(found);
                if (!isAligned()) return aligned();
                return limitedBy(other, offset).pipe(
                  switchMap((answer) => (answer ? of(answer) : inParts())),
                );
              }),
            );
          }),
        );
      };
      /** Whether the server begins a page of two records at an odd offset; true if that can't be told. */
      const placed = (
        at: number,
        others: readonly number[],
        single: Answer | undefined,
      ): Observable<boolean> => {
        const elsewhere = () => {
          const [next, ...rest] = others;
          if (next === undefined) return of(true);
          return attempt({ offset: next, pageSize: 1 }).pipe(
            switchMap((answer) => placed(next, rest, answer)),
          );
        };
        const record = single?.data[0];
        if (!record) return elsewhere();
        return ask({ ...query, offset: at, pageSize: 2 }, 'one').pipe(
          tap((answer) => unsettled.set(answer.span.begin, answer)),
          switchMap((answer) =>
            of(!isElsewhere(answer, { offset: at }) && answer.data[0]?.key === record.key),
          ),
          catchError((failure: unknown) => {
            if (!(failure instanceof PageFailure)) return throwError(() => failure);
            return isPageRefused(failure.error) ? of(false) : elsewhere();
          }),
        );
      };
      const isAligned = () => !plan.isWhole || offset % pageSize === 0;
      /** The whole page that begins at the offset or before it. */
      const aligned = (): Observable<Answer> => {
        const place = plan.wholeAt(offset, pageSize);
        return attempt(place).pipe(
          switchMap((answer) => (answer ? of(answer) : narrowed({ ...query, ...place }, error))),
          map((answer) => {
            const begins = answer.offset ?? place.offset;
            return begins === offset ? answer : { ...answer, offset: begins };
          }),
        );
      };

      if (!isAligned()) return aligned();
      return asBefore().pipe(
        switchMap((answer) => (answer ? of(answer) : asLimited())),
        switchMap((answer) => (answer ? of(answer) : search())),
        tap(({ span }) => unsettled.delete(span.begin)),
        finalize(() => {
          unsettled.forEach(settle);
          if (!isUsed) clock.settle(begin);
        }),
      );
    });
  return narrowed;
}

/** Whether the server says that a page begins elsewhere than asked. */
function isElsewhere({ data, reported }: Answer, { offset }: Pick<PagePlace, 'offset'>): boolean {
  return data.length > 0 && reported?.offset !== undefined && reported.offset !== offset;
}

/** The answer to a page that lies behind the end, where the server answers it with an error. */
function nothingBehind(other: Answer): Answer {
  const { span, serverTime, elapsedMs = 0, pagination } = other;
  return {
    span,
    serverTime,
    elapsedMs,
    data: [],
    pagination: { ...pagination, has_next_page: false },
  };
}

/**
 * Text of a dead letter about a record that no answer holds. It stays the same as long as its place does, so it is reported
 * once; in windows of dates neighbours change, and are left out.
 */
function gapText(isDated: boolean, key: string | undefined): string {
  const where = isDated ? { query: 'modified since a date' } : { after: key ?? null };
  return stringifyJson({ unanswered: 'every page that holds the record fails', ...where });
}
