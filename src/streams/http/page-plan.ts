/** The `offset` and `pageSize` of one request. */
export interface PagePlace {
  readonly offset: number;
  readonly pageSize: number;
}

/** A page that goes on where another one ended. */
export interface NextPlace extends PagePlace {
  /** True if no page can begin before that end and reach past it: the page then shows no record that was read before. */
  readonly isBlind: boolean;
}

/**
 * A finding about the server's paging. `misplaced`: pages begin elsewhere than asked, so the list is read in whole
 * pages. `blind`: whole pages of one size, which can't overlap. `smaller`: large pages fail, so smaller ones are asked for.
 */
export type PlanFinding = 'misplaced' | 'blind' | 'smaller';

/** An answered page, as far as it shows what the server does with `pageSize`. */
export interface SeenPage {
  readonly place: PagePlace;
  readonly length: number;
  readonly hasNext: boolean;
  /** Page size that the answer states; undefined where it states none. */
  readonly reported: { readonly pageSize?: number } | undefined;
}

/** Pages answered at a reduced size before a larger one is tried. Too small: large pages that fail are asked for often. */
const GROW_AFTER = 10;
/** Upper bound of that number, which doubles with each larger page that fails. Too large: a mended server is used at half its speed for longer. */
const MAX_GROW_AFTER = 500;
/** Largest prime factor of preferred page sizes: such pages can be split into few parts that are whole pages again. */
const SMOOTH = 7;

/**
 * Decides which `offset` and `pageSize` to ask for, by what the server of a list has been seen to do with them. One per list,
 * shared by all its lanes; a new process finds out anew, or from the `pageSize` of a stored position.
 *
 * While the server serves pages as requested, each request has the wanted offset and the wanted size.
 *
 * **Whole pages.** Some servers round `offset` to a multiple of `pageSize`, or refuse any other. Pages still have to overlap. A
 * whole page is one with `offset = k * s` and `pageSize = s`, and all servers agree about it. To begin at or a little before a
 * record, `s` is chosen between half the limit and the limit so that a multiple of it lies there and most of the page is new.
 * From a limit of 21 on there is such a size at any place. Below it the overlap may be smaller, and
 * where the end of what was read is a multiple of all allowed sizes there is none: such a page is blind, and only the count of
 * keys shows that nothing was missed. That is the case at every page if the server ignores `pageSize`.
 *
 * **Half pages.** A server may round `offset` to a step that has nothing to do with `pageSize`, so that whole pages begin elsewhere, too. Then
 * pages of the limit are asked for at multiples of half of it. They overlap for any step below the limit, although it is not known where
 * each begins.
 *
 * **A limit.** Some servers serve no record behind a certain offset. No page is then asked for ahead behind it.
 *
 * **Smaller pages.** If large pages fail, `tooLarge` halves the size, and successes double it again after a while.
 */
export class PagePlan {
  #isWhole = false;
  #isHalf = false;
  /** Bounds of the page sizes that the server uses, as far as they were seen. They count for whole pages only. */
  #least = 1;
  #most = Infinity;
  /** Length of the newest page that was shorter than asked although more follow. */
  #short: number | undefined;
  /** Largest size to ask for since larger pages failed. */
  #usable = Infinity;
  /** Size of the largest page that failed: an answered page with as many records lifts the limit of the size. */
  #failing = Infinity;
  #servedTo = Infinity;
  #isTrying = false;
  #answered = 0;
  #growAfter = GROW_AFTER;
  #findings: PlanFinding[] = [];

  /** Whether the list is read in whole pages. */
  get isWhole(): boolean {
    return this.#isWhole;
  }

  /** Whether the server serves pages of one size only, so that whole pages can't overlap. */
  get isFixed(): boolean {
    return this.#isWhole && this.#least >= this.#most;
  }

  /** Whether the size was just raised, so that a failure speaks of the size. */
  get isTrying(): boolean {
    return this.#isTrying;
  }

  /** Offset from which on the server was seen to serve no record; Infinity while none is known. */
  get servedTo(): number {
    return this.#servedTo;
  }

  /** Findings since the last call. */
  findings(): readonly PlanFinding[] {
    if (this.#findings.length === 0) return this.#findings;
    const found = this.#findings;
    this.#findings = [];
    return found;
  }

  /** The largest page to ask for. */
  limit(wanted: number): number {
    const most = this.#isWhole ? Math.max(this.#most, this.#least) : Infinity;
    return Math.max(1, Math.min(wanted, this.#usable, most));
  }

  /** The page that begins at an offset; of whole pages the one that begins closest before it. */
  at(offset: number, wanted: number): PagePlace {
    return this.#isWhole ? this.wholeAt(offset, wanted) : { offset, pageSize: this.limit(wanted) };
  }

  /** The whole page that begins closest before an offset. */
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
   * The page that goes on where another one ended.
   *
   * @param overlap Records before that end that the page should show, at least.
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

  /** A page that begins exactly there: the longest of at most `most` records. */
  from(offset: number, most: number): PagePlace {
    return { offset, pageSize: this.#divisor(offset, most) };
  }

  /** The parts of a page: two halves, or whole pages of half its size at most. Empty for one record. */
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

  /** The server was seen to begin pages elsewhere than asked, or refuses to. */
  foundWhole(): void {
    if (this.#isWhole) return;
    this.#isWhole = true;
    if (this.#short !== undefined) this.#most = Math.min(this.#most, this.#short);
    this.#findings.push('misplaced');
    if (this.isFixed) this.#findings.push('blind');
  }

  /** Pages did not join although they were whole: half pages are asked for from now on; or whole ones again, where half pages did not join. */
  foundStuck(): void {
    this.#isHalf = !this.#isHalf;
  }

  /** Nothing is served from an offset on; Infinity ends an earlier finding. */
  limitFound(offset: number): void {
    this.#servedTo = offset;
  }

  /** A page was answered. */
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

  /** A page of `failed` records failed, and one of `good` records did not. */
  tooLarge(good: number, failed: number): void {
    if (this.#isTrying) this.#growAfter = Math.min(MAX_GROW_AFTER, this.#growAfter * 2);
    else this.#findings.push('smaller');
    this.#usable = Math.max(1, good);
    this.#failing = this.#failing === Infinity ? failed : Math.max(this.#failing, failed);
    this.#isTrying = false;
    this.#answered = 0;
  }

  /**
   * A page with so many records was answered: after enough of the largest usable size, a larger one is tried. The requested size does not
   * count, as a page that failed may have been answered in parts.
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

  /** The whole page that shows at least `back` records before an end and most records behind it. */
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

  /** Page sizes to choose from, the preferred ones first. */
  *#sizes(limit: number): Generator<number> {
    const least = Math.min(limit, Math.max(this.#least, Math.ceil(limit / 2)));
    for (let size = limit; size >= least; size -= 1) if (isSmooth(size)) yield size;
    for (let size = limit; size >= this.#least; size -= 1) yield size;
  }

  /** The largest size up to `most` of which an offset is a multiple. */
  #divisor(offset: number, most: number): number {
    let size = Math.max(1, Math.min(most, this.#isWhole ? this.limit(Infinity) : Infinity));
    if (!this.#isWhole) return size;
    if (size === Infinity) size = most;
    while (size > 1 && offset % size !== 0) size -= 1;
    return size;
  }
}

/** The page of `limit` records that begins closest before an offset, at a multiple of half the limit. */
function halfPage(offset: number, limit: number): PagePlace {
  return { offset: offset - (offset % Math.max(1, Math.floor(limit / 2))), pageSize: limit };
}

function isSmooth(size: number): boolean {
  let left = size;
  for (let factor = 2; factor <= SMOOTH; factor += 1) while (left % factor === 0) left /= factor;
  return left === 1;
}
