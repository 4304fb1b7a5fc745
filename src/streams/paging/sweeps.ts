import {
  asyncScheduler,
  concat,
  concatMap,
  defer,
  EMPTY,
  filter,
  from,
  map,
  NEVER,
  of,
  race,
  reduce,
  repeat,
  switchMap,
  take,
  tap,
  timer,
} from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import type { ScanPage } from './pages.ts';
import type { Span } from '../http/logical-clock.ts';
import { recordsOf } from '../decode/answer.ts';
import type { Answer } from '../decode/answer.ts';
import type { Permits } from '../flow/permits.ts';
import { hasReadAll, proofLeft, removedLately, seenSince, showsAbsence } from './sweep-progress.ts';
import type { SweepProgress } from './sweep-progress.ts';

/** One thing that a sweep has found out, to be kept before the next. */
export type SweepStep =
  /** A page; the first one of a sweep begins it. */
  | {
      readonly kind: 'page';
      readonly page: ScanPage;
      /** Whether the reading has added up so far; false, too, once it has met a record that can't be read. */
      readonly settled: boolean;
      /** When this reading of the list began, ms on the local clock. */
      readonly beganAt: number;
    }
  /** Keys that no sweep has seen since the one numbered `since`; read like a page at `span`. */
  | {
      readonly kind: 'absent';
      readonly keys: readonly string[];
      readonly since: number;
      readonly span: Span;
    }
  /** What the API says when it is asked for one of them; undefined when it can't be told. */
  | {
      readonly kind: 'asked';
      readonly key: string;
      readonly since: number;
      readonly answer: Answer | undefined;
      /** Whether it was gone before: the first time proves nothing yet. */
      readonly again: boolean;
    }
  /** All of them have been asked for once. */
  | { readonly kind: 'asked-once' }
  /** All is dealt with; so many deletions are held back as too many. */
  | { readonly kind: 'end'; readonly held: number };

/** Keys that are known, and have not been seen since a certain sweep. */
export interface Unseen {
  readonly keys: readonly string[];
  /** Where to go on looking; undefined at the end. */
  readonly next: string | undefined;
}

/** What is known of the records that are published, as far as sweeps need it. */
export interface KnownRecords {
  /** How many there are. */
  count(): number;
  /** A stretch of the keys behind `after`: so many that the caller is not held up for long. */
  unseen(since: number, after: string | undefined): Unseen;
}

/** More keys are gone at once than may be; with those of the last hour. */
export interface Held {
  readonly gone: number;
  readonly known: number;
}

/** Single records, asked for by their keys. */
export interface SingleReads {
  /** Asks for the record of a key: emits once; undefined when it can't be told. */
  readonly ask: (key: string) => Observable<Answer | undefined>;
  /** Whether a key can be asked for: one that can't is never gone. */
  readonly canBeAsked: (key: string) => boolean;
}

/** How often a list is swept. */
export interface SweepPace {
  /** Least time from the beginning of a sweep to that of the next, ms; read again before each wait. */
  readonly intervalMs: number;
  /** What a request costs in time, ms. Default 0: the quota's lane sees to it. */
  readonly spacingMs?: () => number;
  /** Its next value ends the wait for the next one. Default nothing does. */
  readonly hurry$?: Observable<unknown>;
}

/** When what is absent is gone. */
export interface DeletionRules {
  /** How long it has to stay absent before, ms. */
  readonly proofMs: number;
  /**
   * Above this share of the known records, and above 20, none is removed; nor above a third of them, and
   * above 2. 0 to 100, which is no limit.
   */
  readonly limitPercent: number;
  /** Told when deletions are held back as too many. */
  readonly onHeld?: (held: Held) => void;
}

/** What {@link sweeps} needs. */
export interface SweepsOptions {
  /** As it was kept with the newest step that was settled. */
  readonly progress: () => SweepProgress;
  /** Reads the list from where a position says, null for its beginning; each page takes one of `permits`. */
  readonly scan: (from: SweepProgress['position'], onUnsettled: () => void) => Observable<ScanPage>;
  /** Of one place: a step is kept before the next is taken. */
  readonly permits: Permits;
  readonly records: KnownRecords;
  /** Asks for what is missing. Default: there is no such query, and sweeps decide. */
  readonly single?: SingleReads;
  /** When nothing is read: a moment in the order of reads. */
  readonly moment: () => Span;
  readonly pace: SweepPace;
  readonly deletions: DeletionRules;
  /** Clock and timers. Default {@link asyncScheduler}. */
  readonly scheduler?: SchedulerLike;
}

/** So many may go of a long list, whatever the limit; of a short one they are most of it. */
const FEW = 20;
const FEWEST = 2;
const MAX_OF_SHORT = 1 / 3;

/**
 * Reads a list whole, again and again, and tells what is gone from it: what is asked for when it was
 * gone twice, the time of a proof apart; of all else {@link seenSince} says when
 * that can be told. Never completes. After a failure it goes on where `progress` says.
 *
 * What is told here is on its way to be a deletion, not one yet: an answer for a single record is judged in
 * `pipeline/reads`, a key that was seen meanwhile is let go (`pipeline/compare.ts`), and so is one that an overlapping read
 * saw alive (`diff`).
 *
 * All that is missing is counted first, proven or not, together with what went within the last hour. If it is more than
 * the limit, none of it is told, and the next sweep counts again: a list that has lost much at once
 * is more likely broken than right.
 */
export function sweeps(options: SweepsOptions): Observable<SweepStep> {
  const { progress, scan, permits, records, single, scheduler = asyncScheduler } = options;
  const { pace } = options;
  const { spacingMs = () => 0, hurry$ = NEVER } = pace;
  const { proofMs, limitPercent, onHeld } = options.deletions;
  let requests = 0;
  let lastRead: Span | undefined;
  let held = 0;

  /** Waits until every step that was emitted is dealt with: then its only place is free. */
  const stepsDone$ = defer(() => permits.acquire.pipe(tap(() => permits.release())));
  /** A step of its own place. */
  const step = (step$: Observable<SweepStep>) => permits.acquire.pipe(switchMap(() => step$));

  const read = (position: SweepProgress['position']): Observable<SweepStep> =>
    defer(() => {
      const beganAt = scheduler.now();
      let addsUp = true;
      return scan(position, () => (addsUp = false)).pipe(
        map((page): SweepStep => {
          requests += 1;
          lastRead = page.answer.span;
          // An unreadable record may be any of those that are missing.
          if (!recordsOf(page.answer).isReadable) addsUp = false;
          return { kind: 'page', page, settled: addsUp, beganAt };
        }),
      );
    });

  const isTooMuch = (gone: number, known: number): boolean => {
    if (limitPercent === 100) return false;
    const isMuch = gone > FEW && gone > (known * limitPercent) / 100;
    return isMuch || (gone > FEWEST && gone > known * MAX_OF_SHORT);
  };
  const isHeld = (missing: number): boolean => {
    const before = removedLately(progress(), scheduler.now());
    const gone = missing + before;
    const known = records.count() + before;
    const isMuch = isTooMuch(gone, known);
    if (isMuch) onHeld?.({ gone, known });
    held = isMuch ? missing : 0;
    return isMuch;
  };
  /** Works through the unseen keys: a stretch is looked up when the one before is dealt with. */
  const stretches = <T>(
    since: number,
    work: (keys: readonly string[]) => Observable<T>,
    begin?: string,
  ): Observable<T> =>
    defer(() => {
      let after = begin;
      return timer(0, scheduler).pipe(
        switchMap(() => {
          const { keys, next } = records.unseen(since, after);
          after = next;
          return work(keys);
        }),
        // Not by recursion: when all of a long list is gone, thousands of stretches are.
        repeat({ delay: () => (after === undefined ? EMPTY : of(undefined)) }),
      );
    });
  const count = (since: number): Observable<number> =>
    stretches(since, (keys) => of(keys.filter(canBeTold).length)).pipe(
      reduce((gone, more) => gone + more, 0),
    );
  const canBeTold = (key: string) => single === undefined || single.canBeAsked(key);
  const absent = defer((): Observable<SweepStep> => {
    const since = seenSince(progress(), proofMs);
    if (since === undefined) return EMPTY;
    const span = lastRead ?? options.moment();
    return stretches(since, (keys) =>
      keys.length === 0 ? EMPTY : step(of({ kind: 'absent', keys, since, span })),
    );
  });
  const asking = (
    { ask }: SingleReads,
    since: number,
    again: boolean,
    after?: string,
  ): Observable<SweepStep> =>
    stretches(
      since,
      (keys) =>
        from(keys.filter(canBeTold)).pipe(
          concatMap((key) =>
            step(ask(key).pipe(map((answer) => ({ kind: 'asked', key, since, answer, again })))),
          ),
        ),
      after,
    );
  /** Asks once for all that is missing, and when it has stayed so for long enough once more. */
  const asked = (by: SingleReads, since: number): Observable<SweepStep> => {
    const once = defer(() => {
      const { askedUpTo, askedAt } = progress();
      if (askedAt !== null) return EMPTY;
      return concat(
        asking(by, since, false, askedUpTo ?? undefined),
        step(of({ kind: 'asked-once' })),
      );
    });
    const again = stepsDone$.pipe(
      switchMap(() => count(since)),
      filter((missing) => missing > 0),
      switchMap(() => timer(proofLeft(progress(), scheduler.now(), proofMs), scheduler)),
      switchMap(() => asking(by, since, true)),
    );
    return concat(once, again);
  };
  const remove: Observable<SweepStep> = stepsDone$.pipe(
    switchMap(() => {
      held = 0;
      const { number } = progress();
      if (!showsAbsence(progress(), single !== undefined)) return EMPTY;
      if (hasReadAll(progress(), records.count())) return EMPTY;
      return count(number).pipe(
        filter((missing) => missing > 0 && !isHeld(missing)),
        switchMap(() => (single ? asked(single, number) : absent)),
      );
    }),
  );
  const end = step(defer(() => of({ kind: 'end', held } as const)));

  return stepsDone$.pipe(
    switchMap(() => {
      const { phase, position, beganAt } = progress();
      if (phase === 'removing') return concat(remove, end);
      if (phase === 'reading') return concat(read(position), remove, end);
      const pause = Math.max(pace.intervalMs, requests * spacingMs());
      const wait = Math.min(pause, Math.max(0, beganAt + pause - scheduler.now()));
      return race(timer(wait, scheduler), hurry$).pipe(
        take(1),
        switchMap(() => {
          requests = 0;
          return concat(read(null), remove, end);
        }),
      );
    }),
    repeat(),
  );
}
