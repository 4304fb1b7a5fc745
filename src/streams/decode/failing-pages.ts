import { defer, finalize, tap } from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import { inSteps, waitFor } from '../flow/steps.ts';
import type { Steps } from '../flow/steps.ts';
import type { PagePlace, PagePlan } from '../http/page-plan.ts';
import type { Answer } from './response.ts';
import { aroundFailing } from './around-failing.ts';
import type { FailingOffsets } from './around-failing.ts';
import { isPageRefused, PageAttempts } from './page-attempts.ts';
import type { PageAttemptsOptions, PageQuery } from './page-attempts.ts';

interface FailingPagesOptions extends PageAttemptsOptions {
  readonly failingOffsets: FailingOffsets;
  readonly scheduler: SchedulerLike;
}

/**
 * Distance, in records, from a failing record to the next one that is requested as a test. If it is too small, a few adjacent bad records
 * are taken for a cap (a list offset from which on the API serves no records).
 */
const APART = 11;
/**
 * Minimum time, in ms, from the first sign of a cap (a list offset from which on the API serves no records) until transient errors are
 * accepted as evidence of it. If it is too short, an outage of a part of the API looks like a cap, and the end of the list is not read. If
 * it is too long, an initial snapshot waits for records that are never served.
 */
const LIMIT_AFTER_MS = 10 * 60_000;

/**
 * Creates the function that reads a page after the requests for it were given up. The function may return a smaller page, a page at another
 * offset, or the page with an unreadable record in place of the one that fails. Its steps:
 *
 * 1. A record elsewhere in the list is requested. If that fails too, the API is at fault and not the page, and an error is thrown.
 * 2. A page of two records elsewhere shows whether the server begins pages at the requested offsets. If not, only whole pages are requested
 *    (see {@link PagePlan}).
 * 3. The failing page itself is requested again, and returned if it succeeds.
 * 4. The failing page is split, and the part of it that fails is split again. If all parts succeed, the page was too large: its first part
 *    is returned.
 * 5. If a single failing record remains, the records around it are requested, and then that record again. If it still fails, an unreadable
 *    record is put in its place.
 *
 * These steps take some 20 requests the first time, and three whenever the page is read later (see {@link FailingOffsets}).
 *
 * If no record from some list offset on can be read, this offset is a cap: search engines, for example, refuse offsets over 10,000. The
 * function then returns the page's records before the cap, marked with `isCut`.
 */
export function failingPages(
  options: FailingPagesOptions,
): (query: PageQuery, error: unknown) => Observable<Answer> {
  const { plan, failingOffsets, scheduler } = options;
  let since: number | undefined;
  /**
   * Whether an error is accepted as evidence of a cap (a list offset from which on the API serves no records). A refusal is accepted at
   * once, any other error once {@link LIMIT_AFTER_MS} have passed since the first call.
   */
  const isLasting = (error: unknown): boolean => {
    since ??= scheduler.now();
    return isPageRefused(error) || scheduler.now() - since >= LIMIT_AFTER_MS;
  };

  const narrowed = (query: PageQuery, error: unknown): Observable<Answer> =>
    defer(() => {
      const { offset, pageSize } = query;
      const attempts = new PageAttempts(options, query, error);
      const around = aroundFailing(attempts, plan, failingOffsets);

      const isAligned = () => !plan.isWhole || offset % pageSize === 0;
      /**
       * Requests a whole page (one whose list offset is a multiple of its size) in place of the failed page. If the whole page fails as
       * well, reads what can be read of it.
       */
      function* aligned(): Steps<Answer> {
        const place = plan.wholeAt(offset, pageSize);
        const answer =
          (yield* attempts.attempt(place)) ??
          (yield* waitFor(narrowed({ ...query, ...place }, error)));
        const begins = answer.offset ?? place.offset;
        return begins === offset ? answer : { ...answer, offset: begins };
      }
      /** Finds out why the request for the page failed, and returns what can be read of the page. */
      function* search(): Steps<Answer> {
        failingOffsets.forget(attempts.isDated, offset, pageSize);
        const other = yield* attempts.probe(); // a page elsewhere in the list, which shows that the API is available
        const { total } = other;
        if (offset > 0 && total !== undefined && total <= offset) return emptyResponseBehind(other);
        const isUnknown = pageSize > 1 && !plan.isWhole && !plan.isTrying;
        if (isUnknown && !(yield* attempts.beginsWhereAsked(other))) plan.foundWhole();
        const again = isAligned() ? yield* attempts.attempt({ offset, pageSize }) : undefined;
        if (again) return again;
        if (!isAligned()) return yield* aligned();
        return (yield* beforeCap(other, offset)) ?? (yield* inParts(total));
      }
      /**
       * Reads the page when only the record at list offset `at` can be the cause of the failure. The record is requested alone first.
       * Returns:
       *
       * - if the record can be read now: `front`, or the response with the record if there is no `front`;
       * - if the API serves no records from `at` on (a cap): a response with the page's records before `at`;
       * - otherwise: the page with a gap in place of the record.
       *
       * @param front Response to the first part of the page, which ends at or before `at`; undefined if the failing record is the first of
       * the page.
       */
      function* alone(at: number, front: Answer | undefined): Steps<Answer> {
        const answer = yield* attempts.attempt({ offset: at, pageSize: 1 }, 'some');
        if (answer) return front ?? answer; // the next page begins after `front`, so it contains the record
        return (yield* beforeCapAt(at)) ?? (yield* around.at(at));
      }
      /**
       * Tests whether the API serves no records from list offset `at` on (a cap). If so, returns the response with the page's records
       * before the cap; otherwise undefined. Throws the error of the failed page, marked as retryable, if the cap is new and not certain
       * yet.
       *
       * @param other Response for a page elsewhere in the list.
       * @param isKnown Whether the plan already has a cap at or before `at`.
       */
      function* beforeCap(other: Answer, at: number, isKnown = false): Steps<Answer | undefined> {
        if (at === 0 || !(yield* isCap(attempts, at, other.total))) return undefined;
        if (!isKnown && !isLasting(attempts.error)) return attempts.retryLater();
        // Requests the page elsewhere once more: the API or the token may have failed since then.
        yield* attempts.probe();
        const before = yield* around.front(at);
        plan.limitFound(at);
        return attempts.cutResponse(before, other);
      }
      /**
       * Calls `beforeCap` for `at`, with a newly requested record elsewhere in the list as `other`. Throws if that request is given up,
       * because the API may be unavailable.
       */
      function* beforeCapAt(at: number, isKnown = false): Steps<Answer | undefined> {
        return yield* beforeCap(yield* attempts.probe(), at, isKnown);
      }
      /**
       * Tests whether the page fails because it reaches beyond the known cap: list offset `plan.servedTo`, from which on the API serves no
       * records. If so, returns the page's records before the cap. Otherwise returns undefined; the plan forgets a cap that is gone.
       */
      function* beforeKnownCap(): Steps<Answer | undefined> {
        const cap = Math.max(offset, plan.servedTo);
        if (cap >= offset + pageSize) return undefined;
        const answer = yield* beforeCapAt(cap, true);
        if (!answer) plan.limitFound(Infinity);
        return answer;
      }
      function* inParts(total = Infinity): Steps<Answer> {
        // A whole page is not shortened: its parts have to be whole pages as well.
        const size = plan.isWhole ? pageSize : Math.min(pageSize, Math.max(1, total - offset));
        const failing = { offset, pageSize: size };
        const answer = size < pageSize ? yield* attempts.attempt(failing) : undefined;
        return answer ?? (yield* splitPage(attempts, plan, failing, alone));
      }
      function* read(): Steps<Answer> {
        if (!isAligned()) return yield* aligned();
        return (yield* around.known()) ?? (yield* beforeKnownCap()) ?? (yield* search());
      }

      return inSteps(read).pipe(
        tap((answer) => attempts.transferSettlement(answer)),
        finalize(() => attempts.settle()),
      );
    });
  return narrowed;
}

/** Returns the response for a page beyond the end of the list: no records, and the total of `other`, a page elsewhere in the list. */
function emptyResponseBehind(other: Answer): Answer {
  const { span, serverTime, elapsedMs = 0, age, total } = other;
  other.records?.settle();
  return {
    ...{ span, serverTime, elapsedMs, age },
    data: [],
    total,
    hasNext: false,
  };
}

/**
 * Splits a failing page, then the part of it that fails, and so on:
 *
 * - If all parts of a page succeed, the page was too large: returns the response to the first part, and `plan` requests smaller pages from
 *   then on.
 * - If a single failing record is left, returns what `alone` returns.
 *
 * @param alone Reads the page around the failing record at list offset `at`. `front` is the response to the first part of the page;
 * undefined if the failing record is the first of the page.
 */
function* splitPage(
  attempts: PageAttempts,
  plan: PagePlan,
  failing: PagePlace,
  alone: (at: number, front: Answer | undefined) => Steps<Answer>,
): Steps<Answer> {
  let page = failing;
  let front: Answer | undefined;
  let largest = 0; // size of the largest part that has succeeded
  for (;;) {
    const parts = plan.split(page);
    if (parts.length === 0) return yield* alone(page.offset, front);
    let failed: PagePlace | undefined;
    for (const part of parts) {
      // If a page of this size has succeeded, this one does not fail because of its size, and its last part must fail.
      const mustFail = part === parts.at(-1) && largest >= page.pageSize;
      const answer = mustFail ? undefined : yield* attempts.attempt(part);
      if (!answer) {
        failed = part;
        break;
      }
      front ??= answer;
      largest = Math.max(largest, part.pageSize);
    }
    if (!failed) {
      plan.tooLarge(largest, failing.pageSize);
      return front!;
    }
    page = failed;
  }
}

/**
 * Whether the API seems to serve no record from list offset `at` on. Requests up to four single records from `at` on, and returns false as
 * soon as the API serves one of them. Returns false too if the list has no record after `at`.
 */
function* isCap(attempts: PageAttempts, at: number, total = Infinity): Steps<boolean> {
  // If the total is unknown, the record two pages after `at` stands for the last one.
  const last = total === Infinity ? at + 2 * attempts.query.pageSize : total - 1;
  const behind = [at + APART, Math.floor((at + last) / 2), last];
  const places = [...new Set([at, ...behind])].filter((each) => each >= at && each < total);
  if (places.length < 2) return false; // at the end of the list, a cap cannot be distinguished from a bad record
  for (const offset of places) {
    if (yield* attempts.attempt({ offset, pageSize: 1 })) return false;
  }
  return true;
}
