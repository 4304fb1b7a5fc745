// Scans a list page by page: checks that pages join, counts distinct keys, and repeats a scan that is not consistent.

import { catchError, defer, EMPTY, expand, finalize, map, of, switchMap, throwError } from 'rxjs';
import type { Observable } from 'rxjs';
import { asRetryable, isCursorRefused } from '../decode/page-attempts.ts';
import { recordsOf } from '../decode/response.ts';
import type { Answer } from '../decode/response.ts';
import { canonicalJson } from '../../schemas/json/json.ts';
import type { ListDescription } from '../../description/description.ts';
import { PagePlan } from '../http/page-plan.ts';
import type { PagePlace } from '../http/page-plan.ts';
import { KeyIndex } from '../records/key-index.ts';
import type { KeyOf } from '../records/key-of.ts';
import { PageRecords } from '../records/page-records.ts';
import { BEGINNING, contentDigests, joinPage } from './anchors.ts';
import type { ContentDigests, JoinResult, Position } from './anchors.ts';
import { Idleness, isIdle } from './idleness.ts';
import { pagerOf } from './pager.ts';
import type { Pager, ReceivedPage } from './pager.ts';
import type { ScanTrouble } from './scan-trouble.ts';
import { PagesAhead } from './read-ahead.ts';
import type { ReadAhead } from './read-ahead.ts';
import { ignoredFields as newIgnoredFields, Standstill } from './standstill.ts';
import type { LeftOut } from './standstill.ts';

/** A page that a scan (one traversal of a list) has read. */
export interface ScanPage {
  readonly answer: Answer;
  /** List offset of the page's first record. */
  readonly offset: number;
  /** Position at which the scan resumes once this page has been processed; undefined for the last page. */
  readonly next: Position | undefined;
}

/** Options of {@link pages}. */
export interface PagesOptions {
  /** Requests one page. Must emit asynchronously, because some 1,700 synchronous pages in a row overflow the stack. */
  readonly request: (query: PagePlace) => Observable<Answer>;
  /** Returns the key of a record. Must be the function with which the decoder makes keys. */
  readonly keyOf: KeyOf;
  /** Description of the list, which says how it is paged. Default: by list offset. */
  readonly list?: ListDescription;
  /** Number of records to request per page, at most the `limit` of the list. Default 1,000. At least 2 where pages overlap. */
  readonly pageSize?: number;
  /** Number of records by which each page begins before the end of the previous one: 1 to half a page. Default 10. */
  readonly overlap?: number;
  /**
   * Position to resume from. Default (undefined or null): the beginning of the list. The number of records that a resumed scan reads is not
   * compared with the total.
   */
  readonly from?: Position | null | undefined;
  /**
   * Chooses `offset` and `pageSize` of the requests, according to how the server has treated them. Pass the same plan to all scans of a
   * list. Default: a new plan.
   */
  readonly plan?: PagePlan | undefined;
  /**
   * Fields to ignore when a record is compared with the same record on an earlier page. Fields that the scan finds to differ in every
   * response are added to this object, so pass the same one to all scans of a list. Default: a new, empty one.
   */
  readonly leftOut?: LeftOut;
  /** Cache of content digests of records that link pages (anchors). Pass the same cache to all scans of a list. Default: a new cache. */
  readonly contents?: ContentDigests;
  /**
   * Provides backpressure: the scan requests the next page once the returned observable emits. Default: an observable that emits at once.
   */
  readonly permit?: () => Observable<unknown>;
  /**
   * Requests pages ahead, so that slow responses do not slow down the scan. Default: each page is requested after the previous one arrived.
   */
  readonly ahead?: ReadAhead<Answer>;
  /** Called for each problem, with the list offset at which it was detected. */
  readonly onTrouble?: (trouble: ScanTrouble, offset: number) => void;
}

/**
 * Scans a list page by page until its end; completes after the last page.
 *
 * - Each page begins some records before the end of the previous one, so records are emitted more than once. A page counts if it contains
 *   an anchor (an unchanged record that was read before). If the list has a total order, the scan reads every record that does not move
 *   within the list, whatever is added, changed and removed meanwhile.
 * - In a list that is paged by a cursor, pages cannot overlap, and every page counts.
 * - If a server begins pages at other offsets than requested, or returns fewer records, the scan requests pages at the offsets where the
 *   server does begin them (see {@link PagePlan}).
 * - If a field differs in every response, no record is ever unchanged. After three pages without an anchor and without progress in between,
 *   the scan detects such fields, and ignores them from then on (see {@link LeftOut}).
 * - If the scan read fewer distinct records than `total`, and `total` did not change, it scans the list again from the beginning with a
 *   larger overlap, at most twice. If records could not be counted, it does so after unchanged records were reordered or a page was
 *   accepted without an anchor.
 *
 * @example
 * ```ts
 * import { listNamed, readDescription } from 'cellarstream/describe';
 * import { keyOfFields, listRequest, login, pages } from 'cellarstream/streams';
 * import { tokenBucket, tokenSource } from 'cellarstream/streams';
 *
 * const baseUrl = new URL('https://api.example');
 * const description = readDescription('shop.yaml');
 * const logins = tokenBucket({ capacity: 10, windowMs: 61_000 });
 * const token$ = login({ baseUrl, description, apiKey: () => 'the key', limit: logins });
 * const tokens = tokenSource({ login: token$ });
 * const list = listRequest({ baseUrl, list: listNamed(description, 'orders'), tokens });
 *
 * const quota = tokenBucket({ capacity: 100, windowMs: 61_000 });
 * const keyOf = keyOfFields(['id']);
 * pages({ request: (page) => list(page, quota), keyOf }).subscribe({
 *   next: ({ offset, answer }) => console.log(`${answer.data.length} orders from ${offset} on`),
 *   error: console.error,
 * });
 * ```
 */
export function pages(options: PagesOptions): Observable<ScanPage> {
  return defer(() => {
    const scan = new Scan(options);
    return scan.read(options.from ?? BEGINNING).pipe(
      expand(({ next }) => (next ? scan.read(next) : EMPTY)),
      finalize(() => scan.end()),
    );
  });
}

/**
 * Maximum number of times that a scan is repeated because it may have missed records, each time with an overlap five times larger. If it is
 * too large, a list that always looks faulty is scanned in vain.
 */
const MAX_REPEATED_ROUNDS = 2;
/**
 * Maximum number of times that a scan begins again because the server refused a cursor. After that, such a refusal makes the scan fail with
 * a retryable error.
 */
const MAX_RESTARTS = 5;
/** Result of joining a page in a list whose pages do not overlap: every page counts as one that continues the scan without a gap. */
const JOINED: JoinResult = {
  ...{ anchored: true, swapped: false, next: BEGINNING },
  ...{ adrift: false, lacksDigests: false },
};
/** Largest total for which a scan counts distinct keys, to limit memory. In a longer list, a scan only checks the order of records. */
const MAX_COUNTED = 250_000;

/** State of one scan. {@link Scan.read} requests the page at a position, and computes the next position from the response. */
class Scan {
  readonly #options: PagesOptions;
  readonly #pageSize: number;
  readonly #pager: Pager;
  readonly #leftOut: LeftOut;
  readonly #contents: ContentDigests;
  readonly #ahead: PagesAhead;
  readonly #idleness = new Idleness();
  /** Counts the distinct keys of the scan; undefined if the scan was resumed, because the keys of its earlier pages are unknown. */
  readonly #distinctKeys: DistinctKeys | undefined;
  #round = 0;
  #overlap: number;
  #isReordered = false;
  #isShort = false;
  #emptyAt: number | undefined;
  /**
   * Digest of each record of the newest page, by key. Used only if the pages of the list do not overlap, to detect records that move
   * between pages.
   */
  #lastPage: ReadonlyMap<string, string> = new Map();
  #isShifted = false;
  /** The cursor that the server refused last. */
  #refusedCursor: string | undefined;
  /** Number of times that the scan began again because the server refused a cursor. */
  #restarts = 0;
  #standstill = new Standstill();

  constructor(options: PagesOptions) {
    this.#options = options;
    this.#pageSize = Math.max(2, options.pageSize ?? 1_000);
    this.#overlap = Math.max(1, options.overlap ?? 10); // `joinPage` limits it to half a page
    const plan = options.plan ?? new PagePlan(options.list);
    this.#pager = pagerOf(options.list, plan, this.#pageSize);
    this.#contents = options.contents ?? contentDigests();
    this.#ahead = new PagesAhead(options.request, options.ahead ?? { most: 0 });
    const from = options.from ?? BEGINNING;
    this.#distinctKeys = from.offset === 0 ? new DistinctKeys() : undefined;
    this.#leftOut = options.leftOut ?? newIgnoredFields();
    this.#leftOut.add(from.leftOut ?? []);
    if (from.pageSize !== undefined) plan.foundWhole();
  }

  read(at: Position): Observable<ScanPage> {
    const { permit = () => of(undefined) } = this.#options;
    return permit().pipe(switchMap(() => this.#take(at)));
  }

  end(): void {
    this.#ahead.drop();
  }

  #take(at: Position): Observable<ScanPage> {
    const place = this.#pager.placeAt(at);
    return this.#ahead
      .take(place, (each) => this.#pager.placeAfter(each, at.step, this.#overlap))
      .pipe(
        map((answer) => this.#received(at, place, answer)),
        catchError((error: unknown) => {
          if (at.cursor === undefined || !isCursorRefused(error)) return throwError(() => error);
          return this.#take(this.#positionAfterRefusal(at, error));
        }),
      );
  }

  /**
   * Returns the position at which the scan continues after the server refused the cursor of the page at `at`: an earlier page, or the
   * beginning of the list.
   *
   * @throws `error`, marked as retryable, after more than `MAX_RESTARTS` restarts from the beginning.
   */
  #positionAfterRefusal(at: Position, error: unknown): Position {
    const isKnown = at.cursor === this.#refusedCursor;
    this.#refusedCursor = at.cursor;
    const stepped = this.#pager.back(at, { ...at, stepsBack: at.stepsBack + 1 });
    const isRestart = isKnown || stepped.cursor === undefined;
    if (isRestart) this.#restarts += 1;
    if (this.#restarts > MAX_RESTARTS) throw asRetryable(error);
    this.#options.onTrouble?.(isRestart ? 'expired' : 'stepped-back', at.offset);
    return isRestart ? BEGINNING : stepped;
  }

  #received(requested: Position, place: PagePlace, answer: Answer): ScanPage {
    const at = { ...requested, offset: answer.offset ?? place.offset };
    const records = recordsOf(answer);
    const hasNewKey = this.#distinctKeys?.add(records, answer.total);
    const page: ReceivedPage = {
      ...{ requested, place, answer, records },
      begin: at.offset,
      end: at.offset + records.length,
      joint: this.#pager.overlaps ? this.#join(at, records) : this.#compare(at, records),
      isIdle: isIdle(at, records),
      hasNewKey,
      missing: this.#distinctKeys?.missing,
    };
    return { answer, offset: at.offset, next: this.#positionAfter(page, at) };
  }

  #join(at: Position, records: PageRecords): JoinResult {
    return joinPage(at, records, {
      overlap: this.#overlap,
      keyOf: this.#options.keyOf,
      contents: this.#contents,
      leftOut: this.#leftOut.fields(),
    });
  }

  /**
   * Accepts a page of a list whose pages do not overlap. Reports the trouble `shifted`, once in a scan, if the page repeats an unchanged
   * record of the previous page.
   */
  #compare(at: Position, records: PageRecords): JoinResult {
    const before = this.#lastPage;
    const digests = new Map<string, string>();
    for (const record of records.all()) {
      if (record.key === undefined) continue;
      digests.set(record.key, record.sentAs() ?? canonicalJson(record.json));
    }
    this.#lastPage = digests;
    const isRepeated = [...digests].some(([key, digest]) => before.get(key) === digest);
    if (at.offset > 0 && isRepeated && !this.#isShifted) {
      this.#isShifted = true;
      this.#options.onTrouble?.('shifted', at.offset);
    }
    return JOINED;
  }

  /** Returns the position at which the scan continues; undefined after its last page. */
  #positionAfter(page: ReceivedPage, at: Position): Position | undefined {
    const { requested, answer, records, begin, joint } = page;
    if (answer.isCut && (records.length === 0 || joint.anchored)) {
      this.#options.onTrouble?.('cut', page.end);
      return undefined;
    }
    const tell = (trouble: ScanTrouble) => this.#options.onTrouble?.(trouble, begin);
    if (answer.hasGap) tell('gap');
    const restart = this.#pager.observe(page, tell);
    if (restart) return restart;

    if (joint.swapped && !this.#isReordered) tell('reordered');
    this.#isReordered ||= joint.swapped || at.isBlind === true;
    if (records.length === 0 && !this.#pager.continuesAfterEmpty(page)) this.#emptyAt = begin;
    if (joint.anchored) return this.#positionAfterJoined(page, tell);
    this.#leftOut.add(this.#standstill.failed(records, this.#leftOut.fields()));
    const isBlind = joint.lacksDigests || this.#standstill.mustReadBlind();
    tell(joint.adrift && !isBlind ? 'adrift' : 'stepped-back');
    if (isBlind) return { ...requested, isBlind: true };
    return joint.adrift ? joint.next : this.#pager.back(requested, joint.next);
  }

  /**
   * Returns the position after an accepted page: the next page, or the beginning of the list if the scan has to be repeated. Undefined at
   * the end of the scan.
   */
  #positionAfterJoined(
    page: ReceivedPage,
    tell: (trouble: ScanTrouble) => void,
  ): Position | undefined {
    const { answer, records, end, missing, hasNewKey } = page;
    const isLast = this.#isLast(page, tell);
    const isRepeated = this.#round > 0;
    if (isRepeated && missing === 0) return undefined;
    if (isRepeated && missing && !this.#isShort && (isLast || hasNewKey === false)) {
      this.#isShort = true;
      tell('short');
    }
    if (!isLast) {
      const next = this.#pager.next(page);
      if (!next) {
        if (answer.next === undefined) tell('cut');
        else tellEndless(missing === 0, tell); // the cursor leads back to its own page: the records behind it were not read
        return undefined;
      }
      this.#standstill.joined(end, records, next.anchors.at(-1) ?? []);
      return next;
    }
    const isConsistent = missing === undefined ? !this.#isReordered : missing === 0;
    if (isConsistent) return undefined;
    if (this.#round === MAX_REPEATED_ROUNDS) {
      tell('unsettled');
      return undefined;
    }
    this.#round += 1;
    this.#overlap *= 5;
    this.#isReordered = false;
    this.#isShort = false;
    this.#standstill = new Standstill();
    return BEGINNING;
  }

  /**
   * Whether the scan ends at this page. The response decides, with three exceptions:
   *
   * - The response names no next page, but this page is short, has new records, and ends before `total`: the scan continues.
   * - The response names a next page, but the newest pages have no new records, or this page lies far beyond `total`: the scan ends, with
   *   the trouble `endless`.
   * - The response names a next page, but the scan has read an empty page at the offset where this page ends: the scan ends.
   */
  #isLast(page: ReceivedPage, tell: (trouble: ScanTrouble) => void): boolean {
    const { place, answer, records, end, hasNewKey, isIdle, missing } = page;
    const { total } = answer;
    const hasNext = this.#pager.hasNext(page);
    const isShort = records.length < place.pageSize;
    const isEndless = this.#idleness.isOver({
      ...{ hasNewKey, isIdle, isShort, hasNext, end, total },
      pageSize: this.#pageSize,
    });
    if (isEndless) {
      // Cursors may lead in a circle, which only the number of distinct keys shows.
      tellEndless(missing !== undefined || (total !== undefined && this.#pager.overlaps), tell);
    }
    // A server may return a short page and claim that it is the last. Its total shows otherwise, as long as pages bring new records.
    const isCutShort = isShort && end < (total ?? 0) && (hasNewKey ?? !isIdle);
    // The server may claim a next page that is empty. The list then ends there, once a page that joins ends at the same offset again:
    // no record has moved in front of that offset.
    return !(hasNext || isCutShort) || end === this.#emptyAt || isEndless;
  }
}

/**
 * Reports `endless`: the scan ends although the server names a next page. Also reports `unsettled`, as records may be missing, unless the
 * number of records shows that none is (`isCounted`).
 */
function tellEndless(isCounted: boolean, tell: (trouble: ScanTrouble) => void): void {
  tell('endless');
  if (!isCounted) tell('unsettled');
}

/** Counts the distinct keys of a scan, while they can be counted: see {@link DistinctKeys.add}. */
class DistinctKeys {
  readonly #seen = new KeyIndex();
  /** Keys of the first page, until a second page arrives; undefined after that, because they are then in `#seen`. */
  #first: KeyIndex | undefined;
  #total: number | undefined;
  #isCounting = true;
  /** Highest number of repetitions of each key on one page. A page that is read again adds nothing. */
  readonly #repeats = new Map<string, number>();
  /** Sum of `#repeats`. */
  #repeatCount = 0;

  /**
   * Adds a page. Returns whether the page has a key that no earlier page of the scan had. Undefined once keys are no longer counted,
   * because a record has no key, or the total changes, is unknown or exceeds {@link MAX_COUNTED}.
   */
  add(records: PageRecords, pageTotal: number | undefined): boolean | undefined {
    const isFirst = this.#total === undefined;
    this.#total ??= pageTotal;
    const isStill = this.#total !== undefined && this.#total === pageTotal;
    this.#isCounting &&= isStill && this.#total! <= MAX_COUNTED;
    const keys = this.#isCounting ? records.keys : undefined;
    if (!keys) {
      this.#isCounting = false;
      this.#seen.clear();
      this.#first = undefined;
      this.#repeats.clear();
      return undefined;
    }
    if (keys.size < keys.length) this.#addRepeats(records);
    if (isFirst) {
      this.#first = keys;
      return keys.length > 0;
    }
    if (this.#first) this.#seen.addAll(this.#first);
    this.#first = undefined;
    const before = this.#seen.size;
    this.#seen.addAll(keys);
    return this.#seen.size > before;
  }

  #addRepeats(records: PageRecords): void {
    const onPage = new Map<string, number>();
    for (const { key } of records.all()) {
      const repeats = onPage.has(key!) ? onPage.get(key!)! + 1 : 0;
      onPage.set(key!, repeats);
      if (repeats <= (this.#repeats.get(key!) ?? 0)) continue;
      this.#repeats.set(key!, repeats);
      this.#repeatCount += 1;
    }
  }

  /** `total` minus the number of distinct records that the scan has read, at least 0; undefined if keys are not counted. */
  get missing(): number | undefined {
    if (!this.#isCounting || this.#total === undefined) return undefined;
    const { size } = this.#first ?? this.#seen;
    return Math.max(0, this.#total - size - this.#repeatCount);
  }
}
