import { catchError, concatMap, from, map, of, switchMap, throwError, toArray } from 'rxjs';
import type { Observable } from 'rxjs';
import { stringifyJson } from '../../schemas/json/json.ts';
import type { PagePlan } from '../http/page-plan.ts';
import { PageRecord } from '../records/page-record.ts';
import type { Answer } from './answer.ts';
import { recordsIn } from './page-attempts.ts';
import type { PageAttempts } from './page-attempts.ts';

/** A place in a list whose record can't be had: every page that holds it fails. */
interface FailingPlace {
  /** Offset of the record. */
  readonly at: number;
  /** Key of the record in front of it, so that it stands after this key; undefined where there is none. */
  readonly after: string | undefined;
  /** Key of the record behind it, so that it stands before this key; undefined where there is none. */
  readonly before: string | undefined;
}

/** Most places remembered of one list. Places beyond that are searched for again, at a dozen requests each. */
const MAX_PLACES = 100;

/**
 * Failing places of one list, found before: a page that fails is first read around these, which takes two requests
 * instead of a search. The page itself is still asked for each time, so a record that can be had again is noticed at once.
 */
export class FailingPlaces {
  /** Offsets in the whole list and in windows of dates have nothing to do with each other. */
  readonly #places = { whole: [] as FailingPlace[], dated: [] as FailingPlace[] };

  /** Number of places known. */
  get size(): number {
    return this.#places.whole.length + this.#places.dated.length;
  }

  /** The first known place of a page, and where the next one is, at most the page's end. */
  find(
    isDated: boolean,
    offset: number,
    pageSize: number,
  ): { readonly place: FailingPlace; readonly until: number } | undefined {
    const end = offset + pageSize;
    const [first, second] = this.#of(isDated)
      .filter(({ at }) => at >= offset && at < end)
      .sort((a, b) => a.at - b.at);
    return first && { place: first, until: second?.at ?? end };
  }

  add(isDated: boolean, place: FailingPlace): void {
    const places = this.#of(isDated);
    const others = places.filter(({ at }) => at !== place.at).slice(1 - MAX_PLACES);
    places.splice(0, Infinity, ...others, place);
  }

  /** Forgets the places of a page: what was known of them is wrong. */
  forget(isDated: boolean, offset: number, pageSize: number): void {
    const places = this.#of(isDated);
    const others = places.filter(({ at }) => at < offset || at >= offset + pageSize);
    places.splice(0, Infinity, ...others);
  }

  #of(isDated: boolean): FailingPlace[] {
    return isDated ? this.#places.dated : this.#places.whole;
  }
}

/** Most consecutive failing records that are read around: a longer row is no fault of the records. */
const MAX_IN_A_ROW = 10;
/** Records behind a failing one that a page has to show, so that the next page can begin behind it too. */
const LEAST_BEHIND = 20;

/**
 * Reads a page as the part before the failing records, a gap, and the part behind them. The answer ends where the part behind does,
 * which may be before the end of the page.
 */
export function aroundFailing(attempts: PageAttempts, plan: PagePlan, places: FailingPlaces) {
  const { offset, pageSize } = attempts.query;
  const { isDated } = attempts;
  const end = offset + pageSize;

  /** The part behind the failing records. Adds those that follow the first one directly to `row`. */
  const behind = (row: number[], at: number, most: number): Observable<Answer[]> => {
    const part = plan.from(at, Math.max(1, most));
    return attempts.attempt(part).pipe(
      switchMap((answer) => {
        if (answer) return more([answer], part.offset + part.pageSize, part.pageSize);
        if (part.pageSize > 1) return behind(row, at, Math.ceil(part.pageSize / 2));
        if (row.push(at) > MAX_IN_A_ROW) return attempts.failed();
        return attempts
          .probe()
          .pipe(
            switchMap((other) => (other ? behind(row, at + 1, end - at - 1) : attempts.failed())),
          );
      }),
    );
  };
  /** Whole pages may be as short as one record just behind the failing one: then several. */
  const more = (answers: Answer[], at: number, length: number): Observable<Answer[]> => {
    const isEnough = length >= LEAST_BEHIND || !answers.at(-1)!.pagination.has_next_page;
    if (!plan.isWhole || isEnough) return of(answers);
    const part = plan.from(at, pageSize);
    return attempts
      .attempt(part)
      .pipe(
        switchMap((answer) =>
          answer
            ? more([...answers, answer], part.offset + part.pageSize, length + part.pageSize)
            : of(answers),
        ),
      );
  };
  /**
   * The answers that show the page up to an offset in it; errors with `tryAgain` if they can't be had: several whole pages, if one can't
   * show it all.
   */
  const front = (at: number, read: readonly Answer[] = []): Observable<readonly Answer[]> => {
    const begins = offset + recordsIn(read).length;
    if (begins >= at) return of(read);
    const part = plan.from(begins, at - begins);
    return attempts.attempt(part).pipe(
      switchMap((answer) => {
        const length = answer?.data.length ?? 0;
        const isPart = length > 0 && length <= part.pageSize; // shorter where the server caps pages
        return isPart ? front(at, [...read, answer!]) : attempts.tryAgain();
      }),
    );
  };
  const joined = (
    before: readonly Answer[],
    row: readonly number[],
    after: readonly Answer[],
  ): Answer => {
    const last = recordsIn(before).at(-1)?.key;
    const gap = row.map((place, nth) => PageRecord.unreadable(gapText(isDated, last, nth), place));
    return attempts.joined(before, gap, after);
  };
  /** Asks for the failing records once more, each alone. */
  const again = (row: readonly number[]): Observable<readonly (Answer | undefined)[]> =>
    from(row).pipe(
      concatMap((each) => attempts.attempt({ offset: each, pageSize: 1 })),
      toArray(),
    );

  /** Around the record at an offset, which was found to fail. Adds its place to the known ones. */
  const at = (failing: number): Observable<Answer> => {
    const row = [failing];
    return behind(row, failing + 1, end - failing - 1).pipe(
      switchMap((after) =>
        front(failing).pipe(
          switchMap((before) =>
            again(row).pipe(
              switchMap((answers) => {
                if (answers.some((each) => each !== undefined)) return attempts.tryAgain();
                if (row.length === 1) {
                  const [last, next] = [recordsIn(before).at(-1), after[0]!.data[0]];
                  places.add(isDated, { at: failing, after: last?.key, before: next?.key });
                }
                return of(joined(before, row, after));
              }),
            ),
          ),
        ),
      ),
    );
  };

  /** Around the first known place in the page; undefined if none is known, or its neighbours have changed. */
  const known = (): Observable<Answer | undefined> => {
    const found = places.find(isDated, offset, pageSize);
    if (!found) return of(undefined);
    const { place, until } = found;
    const part = plan.from(place.at + 1, Math.max(1, until - place.at - 1));
    return attempts.attempt(part).pipe(
      switchMap((answer) => {
        if (!answer || answer.data[0]?.key !== place.before) return of(undefined);
        return more([answer], part.offset + part.pageSize, part.pageSize).pipe(
          switchMap((after) =>
            front(place.at).pipe(
              map((before) => {
                const last = recordsIn(before).at(-1);
                const isSame = last === undefined || last.key === place.after;
                return isSame ? joined(before, [place.at], after) : undefined;
              }),
            ),
          ),
        );
      }),
      catchError((failure: unknown) =>
        attempts.isGivenUp(failure) ? of(undefined) : throwError(() => failure),
      ),
    );
  };
  return { at, known, front };
}

/**
 * Text of a dead letter about a record that no answer holds. It stays the same as long as its place does, so it is reported
 * once; in windows of dates neighbours change, and are left out.
 *
 * @param nth Failing records between the neighbour and this one.
 */
function gapText(isDated: boolean, key: string | undefined, nth: number): string {
  const where = isDated ? { query: 'modified since a date' } : { after: key ?? null };
  const place = nth > 0 ? { ...where, skip: nth } : where;
  return stringifyJson({ unanswered: 'every page that holds the record fails', ...place });
}
