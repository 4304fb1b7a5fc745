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
  const seen = new Map<string, SeenContent>();
  /** Arguments of `sawAll` not yet entered in `seen`; they are entered before the next verdict. */
  let waiting: { readonly members: () => readonly SeenMember[]; readonly span: Span }[] = [];
  let saws = 0;
  clock.onIdle(() => {
    seen.clear();
    waiting = [];
  });

  let looked: { readonly span: Span; readonly overlaps: boolean } | undefined;
  /** Whether an unsettled read overlaps `span`. Cached for the newest span, as it is asked for each record of a page. */
  const overlaps = (span: Span): boolean => {
    if (looked?.span !== span) looked = { span, overlaps: clock.overlaps(span) };
    return looked.overlaps;
  };
  const see = (key: string, span: Span, updatedAt: number | null, same: boolean) => {
    const last = same ? seen.get(key) : undefined;
    if (last) {
      last.end = Math.min(last.end, span.end);
      last.begin = Math.max(last.begin, span.begin);
    } else {
      seen.set(key, { begin: span.begin, end: span.end, updatedAt });
    }
  };
  /** Adds the reads in `waiting` to `seen`. Must run before a lookup, and before different content replaces an entry. */
  const enterAll = () => {
    for (const { members, span } of waiting) {
      for (const { key, updatedAt } of members()) see(key, span, updatedAt, true);
    }
    waiting = [];
  };

  return {
    judge: (key, span, updatedAt) => {
      enterAll();
      const last = seen.get(key);
      if (!last || span.begin > last.end) return 'newer';
      if (span.end < last.begin) return 'older';
      if (updatedAt === null || last.updatedAt === null || updatedAt === last.updatedAt) {
        return 'undecided';
      }
      return updatedAt > last.updatedAt ? 'newer' : 'older';
    },
    saw: (key, span, updatedAt, same) => {
      if (!overlaps(span)) return; // every later read begins after this one, and so is newer
      if (!same) enterAll();
      see(key, span, updatedAt, same);
      if (++saws % SWEEP_EVERY !== 0) return;
      const oldest = clock.oldest();
      for (const [other, { end }] of seen) if (end < oldest) seen.delete(other);
    },
    sawAll: (members, span) => {
      if (!overlaps(span)) return;
      const oldest = clock.oldest();
      waiting = [...waiting.filter((each) => each.span.end >= oldest), { members, span }];
    },
  };
}
