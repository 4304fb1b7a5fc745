// Decides which of two overlapping reads of a key has the newer content.

import type { LogicalClock, Span } from '../http/logical-clock.ts';
import type { KnownMember } from '../records/page-record.ts';

/** Whether a read has newer or older content than the known content of a key; `undecided` if that is unknown. */
export type Verdict = 'newer' | 'older' | 'undecided';

/** A record passed to {@link NewestReads.sawAll}: its key and modification time. */
export type SeenMember = Pick<KnownMember, 'key' | 'updatedAt'>;

/**
 * When the known content of a record was read, on the list's logical clock. If several reads showed this content: the latest of their
 * begins and the earliest of their ends.
 */
interface SeenContent {
  /** Earliest end (logical time) of the reads that showed this content. Other content is newer if its read began after this end. */
  end: number;
  /** Latest begin (logical time) of the reads that showed this content. A read that ended before this begin has older content. */
  begin: number;
  readonly updatedAt: number | null;
}

/**
 * Number of calls of `saw` between two cleanups of `#seen`. A cleanup removes the entries that no open read can overlap any more. If the
 * number is too small, cleanups take time; if it is too large, more memory is needed.
 */
const SWEEP_EVERY = 1_000;

/**
 * Remembers when the known content of each key was read, and decides whether content of a later read is newer. This keeps a response from
 * overwriting a newer one if requests for the same records are in flight at the same time and their responses arrive in another order.
 *
 * - A read that began after another one had ended is newer.
 * - Of two reads that overlapped, the one with the later modification time is newer.
 * - If they overlapped and the modification time is equal or missing, the verdict is `undecided`, and the key has to be read again.
 */
export class NewestReads {
  readonly #clock: LogicalClock;
  readonly #seen = new Map<string, SeenContent>();
  /** Arguments of the calls of `sawAll` whose records are not in `#seen` yet. The records are added when `#seen` is next needed. */
  #waiting: { readonly members: () => readonly SeenMember[]; readonly span: Span }[] = [];
  #saws = 0;

  constructor(clock: LogicalClock) {
    this.#clock = clock;
    clock.onIdle(() => {
      this.#seen.clear();
      this.#waiting = [];
    });
  }

  /**
   * Returns whether the content of `key` that the read `span` showed is newer or older than the known content. Only for content that
   * differs from the known one. `updatedAt`: modification time of the shown content in epoch ms; null if it has none.
   */
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

  /**
   * Remembers that the read `span` showed content of the record `key`. `updatedAt`: the record's modification time in epoch ms; null if it
   * has none. `same`: whether the content is the one already known.
   */
  saw(key: string, span: Span, updatedAt: number | null, same: boolean): void {
    if (!this.#clock.overlaps(span)) return; // every later read begins after this one, and so is newer
    if (!same) this.#enterAll();
    this.#see(key, span, updatedAt, same);
    if (++this.#saws % SWEEP_EVERY !== 0) return;
    const oldest = this.#clock.oldest();
    for (const [other, { end }] of this.#seen) if (end < oldest) this.#seen.delete(other);
  }

  /**
   * Remembers that a read showed several keys, all with their known content. `members` returns these keys, each once. It is called only
   * when the keys are needed.
   */
  sawAll(members: () => readonly SeenMember[], span: Span): void {
    if (!this.#clock.overlaps(span)) return;
    const oldest = this.#clock.oldest();
    const waiting = this.#waiting.filter((each) => each.span.end >= oldest);
    this.#waiting = [...waiting, { members, span }];
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

  /**
   * Adds the records that `sawAll` has stored in `#waiting` to `#seen`. Must run before `judge` uses `#seen`, and before `saw` stores new
   * content of a record there.
   */
  #enterAll(): void {
    for (const { members, span } of this.#waiting) {
      for (const { key, updatedAt } of members()) this.#see(key, span, updatedAt, true);
    }
    this.#waiting = [];
  }
}
