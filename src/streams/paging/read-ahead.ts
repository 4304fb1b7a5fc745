import { asyncScheduler, finalize, ReplaySubject, tap } from 'rxjs';
import type { Observable, SchedulerLike, Subscription } from 'rxjs';
import type { Answer } from '../decode/answer.ts';
import type { PagePlace } from '../http/page-plan.ts';

/** How far ahead pages are asked for, before it is known that they are the next. */
export interface ReadAhead<T> {
  /** Most pages that are asked for, or answered, and not taken: as many as slow answers take. 0: none. */
  readonly most: number;
  /** What a request costs in time by the quota, ms: pages can't be had quicker. Default 0. */
  readonly paceMs?: number;
  /** Told of answers that are of no use. */
  readonly onDrop?: (answer: T, offset: number) => void;
  /** The clock that the pace of answers is taken from. Default {@link asyncScheduler}. */
  readonly scheduler?: SchedulerLike;
}

/** A page that was asked for ahead. */
interface Asked {
  readonly place: PagePlace;
  readonly answer$: ReplaySubject<Answer>;
  readonly asking: Subscription;
  answer?: Answer;
}

/** What of an average the newest value is. */
const WEIGHT = 0.25;
/** Of a page, so that one waits for the quota while as many as fit into an answer's time are under way. */
const SPARE = 0.5;

/**
 * Asks for pages before their turn, so that the time that answers take costs no pages: beside the one that is waited for, as many as the
 * quota gives while an answer is made, or as many as are dealt with in that time if that is fewer. More would only cost memory.
 *
 * Where the next pages will be is a guess, from the page before and the number of records in all. A wrong guess costs its requests, and
 * nothing else: each page has to join what was read (see `join`), and what stands in a page that does is right, in whatever order pages
 * were asked for.
 */
export function readAhead(
  request: (place: PagePlace) => Observable<Answer>,
  { most, paceMs = 0, onDrop, scheduler = asyncScheduler }: ReadAhead<Answer>,
) {
  let asked: Asked[] = [];
  let total = 0; // records in the list, as the newest answer said
  let answerMs: number | undefined;
  let dealtMs: number | undefined; // from a page to the next one's turn: what its commit takes, and no waiting for answers
  let cameAt: number | undefined;

  const ask = (place: PagePlace): Asked => {
    const answer$ = new ReplaySubject<Answer>(1);
    const one: Asked = {
      place,
      answer$,
      asking: answer$.subscribe({
        next: (answer) => {
          const { total_records, has_next_page } = answer.pagination;
          one.answer = answer;
          // Without a total, pages beyond the end may be asked for, which costs their requests.
          total = total_records ?? (has_next_page ? Infinity : 0);
          answerMs = average(answerMs, answer.elapsedMs ?? 0);
        },
        error: () => undefined, // it is told when its turn has come
      }),
    };
    one.asking.add(request(place).subscribe(answer$));
    return one;
  };
  const drop = (): void => {
    const dropped = asked;
    asked = [];
    for (const { asking, answer, place } of dropped) {
      asking.unsubscribe();
      if (answer) onDrop?.(answer, place.offset);
    }
  };
  return {
    /**
     * The page of a place, as it was asked for ahead or is asked for now; and those that may follow it.
     *
     * @param after The place that follows another one if the list stands still; undefined if that can't be told.
     */
    take: (
      place: PagePlace,
      after: (place: PagePlace) => PagePlace | undefined,
    ): Observable<Answer> => {
      if (cameAt !== undefined) dealtMs = average(dealtMs, scheduler.now() - cameAt);
      if (!isSame(asked[0]?.place, place)) drop();
      const taken = asked.shift() ?? ask(place);
      const needed = Math.ceil((answerMs ?? 0) / Math.max(1, paceMs, dealtMs ?? 0) + SPARE);
      let last = asked.at(-1)?.place ?? place;
      while (asked.length < Math.min(most, needed)) {
        const next = after(last);
        if (!next || next.offset <= last.offset || next.offset >= total) break;
        last = next;
        asked.push(ask(last));
      }
      return taken.answer$.pipe(
        tap(() => (cameAt = scheduler.now())),
        finalize(() => taken.asking.unsubscribe()),
      );
    },
    /** Gives up what was asked for and not taken. */
    drop,
  };
}

function isSame(one: PagePlace | undefined, other: PagePlace): boolean {
  return one?.offset === other.offset && one.pageSize === other.pageSize;
}

function average(before: number | undefined, now: number): number {
  return before === undefined ? now : before + WEIGHT * (now - before);
}
