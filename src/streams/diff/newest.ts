import type { LogicalClock, Span } from '../http/logical-clock.ts';

/** What a read is worth beside the one that gave the content in hand. */
export type Verdict = 'newer' | 'older' | 'undecided';

/** Tells which of two reads of a key shows its newer content. */
export interface NewestReads {
  /** Is other content, read in `span`, newer than the content in hand for `key`? */
  judge(key: string, span: Span, updatedAt: number | null): Verdict;
  /** The content in hand for `key` is now that of this read; `same` if it was so before. */
  saw(key: string, span: Span, updatedAt: number | null, same: boolean): void;
  /** The content in hand for these keys, none of which is another's, was that of this read before. */
  sawAll(members: () => readonly SeenMember[], span: Span): void;
}

/** A key of several that were seen at once. */
export interface SeenMember {
  readonly key: string;
  readonly updatedAt: number | null;
}

interface Seen {
  /** The earliest end of a read that saw the content: what begins later is newer. */
  end: number;
  /** The latest beginning of a read that saw it: what ends earlier is older. */
  begin: number;
  readonly updatedAt: number | null;
}

const SWEEP_EVERY = 1_000;

/**
 * Keeps an answer from overwriting a newer one, when requests for the same records are under way
 * at once (a poll beside the initial snapshot) and their answers overtake each other.
 *
 * A read that began after another had ended is newer. Of two that overlapped the later `updated_at`
 * is newer; where that is equal or missing, nobody can tell: the key has to be read again. Only
 * reads that an unsettled one could overlap are remembered.
 */
export function newestReads(clock: LogicalClock): NewestReads {
  const seen = new Map<string, Seen>();
  /** Seen at once, and not entered in `seen` yet: nobody has been judged since. */
  let waiting: { readonly members: () => readonly SeenMember[]; readonly span: Span }[] = [];
  let saws = 0;
  clock.onIdle(() => {
    seen.clear();
    waiting = [];
  });

  let looked: { readonly span: Span; readonly overlaps: boolean } | undefined;
  /** Once for all records of a page: reads that begin from then on overlap it no more. */
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
  /** Before anything is looked up, and before other content takes its place. */
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
      if (!overlaps(span)) return; // whatever is judged later is newer
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
