import { concatMap, every, from, of } from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import type { PagePlace } from '../http/page-plan.ts';
import type { Answer } from './answer.ts';

/** What {@link OffsetLimit} needs. */
export interface OffsetLimitOptions {
  /** Asks for a page; undefined if it fails. */
  readonly attempt: (place: PagePlace) => Observable<Answer | undefined>;
  /** The offset to look at. */
  readonly at: number;
  /** `total_records`; undefined if the server tells none. */
  readonly total: number | undefined;
  /** Records of the page that failed. */
  readonly pageSize: number;
}

/** Distance in records at which a second failure is not one of a few bad records in a row. Too small: bad records are taken for a limit. */
const APART = 11;
/**
 * How long failures that may pass (5xx, 404, no answer) last before they count as a limit, ms. Too small: the end of a list is left out
 * when one part of the API is away. Too large: an initial snapshot waits this long for records that never come.
 */
const PATIENCE_MS = 10 * 60_000;

/**
 * Decides whether the API serves no record from an offset on: search engines refuse offsets over 10,000 ("result window is too
 * large"), and databases time out far behind. One per page that is read; the caller has seen that pages elsewhere come.
 */
export class OffsetLimit {
  readonly #scheduler: SchedulerLike;
  #since: number | undefined;

  constructor(scheduler: SchedulerLike) {
    this.#scheduler = scheduler;
  }

  /** Asks for single records: at the offset, and at some places behind it up to the list's end. Emits whether all of them fail. */
  isAt({ attempt, at, total = Infinity, pageSize }: OffsetLimitOptions): Observable<boolean> {
    const last = total === Infinity ? at + 2 * pageSize : total - 1;
    const behind = [at + APART, Math.floor((at + last) / 2), last];
    const places = [...new Set([at, ...behind])].filter((each) => each >= at && each < total);
    if (places.length < 2) return of(false); // a bad record at the very end looks the same
    return from(places).pipe(
      concatMap((offset) => attempt({ offset, pageSize: 1 })),
      every((answer) => answer === undefined),
    );
  }

  /**
   * Whether failures of everything behind an offset are a limit by now.
   *
   * @param isRefusal Whether the API refuses the page in a way that no repetition changes.
   */
  isLasting(isRefusal: boolean): boolean {
    this.#since ??= this.#scheduler.now();
    return isRefusal || this.#scheduler.now() - this.#since >= PATIENCE_MS;
  }
}
