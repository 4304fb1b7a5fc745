import { stringifyJson } from '../../schemas/json/json.ts';
import type { Steps } from '../flow/steps.ts';
import type { PagePlace, PagePlan } from '../http/page-plan.ts';
import { PageRecord } from '../records/page-record.ts';
import type { Answer } from './response.ts';
import { allRecords } from './page-attempts.ts';
import type { PageAttempts } from './page-attempts.ts';

/** A failing record, identified by its offset and neighbours: every request for a page that contains it fails. */
interface FailingOffset {
  readonly at: number;
  /** The failing record is directly after the record with this key. Undefined if the failing record was the first of its page. */
  readonly after: string | undefined;
  /** The failing record is directly before the record with this key. Undefined if the failing record was the last of the list. */
  readonly before: string | undefined;
}

/**
 * Maximum number of failing offsets that are remembered for the whole list, and likewise for its windows of dates. If it is too small,
 * failing records are searched for again, with a dozen requests each time.
 */
const MAX_PLACES = 100;

/**
 * List offsets of the records of one list that are known to make pages fail, so that these records are not searched for again. A page with
 * such an offset is requested as a whole first, in case the record has become readable, and then in parts around the record.
 */
export class FailingOffsets {
  /**
   * Known failing offsets. Under `true`: those in windows of dates, counted from the start of the window. Under `false`: those in the whole
   * list, counted from its start.
   */
  readonly #places = new Map<boolean, readonly FailingOffset[]>();

  get size(): number {
    return this.#of(false).length + this.#of(true).length;
  }

  /**
   * Returns the page's first record that is known to make requests fail (`place`), and the list offset of the next one or of the page's end
   * (`until`); undefined if there is no such record.
   *
   * @param isDated Whether the page belongs to a window of dates.
   * @param offset List offset at which the page begins.
   */
  find(
    isDated: boolean,
    offset: number,
    pageSize: number,
  ): { readonly place: FailingOffset; readonly until: number } | undefined {
    const end = offset + pageSize;
    const [first, second] = this.#of(isDated)
      .filter(({ at }) => at >= offset && at < end)
      .sort((a, b) => a.at - b.at);
    return first && { place: first, until: second?.at ?? end };
  }

  /**
   * Adds the list offset of a record that makes its page fail, or replaces the entry with the same offset.
   *
   * @param isDated Whether the offset counts from the start of a window of dates and not from the start of the list.
   */
  add(isDated: boolean, place: FailingOffset): void {
    const others = this.#of(isDated).filter(({ at }) => at !== place.at);
    this.#places.set(isDated, [...others.slice(1 - MAX_PLACES), place]);
  }

  /**
   * Forgets the failing offsets within one page, so that its failing records are searched for again. `isDated`: whether the page belongs to
   * a window of dates.
   */
  forget(isDated: boolean, offset: number, pageSize: number): void {
    const isElsewhere = ({ at }: FailingOffset) => at < offset || at >= offset + pageSize;
    this.#places.set(isDated, this.#of(isDated).filter(isElsewhere));
  }

  #of(isDated: boolean): readonly FailingOffset[] {
    return this.#places.get(isDated) ?? [];
  }
}

/** Maximum number of consecutive failing records that are left out of a page as gaps. If more fail, the API is considered at fault. */
const MAX_IN_A_ROW = 10;
/**
 * Minimum number of records to read after a failing record if only whole pages (at multiples of their size) can be requested. If it is too
 * small, the scan's next page, which overlaps this one, contains the failing record again.
 */
const MIN_RECORDS_BEHIND = 20;

/**
 * Creates the functions that read a page without its failing records, each of which makes every page with it fail. The response has a gap
 * in place of each failing record, and may have fewer records than requested.
 *
 * @param attempts Sends the requests for the page and its parts.
 * @param plan Offsets and sizes at which the server begins pages.
 * @param places List offsets that are known to fail. Newly found ones are added.
 */
export function aroundFailing(attempts: PageAttempts, plan: PagePlan, places: FailingOffsets) {
  const { offset, pageSize } = attempts.query;
  const { isDated } = attempts;
  const end = offset + pageSize;

  /**
   * Requests the page's records after the failing records in `row`, and returns the responses. They may lack the last records of the page,
   * because a failed request is repeated for fewer records. Further adjacent failing records are added to `row`.
   *
   * @param row List offsets of the adjacent failing records so far.
   */
  function* behind(row: number[]): Steps<readonly Answer[]> {
    let at = row[0]! + 1;
    let most = end - at;
    for (;;) {
      const part = plan.from(at, Math.max(1, most));
      const answer = yield* attempts.attempt(part);
      if (answer) return yield* more(answer, part);
      if (part.pageSize > 1) {
        most = Math.ceil(part.pageSize / 2);
        continue;
      }
      if (row.push(at) > MAX_IN_A_ROW) return attempts.giveUp();
      yield* attempts.probe();
      at += 1;
      most = end - at;
    }
  }
  /**
   * Returns the responses with the records after a failing record. Usually this is only `first`, the response to the request for `part`. If
   * only whole pages can be requested, `part` may be small: further pages are then read, to get `MIN_RECORDS_BEHIND` records.
   */
  function* more(first: Answer, part: PagePlace): Steps<readonly Answer[]> {
    const answers = [first];
    let length = part.pageSize;
    let at = part.offset + length;
    // The size of a whole page divides its list offset, so the page may have just one record.
    while (plan.isWhole && length < MIN_RECORDS_BEHIND && answers.at(-1)!.hasNext) {
      const next = plan.from(at, pageSize);
      const answer = yield* attempts.attempt(next);
      if (!answer) break;
      answers.push(answer);
      at = next.offset + next.pageSize;
      length += next.pageSize;
    }
    return answers;
  }
  /**
   * Requests the page's records before list offset `at`, and returns the responses that contain them. Throws as
   * {@link PageAttempts.retryLater} does if a request is given up, or if a response has no records or more than requested.
   */
  function* front(at: number): Steps<readonly Answer[]> {
    const read: Answer[] = [];
    for (let begins = offset; begins < at; begins = offset + allRecords(read).length) {
      const part = plan.from(begins, at - begins);
      const answer = yield* attempts.attempt(part);
      const isPart = answer && answer.data.length > 0 && answer.data.length <= part.pageSize;
      if (!isPart) return attempts.retryLater();
      read.push(answer); // shorter than requested if the server caps the page size
    }
    return read;
  }
  const joined = (
    before: readonly Answer[],
    row: readonly number[],
    after: readonly Answer[],
  ): Answer => {
    const last = allRecords(before).at(-1)?.key;
    const gap = row.map((place, nth) => PageRecord.unreadable(gapText(isDated, last, nth), place));
    return attempts.joinParts(before, gap, after);
  };

  /**
   * Reads the page without the record at list offset `failing`, which can't be read even alone. Returns the page with an unreadable record
   * in the place of each failing one. The page is read in these steps:
   *
   * 1. The records after the failing record are requested. If the first of them fail as well, they are left out too.
   * 2. The records before the failing record are requested.
   * 3. Each failing record is requested once more. If one of them can be read now, throws as {@link PageAttempts.retryLater} does.
   */
  function* at(failing: number): Steps<Answer> {
    const row = [failing];
    const after = yield* behind(row);
    const before = yield* front(failing);
    const again: (Answer | undefined)[] = [];
    for (const each of row) again.push(yield* attempts.attempt({ offset: each, pageSize: 1 }));
    if (again.some((answer) => answer !== undefined)) return attempts.retryLater();
    // A single failing record is remembered for later reads of the page.
    if (row.length === 1) {
      const [last, next] = [allRecords(before).at(-1), after[0]!.data[0]];
      places.add(isDated, { at: failing, after: last?.key, before: next?.key });
    }
    return joined(before, row, after);
  }

  /**
   * Reads the page in parts around its first record that is known to make the page fail. Returns the page with a gap in place of that
   * record; undefined if there is no such record, if its neighbours have changed, or if a request is given up.
   */
  function* known(): Steps<Answer | undefined> {
    const found = places.find(isDated, offset, pageSize);
    if (!found) return undefined;
    const { place, until } = found;
    const part = plan.from(place.at + 1, Math.max(1, until - place.at - 1));
    try {
      const answer = yield* attempts.attempt(part);
      if (!answer || answer.data[0]?.key !== place.before) return undefined;
      const after = yield* more(answer, part);
      const before = yield* front(place.at);
      const last = allRecords(before).at(-1);
      if (last !== undefined && last.key !== place.after) return undefined;
      return joined(before, [place.at], after);
    } catch (failure) {
      if (attempts.isGivenUp(failure)) return undefined;
      throw failure;
    }
  }
  return { at, known, front };
}

/**
 * Returns the text of the dead letter for a record that no response contains. In a scan of the whole list, the text names the nearest
 * readable record before the missing one. The text thus stays the same, and the missing record is reported once.
 *
 * @param isDated Whether the record is missing in a window of dates, where neighbours change and are not named.
 * @param key Key of the nearest readable record before the missing one.
 * @param nth Number of failing records between the readable record and the missing one.
 */
function gapText(isDated: boolean, key: string | undefined, nth: number): string {
  const where = isDated ? { query: 'modified since a date' } : { after: key ?? null };
  const place = nth > 0 ? { ...where, skip: nth } : where;
  return stringifyJson({ unanswered: 'every page that holds the record fails', ...place });
}
