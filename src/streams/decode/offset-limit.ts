import type { SchedulerLike } from 'rxjs';
import type { Steps } from '../flow/steps.ts';
import type { PagePlan } from '../http/page-plan.ts';
import type { Answer } from './response.ts';
import { isPageRefused } from './page-attempts.ts';
import type { PageAttempts } from './page-attempts.ts';

/**
 * Distance, in records, from the first failing record to the next one that is requested, to find out whether the API serves no records from
 * there on (a cap). If it is too small, a few adjacent bad records are taken for a cap.
 */
const APART = 11;
/**
 * How long the records from a list offset on must fail with transient errors before the API counts as capping the list there (serving no
 * records beyond it), in ms. If it is too small, the end of a list is left out when a part of the API is unavailable. If it is too large,
 * an initial snapshot waits for records that are never served.
 */
const LIMIT_AFTER_MS = 10 * 60_000;

/**
 * Decides whether a page failed because the API caps the list, that is, serves no records from some offset on. Search engines, for example,
 * refuse offsets over 10,000, and databases time out on large ones.
 *
 * @returns A function to call for each failed page. Its argument `attempts` sends the requests, and `front` requests the records of the
 * page in front of a list offset. It returns three tests. Each returns the response with the records in front of the cap, or undefined if
 * there is no cap:
 *
 * - `at` tests for a cap at a list offset;
 * - `beside` does the same, given a page elsewhere in the list that was read after the failure;
 * - `known` tests for the cap that earlier pages have shown.
 */
export function offsetLimit(plan: PagePlan, scheduler: SchedulerLike) {
  let since: number | undefined;
  /**
   * Whether a failure is accepted as evidence that the API caps the list (serves no records beyond some offset). A refusal is accepted at
   * once, any other failure only when {@link LIMIT_AFTER_MS} have passed since the first one.
   */
  const isLasting = (error: unknown): boolean => {
    since ??= scheduler.now();
    return isPageRefused(error) || scheduler.now() - since >= LIMIT_AFTER_MS;
  };

  return (attempts: PageAttempts, front: (end: number) => Steps<readonly Answer[]>) => {
    const { offset, pageSize } = attempts.query;

    /**
     * Tests whether the API has a cap at list offset `at`, that is, serves no records from there on. Called after the record at `at` failed
     * and `other`, a page elsewhere, succeeded. Returns the response with the records before the cap; undefined if there is no cap.
     *
     * A new cap is accepted if the server refused the failed page, or once pages have failed for `LIMIT_AFTER_MS`. Until then,
     * the error of the failed page is thrown, so that the page is retried.
     *
     * @param isKnown Whether the plan already has a cap at or before `at`. It is then accepted at once.
     */
    function* beside(other: Answer, at: number, isKnown = false): Steps<Answer | undefined> {
      if (at === 0 || !(yield* isLimit(attempts, at, other.total))) return undefined;
      if (!isKnown && !isLasting(attempts.error)) return attempts.retryLater();
      // Requests the page elsewhere once more: the API or the token may have failed since then.
      if (!(yield* attempts.probe())) return attempts.giveUp();
      const before = yield* front(at);
      plan.limitFound(at);
      return attempts.cutResponse(before, other);
    }
    /**
     * Tests whether the API has a cap at list offset `place` (serves no records from there on). First requests a page elsewhere in the
     * list, to see whether the API is available; if that request is given up too, throws the error of the failed page. Then does what
     * `beside` does, which also describes `isKnown` and the result.
     */
    function* at(place: number, isKnown = false): Steps<Answer | undefined> {
      const other = yield* attempts.probe();
      return other ? yield* beside(other, place, isKnown) : attempts.giveUp();
    }
    /**
     * Tests whether the page fails because of the cap that earlier pages have shown (at list offset `plan.servedTo`). If so, returns the
     * response with the page's records in front of the cap. Returns undefined if the page ends at or before that offset, or if the list is
     * not capped there any more; the plan then forgets the cap.
     */
    function* known(): Steps<Answer | undefined> {
      const place = Math.max(offset, plan.servedTo);
      if (place >= offset + pageSize) return undefined;
      const answer = yield* at(place, true);
      if (!answer) plan.limitFound(Infinity);
      return answer;
    }
    return { at, beside, known };
  };
}

/**
 * Returns whether the API seems to serve no record from list offset `at` on. For this it requests up to four single records: the one at `at`,
 * the one `APART` (11) records later, the last of the list, and one halfway between `at` and the last. If `total` is unknown (Infinity),
 * the record two pages after `at` stands for the last one. Returns false as soon as the API serves one of them, or if the list has no
 * record after `at`.
 */
function* isLimit(attempts: PageAttempts, at: number, total = Infinity): Steps<boolean> {
  const last = total === Infinity ? at + 2 * attempts.query.pageSize : total - 1;
  const behind = [at + APART, Math.floor((at + last) / 2), last];
  const places = [...new Set([at, ...behind])].filter((each) => each >= at && each < total);
  if (places.length < 2) return false; // at the end of the list, a cap cannot be distinguished from a bad record
  for (const offset of places) {
    if (yield* attempts.attempt({ offset, pageSize: 1 })) return false;
  }
  return true;
}
