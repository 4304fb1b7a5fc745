import { asyncScheduler, finalize, ReplaySubject, Subscription, tap } from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import type { Answer } from '../decode/response.ts';
import type { PagePlace } from '../http/page-plan.ts';

/** Options for requesting pages before it is known that they come next. */
export interface ReadAhead<T> {
  /**
   * Maximum number of pages that are requested ahead and not yet used. If it is too small, slow responses leave quota unused. 0 turns
   * read-ahead off.
   */
  readonly most: number;
  /** Shortest time that the quota allows between two requests, in ms. Fewer pages are requested ahead if it is long. Default 0. */
  readonly paceMs?: number;
  /** Called with a response that is discarded, and the list offset of its page: the page did not come next, or the scan ended. */
  readonly onDrop?: (answer: T, offset: number) => void;
  /** Clock that measures how fast pages are processed. Default {@link asyncScheduler}. */
  readonly scheduler?: SchedulerLike;
}

interface Asked {
  readonly place: PagePlace;
  readonly answer$: ReplaySubject<Answer>;
  readonly asking: Subscription;
  answer?: Answer;
}

/** Weight of the newest value in moving averages. */
const WEIGHT = 0.25;
/** Added to the computed number of pages to request ahead. One request then usually waits for the quota while the others are in flight. */
const SPARE = 0.5;

/**
 * Requests pages before it is known that they come next, so that slow responses do not slow down a scan. The number of pages requested
 * ahead is what the quota allows during one response time, but not more than are processed in that time.
 *
 * The offsets of these pages are guessed from the previous page and the total. A wrong guess only costs its request, because each page is
 * checked before the scan accepts it.
 */
export class PagesAhead {
  readonly #request: (place: PagePlace) => Observable<Answer>;
  readonly #options: ReadAhead<Answer>;
  readonly #scheduler: SchedulerLike;
  #asked: Asked[] = [];
  /**
   * List offset from which on no page is requested ahead: the `total` of the newest response. If that response has no `total`: Infinity if
   * it says that another page follows, otherwise 0.
   */
  #total = 0;
  /** Average response time, in ms. */
  #answerMs: number | undefined;
  /** Average time from the arrival of a page to the request for the next one, in ms. */
  #processingMs: number | undefined;
  #arrivedAt: number | undefined;

  constructor(request: (place: PagePlace) => Observable<Answer>, options: ReadAhead<Answer>) {
    this.#request = request;
    this.#options = options;
    this.#scheduler = options.scheduler ?? asyncScheduler;
  }

  /**
   * Returns the response for a page, from a request made ahead or from a new one, and requests the pages that probably follow.
   *
   * @param after Returns offset and size of the page that follows another one if the list does not change; undefined if they are unknown.
   */
  take(place: PagePlace, after: (place: PagePlace) => PagePlace | undefined): Observable<Answer> {
    if (this.#arrivedAt !== undefined) {
      this.#processingMs = average(this.#processingMs, this.#scheduler.now() - this.#arrivedAt);
    }
    if (!isSame(this.#asked[0]?.place, place)) this.drop();
    const current = this.#asked.shift() ?? this.#ask(place);
    const { most, paceMs = 0 } = this.#options;
    const pageMs = Math.max(1, paceMs, this.#processingMs ?? 0);
    const needed = Math.ceil((this.#answerMs ?? 0) / pageMs + SPARE);
    let last = this.#asked.at(-1)?.place ?? place;
    while (this.#asked.length < Math.min(most, needed)) {
      const next = after(last);
      if (!next || next.offset <= last.offset || next.offset >= this.#total) break;
      last = next;
      this.#asked.push(this.#ask(last));
    }
    return current.answer$.pipe(
      tap(() => (this.#arrivedAt = this.#scheduler.now())),
      finalize(() => current.asking.unsubscribe()),
    );
  }

  /**
   * Cancels the requests that were made ahead and whose pages have not been used. Calls `onDrop` for each of them whose response has
   * already arrived.
   */
  drop(): void {
    const dropped = this.#asked;
    this.#asked = [];
    for (const { asking, answer, place } of dropped) {
      asking.unsubscribe();
      if (answer) this.#options.onDrop?.(answer, place.offset);
    }
  }

  #ask(place: PagePlace): Asked {
    const asked: Asked = { place, answer$: new ReplaySubject(1), asking: new Subscription() };
    const request$ = this.#request(place).pipe(
      tap((answer) => {
        const { total, hasNext } = answer;
        asked.answer = answer;
        // Without a total, pages beyond the end may be requested, which wastes those requests.
        this.#total = total ?? (hasNext ? Infinity : 0);
        this.#answerMs = average(this.#answerMs, answer.elapsedMs ?? 0);
      }),
    );
    asked.asking.add(request$.subscribe(asked.answer$)); // an error is delivered when the page is taken
    return asked;
  }
}

function isSame(one: PagePlace | undefined, other: PagePlace): boolean {
  return one?.offset === other.offset && one.pageSize === other.pageSize;
}

function average(before: number | undefined, now: number): number {
  return before === undefined ? now : before + WEIGHT * (now - before);
}
