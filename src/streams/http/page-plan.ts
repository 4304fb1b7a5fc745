import type { ListDescription } from '../../description/description.ts';

/** List offset and page size of one request. */
export interface PagePlace {
  readonly offset: number;
  readonly pageSize: number;
  /** Start of the page if the list is not paged by offset, such as a key or an address. Undefined for the first page. */
  readonly cursor?: string;
}

/** List offset and page size of the page that follows another one. */
export interface NextPlace extends PagePlace {
  /** Whether the page cannot overlap the previous one. It then has no anchor (a record by which two pages are joined). */
  readonly isBlind: boolean;
}

/**
 * A finding about the server's paging.
 *
 * - `misplaced`: pages do not begin at the requested list offset, so the list is read in whole pages (see {@link PagePlan}).
 * - `blind`: the server serves whole pages of one size only. Such pages cannot overlap.
 * - `smaller`: large pages fail, so smaller pages are requested.
 */
export type PlanFinding = 'misplaced' | 'blind' | 'smaller';

/** Properties of a received page that show how the server treats `offset` and `pageSize`. */
export interface SeenPage {
  /** Requested list offset and page size. */
  readonly place: PagePlace;
  /** Number of records in the received page. */
  readonly length: number;
  readonly hasNext: boolean;
  /** Statements of the response about its page, such as the page size. Undefined if nothing is known about the response. */
  readonly reported: { readonly pageSize?: number } | undefined;
}

/**
 * Number of pages to receive at a reduced page size before a larger size is tried for the first time. If it is too small, large pages that
 * fail are requested often.
 */
const GROW_AFTER = 10;
/**
 * Maximum number of pages to receive at a reduced page size before a larger size is tried. The number begins at {@link GROW_AFTER} and
 * doubles each time that a larger size fails. If this maximum is too large, pages stay small long after the server has recovered.
 */
const MAX_GROW_AFTER = 500;
/**
 * Largest prime factor of preferred page sizes. If a page fails, it is requested in parts, and the offset of each part has to be a multiple
 * of its size. A page needs few such parts if its size has only small prime factors.
 */
const SMOOTH = 7;

/**
 * Decides which `offset` and `pageSize` the requests for a list have, depending on how the server was observed to treat these parameters.
 * All lanes of a list share one plan.
 *
 * While the server serves pages as requested, each request has the wanted list offset and the wanted size. Otherwise the plan adapts:
 *
 * - **Whole pages.** Some servers round `offset` to a multiple of `pageSize`, or refuse any other `offset`. Others are asked for a page by
 *   its number. Then each requested `offset` is a multiple of its `pageSize`. The page size varies, so that a page still begins shortly
 *   before the end of the previous one.
 * - **Blind pages.** If no size lets a whole page overlap the previous one, the page begins at the end of the previous one. Only the number
 *   of distinct keys then shows that no record was missed.
 * - **Half pages.** Some servers round `offset` to a step that is unrelated to `pageSize`. Then pages of the largest allowed size are
 *   requested at multiples of half that size. They overlap if the step is smaller than the page size.
 * - **A cap.** Some servers serve no record from a certain list offset on. Read-ahead requests no pages beyond that offset.
 * - **Smaller pages.** If large pages fail, `tooLarge` reduces the page size. After a number of successful pages the size is doubled again.
 */
export class PagePlan {
  #isWhole: boolean;
  /** Whether pages are requested by their number, so that each begins at a multiple of its size. */
  readonly #isNumbered: boolean;
  #isHalf = false;
  /** Smallest page size that the server serves, learned from pages with more records than requested; 1 if unknown. */
  #least = 1;
  /**
   * Largest page size that the server serves; Infinity if unknown. Learned from pages that had fewer records than requested, although other
   * pages followed. Limits the requested size only while whole pages are requested.
   */
  #most = Infinity;
  /**
   * Number of records on the newest page that was shorter than requested although it was not the last page of the list; undefined if there
   * was none.
   */
  #short: number | undefined;
  /**
   * Reduced page size: the largest to request after larger pages have failed. Doubled after a number of successful pages. Infinity while
   * page sizes are not reduced.
   */
  #usable = Infinity;
  /**
   * Size of the largest page that has failed, in records; Infinity while page sizes are not reduced. A received page of at least this size
   * ends the reduction.
   */
  #failing = Infinity;
  #servedTo = Infinity;
  #isTrying = false;
  #answered = 0;
  #growAfter = GROW_AFTER;
  readonly #findings: PlanFinding[] = [];

  /** @param list Description of the list. Default: a list that is paged by offset. */
  constructor(list?: Pick<ListDescription, 'paging'>) {
    this.#isNumbered = list?.paging === 'page';
    this.#isWhole = this.#isNumbered;
  }

  get isWhole(): boolean {
    return this.#isWhole;
  }

  /** Whether the server serves pages of one size only, which can't overlap. */
  get isFixed(): boolean {
    return this.#isWhole && this.#least >= this.#most;
  }

  /** Whether a larger page size is being tried after a reduction, so that a failure is probably due to that size. */
  get isTrying(): boolean {
    return this.#isTrying;
  }

  /** Cap of the list: list offset at and beyond which the server serves no record; Infinity if none is known. */
  get servedTo(): number {
    return this.#servedTo;
  }

  /** Returns the findings about the server's paging since the previous call. */
  findings(): readonly PlanFinding[] {
    return this.#findings.splice(0);
  }

  /**
   * Returns the page size to request: `wanted`, or less if large pages have failed. While the list is read in whole pages
   * ({@link PagePlan}), the result is at most the largest size that the server serves.
   */
  limit(wanted: number): number {
    const most = this.#isWhole ? Math.max(this.#most, this.#least) : Infinity;
    return Math.max(1, Math.min(wanted, this.#usable, most));
  }

  /**
   * Returns the page to request for a list offset. It begins at that offset or, while the list is read in whole pages (see
   * {@link PagePlan}), as close before it as possible. `wanted` is its maximum size.
   */
  at(offset: number, wanted: number): PagePlace {
    return this.#isWhole ? this.wholeAt(offset, wanted) : { offset, pageSize: this.limit(wanted) };
  }

  /**
   * Returns the whole page (one that begins at a multiple of its size) that begins at `offset`, or else as close before it as possible. Its
   * size is at most `wanted`. After {@link PagePlan.foundStuck} it begins at a multiple of half its size instead.
   */
  wholeAt(offset: number, wanted: number): PagePlace {
    const limit = this.limit(wanted);
    if (this.#isHalf) return halfPage(offset, limit);
    let best: PagePlace = { offset: 0, pageSize: limit };
    for (const size of this.#sizes(limit)) {
      const begin = offset - (offset % size);
      if (begin > best.offset) best = { offset: begin, pageSize: size };
    }
    return best;
  }

  /**
   * Returns the page that follows a previous page.
   *
   * @param end List offset of the first record after the previous page.
   * @param overlap Number of records before `end` that the page should contain. Whole pages may contain more of them or fewer.
   * @param wanted Maximum page size.
   */
  next(end: number, overlap: number, wanted: number): NextPlace {
    const limit = this.limit(wanted);
    if (!this.#isWhole) return { offset: end - overlap, pageSize: limit, isBlind: false };
    if (this.#isHalf) return { ...halfPage(Math.max(0, end - overlap), limit), isBlind: false };
    // With a limit of 21 or more, a size exists for every list offset. With a smaller limit the overlap may be smaller.
    for (let back = Math.max(1, overlap); back >= 1; back = Math.floor(back / 2)) {
      const found = this.#reaching(end, back, limit);
      if (found) return { ...found, isBlind: false };
    }
    return { ...this.from(end, limit), isBlind: true };
  }

  /**
   * Returns a page that begins exactly at list offset `offset`.
   *
   * - If pages may begin at any offset: its size is `most`.
   * - If pages must begin at multiples of their size: its size is the largest divisor of `offset` that exceeds neither `most` nor the limit
   *   of the plan (see {@link PagePlan.limit}).
   */
  from(offset: number, most: number): PagePlace {
    let pageSize = Math.max(1, Math.min(most, this.#isWhole ? this.limit(Infinity) : Infinity));
    if (this.#isWhole) while (pageSize > 1 && offset % pageSize !== 0) pageSize -= 1;
    return { offset, pageSize };
  }

  /**
   * Splits a page into two halves. If pages have to begin at multiples of their size, there may be more and smaller parts. Returns [] for a
   * page of one record.
   */
  split({ offset, pageSize }: PagePlace): readonly PagePlace[] {
    if (pageSize <= 1) return [];
    const half = Math.ceil(pageSize / 2);
    const end = offset + pageSize;
    const parts: PagePlace[] = [];
    for (let at = offset; at < end; at += parts.at(-1)!.pageSize) {
      parts.push(this.from(at, Math.min(half, end - at)));
    }
    return parts;
  }

  /** Switches to whole pages, which begin at multiples of their size, because the server refuses other list offsets or rounds them. */
  foundWhole(): void {
    if (this.#isWhole) return;
    this.#isWhole = true;
    if (this.#short !== undefined) this.#most = Math.min(this.#most, this.#short);
    this.#findings.push('misplaced');
    if (this.isFixed) this.#findings.push('blind');
  }

  /**
   * Switches to pages that begin at multiples of half their size, or back. To be called when consecutive pages had no record in common. Has
   * no effect on a list of numbered pages, as no page number addresses half a page.
   */
  foundStuck(): void {
    this.#isHalf = !this.#isHalf && !this.#isNumbered;
  }

  /**
   * Stores the cap of the list: the list offset from which on the API serves no records although the list has more. Infinity removes the
   * cap.
   */
  limitFound(offset: number): void {
    this.#servedTo = offset;
  }

  /**
   * Updates the plan from a received page. The page shows which page sizes the server serves. A page with records beyond the cap removes
   * the cap. After enough received pages, a reduced page size is increased.
   */
  saw({ place, length, hasNext, reported }: SeenPage): void {
    if (place.offset + length > this.#servedTo) this.#servedTo = Infinity;
    const wasFixed = this.isFixed;
    const reportedSize = reported?.pageSize;
    if (length > place.pageSize) this.#least = Math.max(this.#least, length);
    if (length < place.pageSize && length > 0 && hasNext) {
      const isReported =
        reportedSize !== undefined && reportedSize >= length && reportedSize < place.pageSize;
      if (isReported) this.#most = Math.min(this.#most, reportedSize);
      else if (this.#short === length) this.#most = Math.min(this.#most, length);
      this.#short = length;
    }
    if (!wasFixed && this.isFixed) this.#findings.push('blind');
    this.#grow(length);
  }

  /** Reduces the page size to `good` records, because a page of `failed` records failed. */
  tooLarge(good: number, failed: number): void {
    if (this.#isTrying) this.#growAfter = Math.min(MAX_GROW_AFTER, this.#growAfter * 2);
    else this.#findings.push('smaller');
    this.#usable = Math.max(1, good);
    this.#failing = this.#failing === Infinity ? failed : Math.max(this.#failing, failed);
    this.#isTrying = false;
    this.#answered = 0;
  }

  /**
   * Counts a received page of `size` records unless it is smaller than the reduced page size `#usable`. Doubles `#usable` after enough
   * pages were counted. A page as large as the largest one that failed ends the reduction.
   */
  #grow(size: number): void {
    if (size >= this.#failing) {
      this.#usable = Infinity;
      this.#failing = Infinity;
      this.#isTrying = false;
      return;
    }
    if (size < this.#usable) return;
    this.#isTrying = false;
    this.#answered += 1;
    if (this.#answered < this.#growAfter) return;
    this.#answered = 0;
    this.#usable *= 2;
    this.#isTrying = true;
  }

  /**
   * Returns a whole page (one whose list offset is a multiple of its size) of at most `limit` records. It begins at least `back` records
   * before the list offset `end`, and ends as far beyond `end` as possible. Undefined if no such page ends beyond `end`.
   */
  #reaching(end: number, back: number, limit: number): PagePlace | undefined {
    let best: PagePlace | undefined;
    let most = end;
    for (const size of this.#sizes(limit)) {
      const begin = end - back - ((end - back) % size);
      if (begin < 0 || begin + size <= most) continue;
      most = begin + size;
      best = { offset: begin, pageSize: size };
    }
    return best;
  }

  /**
   * Yields the page sizes to try for a whole page (one whose list offset is a multiple of its size), the preferred ones first: sizes from
   * `limit` down to half of it that have only small prime factors (see {@link SMOOTH}), then all sizes from `limit` down to `#least`.
   */
  *#sizes(limit: number): Generator<number> {
    const least = Math.min(limit, this.#least); // the limit is smaller after pages of the server's smallest size have failed
    for (let size = limit; size >= Math.max(least, limit / 2); size -= 1)
      if (isSmooth(size)) yield size;
    for (let size = limit; size >= least; size -= 1) yield size;
  }
}

function halfPage(offset: number, limit: number): PagePlace {
  return { offset: offset - (offset % Math.max(1, Math.floor(limit / 2))), pageSize: limit };
}

function isSmooth(size: number): boolean {
  let left = size;
  for (let factor = 2; factor <= SMOOTH; factor += 1) while (left % factor === 0) left /= factor;
  return left === 1;
}
