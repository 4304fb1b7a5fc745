import {
  asyncScheduler,
  concat,
  defer,
  EMPTY,
  filter,
  ignoreElements,
  map,
  NEVER,
  of,
  race,
  repeat,
  switchMap,
  take,
  tap,
  timer,
} from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import { recordsOf } from '../decode/answer.ts';
import type { Answer } from '../decode/answer.ts';
import type { Permits } from '../flow/permits.ts';
import { isStale, MAX_LAG_MS } from '../http/answer-age.ts';
import type { Span } from '../http/logical-clock.ts';
import { judgeMissing } from './deletion-limit.ts';
import type { LimitVerdict } from './deletion-limit.ts';
import { missingKeys } from './missing-keys.ts';
import type { KnownRecords } from './missing-keys.ts';
import type { ScanPage, ScanTrouble } from './pages.ts';
import { hasReadAll, proofLeft, showsAbsence } from './sweep-progress.ts';
import type { SweepProgress } from './sweep-progress.ts';

/** One thing that a sweep has found out, to be kept before the next. */
export type SweepStep =
  /** A page; the first one of a sweep begins it. */
  | {
      readonly kind: 'page';
      readonly page: ScanPage;
      /** Whether the reading has added up so far; false, too, once it has met a record that can't be read. */
      readonly settled: boolean;
      /** False once unchanged records have changed places. */
      readonly ordered: boolean;
      /** When this reading of the list began, ms on the local clock. */
      readonly beganAt: number;
    }
  /** Keys that count as seen: their records were created so shortly before the reading that a lagging replica may not have shown them. */
  | { readonly kind: 'spared'; readonly keys: readonly string[] }
  /** The deletion limit's judgement of all missing keys. */
  | { readonly kind: 'judged'; readonly verdict: LimitVerdict }
  /** Polls that began after the reading have looked at all that has changed. */
  | { readonly kind: 'polled' }
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

/** Keys that are held back, as more of them vanished at once than may be. */
export interface Held {
  readonly gone: number;
  readonly known: number;
}

/** Single records, asked for by their keys. */
interface SingleReads {
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
   * Above this share of a list's records, and above 20, keys that vanish between two complete readings are held back; so are more
   * than a third of them, and more than 2. 0 to 100, which is no limit.
   */
  readonly limitPercent: number;
  /** Called after each sweep that holds deletions back. */
  readonly onHeld?: (held: Held) => void;
  /** Called with the total after each sweep of a list that may have been cut off at it for `proofMs`, if keys are missing. */
  readonly onCut?: (total: number) => void;
}

export interface SweepsOptions {
  /** As it was kept with the newest step that was settled. */
  readonly progress: () => SweepProgress;
  /** Reads the list from where a position says, null for its beginning; each page takes one of `permits`. */
  readonly scan: (
    from: SweepProgress['position'],
    onTrouble: (trouble: ScanTrouble) => void,
  ) => Observable<ScanPage>;
  /** Of one place: a step is kept before the next is taken. */
  readonly permits: Permits;
  readonly records: KnownRecords;
  /** Keys of records that were published as new since a local time, in ms: a lagging replica may not show them yet. Default none. */
  readonly createdSince?: ((time: number) => readonly string[]) | undefined;
  /** Asks for what is missing. Default: there is no such query, and sweeps decide. */
  readonly single?: SingleReads;
  /** Emits once polls that began after the subscription have looked at all that has changed. Default: the list has no polls. */
  readonly polled$?: Observable<unknown>;
  /** When nothing is read: a moment in the order of reads. */
  readonly moment: () => Span;
  readonly pace: SweepPace;
  readonly deletions: DeletionRules;
  /** Clock and timers. Default {@link asyncScheduler}. */
  readonly scheduler?: SchedulerLike;
}

/** The first request for the record of a missing key. */
interface FirstAsked {
  /** Time of the answer, in ms on the scheduler's clock. */
  readonly at: number;
  /** Number of the sweep that missed the key; a key that is seen in this or a later sweep is not missing. */
  readonly since: number;
}

/** How often the wait for the next sweep is doubled while missing keys wait for a proof, and none is proven. */
const MAX_DOUBLED = 4;

/**
 * Reads a list whole, again and again, and tells what is gone from it. Where records can be asked for, what is missing is asked for, and is
 * gone if it was twice, the time of a proof apart, and was not seen in between; of all else `seenSince` says when that can be told. Never
 * completes. After a failure it goes on where `progress` says.
 *
 * What is told here is on its way to be a deletion, not one yet: an answer for a single record is judged in `pipeline/reads`, a key that
 * was seen meanwhile is let go (`pipeline/compare.ts`), and so is one that an overlapping read saw alive (`diff`).
 *
 * First all that this reading is the first to miss is held against the limit (`deletion-limit.ts`): a list that has lost much at once is
 * more likely broken than right.
 */
export function sweeps(options: SweepsOptions): Observable<SweepStep> {
  const { progress, scan, permits, records, single, polled$, scheduler = asyncScheduler } = options;
  const { pace, createdSince = () => [] } = options;
  const { spacingMs = () => 0, hurry$ = NEVER } = pace;
  const { proofMs, limitPercent, onHeld, onCut } = options.deletions;
  let requests = 0;
  let lastRead: Span | undefined;
  let held = 0;
  /** Keys that wait for the proof of their absence, and sweeps in a row that have proven none. */
  let waiting = 0;
  let inVain = 0;
  /** First requests for records, by missing key. */
  const asked = new Map<string, FirstAsked>();

  const missing = missingKeys({
    ...{ progress, records, proofMs, scheduler },
    canBeTold: (key) => single === undefined || single.canBeAsked(key),
  });
  /** Waits until every step that was emitted is dealt with: then its only place is free. */
  const stepsDone$ = defer(() => permits.acquire.pipe(tap(() => permits.release())));
  /** A step of its own place. */
  const step = (step$: Observable<SweepStep>) => permits.acquire.pipe(switchMap(() => step$));

  const read = (position: SweepProgress['position']): Observable<SweepStep> =>
    defer(() => {
      let beganAt = scheduler.now();
      let isFirst = true;
      let settled = true;
      let ordered = true;
      const onTrouble = (trouble: ScanTrouble) => {
        if (trouble === 'unsettled' || trouble === 'cut') settled = false;
        if (trouble === 'reordered') ordered = false;
      };
      return scan(position, onTrouble).pipe(
        map((page): SweepStep => {
          requests += 1;
          lastRead = page.answer.span;
          // An unreadable record may be any of those that are missing.
          if (!recordsOf(page.answer).isReadable) settled = false;
          const { age } = page.answer;
          // A reading begins when its first page was made; what is older than that shows what was there before.
          if (isFirst && age && !isStale(age)) beganAt = Math.min(beganAt, age.asOf);
          isFirst = false;
          if (age && age.asOf < beganAt) settled = false;
          return { kind: 'page', page, settled, ordered, beganAt };
        }),
      );
    });

  const spared = defer((): Observable<SweepStep> => {
    const { number, beganAt } = progress();
    const keys = createdSince(beganAt - MAX_LAG_MS).filter((key) => records.isUnseen(key, number));
    return keys.length > 0 ? step(of({ kind: 'spared', keys })) : EMPTY;
  });
  const judged = stepsDone$.pipe(
    switchMap(() => missing.count()),
    switchMap((counted) => {
      const { judged, number, heldBack } = progress();
      if (counted.all === 0 && heldBack.length === 0) return EMPTY;
      const known = records.count();
      const at = { judged, number, known, heldBack, limitPercent };
      const verdict = judgeMissing(counted, at);
      held = verdict.heldBack.reduce((sum, each) => sum + (each.isConfirmed ? 0 : each.gone), 0);
      if (held > 0) onHeld?.({ gone: held, known });
      return step(of({ kind: 'judged', verdict }));
    }),
  );
  /** Goes on if there is something to prove the absence of. */
  const ifMissing = (work: Observable<SweepStep>): Observable<SweepStep> =>
    stepsDone$.pipe(
      switchMap(() => missing.countFree()),
      filter((count) => count > 0),
      switchMap(() => work),
    );
  const absent = defer((): Observable<SweepStep> => {
    const polls = defer(() =>
      progress().awaitsPolls && polled$
        ? polled$.pipe(
            take(1),
            switchMap(() => step(of({ kind: 'polled' }))),
          )
        : EMPTY,
    );
    let isProven = false;
    const proven = stepsDone$.pipe(
      switchMap(() =>
        missing.proven((gone) => {
          isProven = true;
          const span = lastRead ?? options.moment();
          return step(of({ kind: 'absent', ...gone, span }));
        }),
      ),
    );
    const left = stepsDone$.pipe(
      switchMap(() => missing.countFree()),
      tap((count) => {
        waiting = count;
        inVain = isProven ? 0 : Math.min(MAX_DOUBLED, inVain + 1);
      }),
      ignoreElements(),
    );
    return concat(polls, proven, left);
  });
  /** The first request for a key's record; undefined without one, or if the key has been seen since. */
  const firstAsked = (key: string): FirstAsked | undefined => {
    const first = asked.get(key);
    return first && records.isUnseen(key, first.since) ? first : undefined;
  };
  /**
   * Requests the record of each missing key once, and again when the key has stayed missing for `proofMs`. If the next sweep is due before
   * that, and this one has read the list in less time than is left, this one ends, and the next one makes the second request.
   */
  const asking = ({ ask }: SingleReads): Observable<SweepStep> => {
    const askFor = (key: string, since: number, again: boolean) =>
      step(ask(key).pipe(map((answer) => ({ kind: 'asked', key, since, answer, again }))));
    const once = defer(() => {
      const { number, askedUpTo, askedAt } = progress();
      if (askedAt !== null) return EMPTY;
      for (const key of asked.keys()) if (!firstAsked(key)) asked.delete(key);
      const each$ = missing.each((key) => {
        if (firstAsked(key)) return EMPTY;
        return askFor(key, number, false).pipe(
          tap(() => asked.set(key, { at: scheduler.now(), since: number })),
        );
      }, askedUpTo ?? undefined);
      return concat(each$, step(of({ kind: 'asked-once' })));
    });
    const again = ifMissing(
      defer(() => {
        const tookMs = scheduler.now() - progress().beganAt;
        const wait = Math.min(
          proofLeft(progress(), scheduler.now(), proofMs),
          Math.max(pauseLeft(), tookMs),
        );
        return timer(wait, scheduler).pipe(
          switchMap(() => {
            const now = scheduler.now();
            const { number, askedAt } = progress();
            return missing.each((key) => {
              // The first request for a key that is not in the map was made by an earlier process.
              const first = firstAsked(key) ?? { at: askedAt ?? now, since: number };
              if (first.at + proofMs > now) return EMPTY;
              asked.delete(key);
              return askFor(key, first.since, true);
            });
          }),
        );
      }),
    );
    return concat(once, again);
  };
  const tellCut = () => {
    const { cut } = progress();
    if (cut && cut.since + proofMs <= scheduler.now()) onCut?.(cut.total);
  };
  const remove: Observable<SweepStep> = stepsDone$.pipe(
    switchMap(() => {
      held = 0;
      waiting = 0;
      if (!showsAbsence(progress(), single !== undefined)) return EMPTY;
      if (hasReadAll(progress(), records.count())) return EMPTY;
      const prove = defer(() => {
        tellCut();
        return single ? asking(single) : absent;
      });
      return concat(spared, judged, ifMissing(prove));
    }),
  );
  const end = step(defer(() => of({ kind: 'end', held } as const)));

  /** How long to wait for the next sweep, ms: what waits for its proof may shorten it. */
  const pauseLeft = (): number => {
    const { beganAt } = progress();
    const now = scheduler.now();
    const pause = Math.max(pace.intervalMs, requests * spacingMs());
    const left = Math.min(pause, Math.max(0, beganAt + pause - now));
    return waiting > 0 ? Math.min(left, proofMs * 2 ** Math.max(0, inVain - 1)) : left;
  };

  return stepsDone$.pipe(
    switchMap(() => {
      const { phase, position } = progress();
      if (phase === 'removing') return concat(remove, end);
      if (phase === 'reading') return concat(read(position), remove, end);
      return race(timer(pauseLeft(), scheduler), hurry$).pipe(
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
