// Decides which of two overlapping reads of a key has the newer content.

import type { LogicalClock, Span } from '../http/logical-clock.ts';

/** Result of comparing the content of a read with the known content of a key: the read is newer, it is older, or neither can be decided. */
export type Verdict = 'newer' | 'older' | 'undecided';

/** Decides which of two reads of a key has the newer content. */
export interface NewestReads {
  /** Returns whether different content of `key`, read in `span`, is newer than the known content. */
  judge(key: string, span: Span, updatedAt: number | null): Verdict;
  /** Notes that `key` now has the content of this read; `same` if the known content was equal. */
  saw(key: string, span: Span, updatedAt: number | null, same: boolean): void;
  /** Notes that a read showed the known content of many keys. `members` returns each of them once, and may be called later. */
  sawAll(members: () => readonly SeenMember[], span: Span): void;
}

/** A record passed to {@link NewestReads.sawAll}, by its key and `updated_at`. */
export interface SeenMember {
  readonly key: string;
  /** `updated_at` in epoch ms; null if the record has none. */
  readonly updatedAt: number | null;
}

/** When the known content of a key was read, as numbers of the list's logical clock. */
interface SeenContent {
  /** Earliest end of any read that showed the content. A read that begins later has newer content. */
  end: number;
  /** Latest begin of any read that showed the content. A read that ends earlier has older content. */
  begin: number;
  readonly updatedAt: number | null;
}

/** Number of calls of `saw` after which those entries are removed that no read in flight can overlap. */
const SWEEP_EVERY = 1_000;

/**
 * Keeps a response from overwriting a newer one when requests for the same records are in flight at the same time (such as a poll during
 * the initial snapshot) and their responses arrive in another order.
 *
 * A read that began after another had ended is newer. Of two reads that overlapped, the one with the later `updated_at` is newer; if that
 * is equal or missing, the verdict is `undecided` and the key has to be read again. Only reads that a read not yet settled may overlap are
 * remembered.
 */
export function newestReads(clock: LogicalClock): NewestReads {
  return new RememberedReads(clock);
}

class RememberedReads implements NewestReads {
  readonly #clock: LogicalClock;
  readonly #seen = new Map<string, SeenContent>();
  /** Arguments of `sawAll` not yet entered in `#seen`; they are entered before the next verdict. */
  #waiting: { readonly members: () => readonly SeenMember[]; readonly span: Span }[] = [];
  /** Number of calls of `saw`. */
  #saws = 0;
  #newestOverlap: { readonly span: Span; readonly overlaps: boolean } | undefined;

  constructor(clock: LogicalClock) {
    this.#clock = clock;
    clock.onIdle(() => {
      this.#seen.clear();
      this.#waiting = [];
    });
  }

  judge(key: string, span: Span, updatedAt: number | null): Verdict {
    this.#enterAll();
    const last = this.#seen.get(key);
    if (!last || span.begin > last.end) return 'newer';
    if (span.end < last.begin) return 'older';
    if (updatedAt === null || last.updatedAt === null || updatedAt === last.updatedAt) {
      return 'undecided';
    }
    return updatedAt > last.updatedAt ? 'newer' : 'older';
  }

  saw(key: string, span: Span, updatedAt: number | null, same: boolean): void {
    if (!this.#overlaps(span)) return; // every later read begins after this one, and so is newer
    if (!same) this.#enterAll();
    this.#see(key, span, updatedAt, same);
    if (++this.#saws % SWEEP_EVERY !== 0) return;
    const oldest = this.#clock.oldest();
    for (const [other, { end }] of this.#seen) if (end < oldest) this.#seen.delete(other);
  }

  sawAll(members: () => readonly SeenMember[], span: Span): void {
    if (!this.#overlaps(span)) return;
    const oldest = this.#clock.oldest();
    const waiting = this.#waiting.filter((each) => each.span.end >= oldest);
    this.#waiting = [...waiting, { members, span }];
  }

  /** Whether an unsettled read overlaps `span`. Cached for the newest span, as it is asked for each record of a page. */
  #overlaps(span: Span): boolean {
    if (this.#newestOverlap?.span !== span) {
      this.#newestOverlap = { span, overlaps: this.#clock.overlaps(span) };
    }
    return this.#newestOverlap.overlaps;
  }

  #see(key: string, span: Span, updatedAt: number | null, same: boolean): void {
    const last = same ? this.#seen.get(key) : undefined;
    if (last) {
      last.end = Math.min(last.end, span.end);
      last.begin = Math.max(last.begin, span.begin);
    } else {
      this.#seen.set(key, { begin: span.begin, end: span.end, updatedAt });
    }
  }

  /** Adds the reads in `#waiting` to `#seen`. Must run before a lookup, and before different content replaces an entry. */
  #enterAll(): void {
    for (const { members, span } of this.#waiting) {
      for (const { key, updatedAt } of members()) this.#see(key, span, updatedAt, true);
    }
    this.#waiting = [];
  }
}
