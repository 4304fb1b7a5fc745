/** List offset and page size of one request. */
export interface PagePlace {
  readonly offset: number;
  readonly pageSize: number;
}

/** List offset and page size of the page that follows another one. */
export interface NextPlace extends PagePlace {
  /** Whether the page can't overlap the previous one. */
  readonly isBlind: boolean;
}

/**
 * A finding about the server's paging. `misplaced`: pages do not begin at the requested offset, so the list is read in whole pages.
 * `blind`: the server serves whole pages of one size only, which can't overlap. `smaller`: large pages fail, so smaller ones are requested.
 */
export type PlanFinding = 'misplaced' | 'blind' | 'smaller';

/** Properties of a received page that show what the server does with `offset` and `pageSize`. */
export interface SeenPage {
  /** Requested list offset and page size. */
  readonly place: PagePlace;
  /** Number of records in the received page. */
  readonly length: number;
  readonly hasNext: boolean;
  /** Paging fields of the response, with the page size that it states; undefined if there are none. */
  readonly reported: { readonly pageSize?: number } | undefined;
}

/** Number of pages at a reduced size after which a larger one is tried. Too small: large pages that fail are requested often. */
const GROW_AFTER = 10;
/**
 * Maximum of that number of pages, which doubles with each larger page that fails. Too large: pages stay small long after the server has
 * recovered.
 */
const MAX_GROW_AFTER = 500;
/** Largest prime factor of preferred page sizes, so that pages can be split into few whole pages. */
const SMOOTH = 7;

/**
 * Decides which `offset` and `pageSize` a list's requests have, from how the list's server was observed to treat these parameters. There is
 * one plan per list, shared by all its lanes; a new process observes the server again, or uses the `pageSize` of a stored position.
 *
 * As long as the server serves pages as requested, each request has the wanted offset and the wanted size.
 *
 * **Whole pages.** Some servers round `offset` to a multiple of `pageSize`, or refuse any other offset. Pages still have to overlap. A
 * whole page is one with `offset = k * s` and `pageSize = s`; all servers serve it as requested. For a page that begins at or a little
 * before a given record, `s` is chosen between half the page size limit and the limit so that a multiple of `s` lies there and most of the
 * page is new. With a limit of 21 or more such a size exists for every offset. With a smaller limit the overlap may be smaller, and where
 * the end of the previous page is a multiple of all allowed sizes there is no overlap: such a page is blind, and only the count of keys
 * shows that nothing was missed. If the server ignores `pageSize`, every page is blind.
 *
 * **Half pages.** A server may round `offset` to a step that is unrelated to `pageSize`, so that whole pages do not begin as requested
 * either. Then pages with the largest allowed size are requested at multiples of half that size. They overlap for any step below that size,
 * although it is not known where each of them begins.
 *
 * **A cap.** Some servers serve no record beyond a certain offset. Pages beyond it are not requested by read-ahead.
 *
 * **Smaller pages.** If large pages fail, `tooLarge` halves the size, and successes double it again after a while.
 */
export class PagePlan {
  #isWhole = false;
  #isHalf = false;
  /** Smallest and largest page size of whole pages that the server was seen to use, whatever was requested. */
  #least = 1;
  #most = Infinity;
  /** Length of the newest page that was shorter than requested and not the last one. */
  #short: number | undefined;
  /** Largest page size to request after larger pages failed. */
  #usable = Infinity;
  /** Size of the largest page that failed; a page with as many records removes the limit. */
  #failing = Infinity;
  #servedTo = Infinity;
  #isTrying = false;
  #answered = 0;
  #growAfter = GROW_AFTER;
  #findings: PlanFinding[] = [];

  get isWhole(): boolean {
    return this.#isWhole;
  }

  /** Whether the server serves pages of one size only, which can't overlap. */
  get isFixed(): boolean {
    return this.#isWhole && this.#least >= this.#most;
  }

  /** Whether a larger page size is being tried, so that a failure is probably due to it. */
  get isTrying(): boolean {
    return this.#isTrying;
  }

  /** Cap of the list: list offset at and beyond which the server serves no record; Infinity if none is known. */
  get servedTo(): number {
    return this.#servedTo;
  }

  /** Returns the findings about the server's paging since the last call. */
  findings(): readonly PlanFinding[] {
    if (this.#findings.length === 0) return this.#findings;
    const found = this.#findings;
    this.#findings = [];
    return found;
  }

  /** Largest page size to request, at most `wanted`. */
  limit(wanted: number): number {
    const most = this.#isWhole ? Math.max(this.#most, this.#least) : Infinity;
    return Math.max(1, Math.min(wanted, this.#usable, most));
  }

  /** Returns the page that begins at a list offset or, for whole pages, closest before it. */
  at(offset: number, wanted: number): PagePlace {
    return this.#isWhole ? this.wholeAt(offset, wanted) : { offset, pageSize: this.limit(wanted) };
  }

  /** Returns the whole page (or half page, while those are in use) that begins at a list offset, or closest before it. */
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
   * Returns the page that follows another one.
   *
   * @param end List offset at which the other page ended.
   * @param overlap Minimum number of records before `end` that the page should contain.
   */
  next(end: number, overlap: number, wanted: number): NextPlace {
    const limit = this.limit(wanted);
    if (!this.#isWhole) return { offset: end - overlap, pageSize: limit, isBlind: false };
    if (this.#isHalf) return { ...halfPage(Math.max(0, end - overlap), limit), isBlind: false };
    for (let back = Math.max(1, overlap); back >= 1; back = Math.floor(back / 2)) {
      const found = this.#reaching(end, back, limit);
      if (found) return { ...found, isBlind: false };
    }
    return { ...this.from(end, limit), isBlind: true };
  }

  /** Returns the largest page of at most `most` records that begins exactly at a list offset. */
  from(offset: number, most: number): PagePlace {
    return { offset, pageSize: this.#divisor(offset, most) };
  }

  /** Splits a page into halves, or into whole pages of at most half its size. Empty for a page of one record. */
  split({ offset, pageSize }: PagePlace): readonly PagePlace[] {
    if (pageSize <= 1) return [];
    if (!this.#isWhole) {
      const half = Math.ceil(pageSize / 2);
      return [
        { offset, pageSize: half },
        { offset: offset + half, pageSize: pageSize - half },
      ];
    }
    const half = Math.ceil(pageSize / 2);
    const end = offset + pageSize;
    const parts: PagePlace[] = [];
    for (let at = offset; at < end; at += parts.at(-1)!.pageSize) {
      parts.push(this.from(at, Math.min(half, end - at)));
    }
    return parts;
  }

  /** Records that the server does not begin pages at the requested offset, or refuses it. */
  foundWhole(): void {
    if (this.#isWhole) return;
    this.#isWhole = true;
    if (this.#short !== undefined) this.#most = Math.min(this.#most, this.#short);
    this.#findings.push('misplaced');
    if (this.isFixed) this.#findings.push('blind');
  }

  /** Records that whole pages did not join: half pages are requested next, and whole pages again if those do not join either. */
  foundStuck(): void {
    this.#isHalf = !this.#isHalf;
  }

  /** Records the cap of the list; Infinity removes it. */
  limitFound(offset: number): void {
    this.#servedTo = offset;
  }

  /** Evaluates a received page, which may show page sizes, remove the cap, or allow larger pages again. */
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

  /** Reduces the page size, as a page of `failed` records failed and one of `good` records did not. */
  tooLarge(good: number, failed: number): void {
    if (this.#isTrying) this.#growAfter = Math.min(MAX_GROW_AFTER, this.#growAfter * 2);
    else this.#findings.push('smaller');
    this.#usable = Math.max(1, good);
    this.#failing = this.#failing === Infinity ? failed : Math.max(this.#failing, failed);
    this.#isTrying = false;
    this.#answered = 0;
  }

  /** Counts a received page. Its number of records counts, not the requested size: a page that failed may have been received in parts. */
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

  /** Returns the whole page with at least `back` records before `end` and most after it; undefined if there is none. */
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

  /** Sizes of whole pages, the preferred ones first (see {@link SMOOTH}). */
  *#sizes(limit: number): Generator<number> {
    const least = Math.min(limit, Math.max(this.#least, Math.ceil(limit / 2)));
    for (let size = limit; size >= least; size -= 1) if (isSmooth(size)) yield size;
    for (let size = limit; size >= this.#least; size -= 1) yield size;
  }

  /** Largest page size that divides the list offset; for lists that are not read in whole pages: `most`. */
  #divisor(offset: number, most: number): number {
    let size = Math.max(1, Math.min(most, this.#isWhole ? this.limit(Infinity) : Infinity));
    if (!this.#isWhole) return size;
    if (size === Infinity) size = most;
    while (size > 1 && offset % size !== 0) size -= 1;
    return size;
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
