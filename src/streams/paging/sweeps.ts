// Sweeps a list repeatedly: scans it completely, and emits the missing keys whose deletion is proven.

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
import { recordsOf } from '../decode/response.ts';
import type { Answer } from '../decode/response.ts';
import type { PageSlots } from '../flow/page-slots.ts';
import { isStale, MAX_LAG_MS } from '../http/response-age.ts';
import type { Span } from '../http/logical-clock.ts';
import { judgeMissing } from './deletion-limit.ts';
import type { LimitVerdict } from './deletion-limit.ts';
import { missingKeys } from './missing-keys.ts';
import type { KnownRecords } from './missing-keys.ts';
import type { ScanPage, ScanTrouble } from './pages.ts';
import { hasReadAll, proofRemainingMs, showsAbsence } from './sweep-progress.ts';
import type { SweepProgress } from './sweep-progress.ts';

/** One step of a sweep (full scan that finds deletions); it is stored before the next step is emitted. */
export type SweepStep =
  /** A page was read; the first page of a sweep begins the sweep. */
  | {
      readonly kind: 'page';
      readonly page: ScanPage;
      /** Whether the sweep is consistent so far; also false once it has met an unreadable record, or a response older than the sweep. */
      readonly isConsistent: boolean;
      /** Whether the list has kept its order: false once unchanged records were seen in a different order than before. */
      readonly ordered: boolean;
      /** When this sweep began, in epoch ms on the local clock. */
      readonly beganAt: number;
    }
  /** Unseen keys that count as seen, because their records are so new that a lagging replica may not have shown them. */
  | { readonly kind: 'spared'; readonly keys: readonly string[] }
  /** The missing keys were checked against the deletion limit. */
  | { readonly kind: 'judged'; readonly verdict: LimitVerdict }
  /** Polls that began after the scan of this sweep have read all changes made during it. */
  | { readonly kind: 'polled' }
  /** Keys proven absent: not seen since sweep number `since`. `span` is the read that counts as showing their absence. */
  | {
      readonly kind: 'absent';
      readonly keys: readonly string[];
      readonly since: number;
      readonly span: Span;
    }
  /** The record of a missing key was requested; `answer` is undefined if the result is unknown. */
  | {
      readonly kind: 'asked';
      readonly key: string;
      readonly since: number;
      readonly answer: Answer | undefined;
      /** Whether this is the second request for the key, after the first one found no record; the first alone proves nothing. */
      readonly again: boolean;
    }
  /** The records of all missing keys have been requested once. */
  | { readonly kind: 'asked-once' }
  /** The sweep is complete; `held` is the number of deletions held back by the deletion limit. */
  | { readonly kind: 'end'; readonly held: number };

/** Deletions held back because more keys went missing at once than the deletion limit allows. */
export interface HeldDeletions {
  /** Number of missing keys whose deletions are held back. */
  readonly gone: number;
  /** Number of published records of the list. */
  readonly known: number;
}

/** Requests for single records by key. */
interface SingleReads {
  /** Requests the record of a key; emits once, undefined if the result is unknown. */
  readonly request: (key: string) => Observable<Answer | undefined>;
  /** Whether the record of a key can be requested; a key whose record cannot is never published as deleted. */
  readonly canRequest: (key: string) => boolean;
}

/** How often a list is swept (scanned completely to find deletions). */
export interface SweepPace {
  /** Minimum time from the start of one sweep to the start of the next, in ms; read again before each wait. */
  readonly intervalMs: number;
  /** Time per request that keeps sweeps within their share of the quota, in ms. Default 0: the quota's lane limits them. */
  readonly spacingMs?: () => number;
  /** Each emission ends the wait for the next sweep. Default: never emits. */
  readonly startNow$?: Observable<unknown>;
}

/** When a missing key is considered deleted. */
export interface DeletionRules {
  /** How long a key has to stay missing before its deletion is proven, in ms. */
  readonly proofMs: number;
  /**
   * Deletion limit, in percent (0 to 100; 100 turns it off). Deletions are held back if, between two full scans, more keys go missing than
   * this share of the list's records and more than 20, or more than a third of the records and more than 2.
   */
  readonly limitPercent: number;
  /** Called during each sweep that holds back deletions. */
  readonly onHeld?: (held: HeldDeletions) => void;
  /**
   * Called with the list's total by each sweep that has missing keys, if the API has seemed to cap the list at that total for at least
   * `proofMs`.
   */
  readonly onCut?: (total: number) => void;
}

export interface SweepsOptions {
  /** Returns the progress as stored with the newest processed step. */
  readonly progress: () => SweepProgress;
  /** Scans the list from a position, or from its beginning for null; each page takes one of `pageSlots`. */
  readonly scan: (
    from: SweepProgress['position'],
    onTrouble: (trouble: ScanTrouble) => void,
  ) => Observable<ScanPage>;
  /** Page slots, with a capacity of one: a step is stored before the next one is emitted. */
  readonly pageSlots: PageSlots;
  readonly records: KnownRecords;
  /** Returns the keys of records published as new since a local time in epoch ms: a lagging replica may not show them yet. Default none. */
  readonly createdSince?: ((time: number) => readonly string[]) | undefined;
  /** Requests for the records of missing keys. Default: the API has none, and deletions are proven by sweeps alone. */
  readonly single?: SingleReads;
  /** Emits once polls that began after the subscription have read all changes up to then. Default: the list has no polls. */
  readonly pollsCompleted$?: Observable<unknown>;
  /**
   * Returns a span of the logical clock without duration, which stands for a read where a process that has not read a page itself proves
   * deletions.
   */
  readonly emptySpan: () => Span;
  readonly pace: SweepPace;
  readonly deletions: DeletionRules;
  /** Clock and timers. Default {@link asyncScheduler}. */
  readonly scheduler?: SchedulerLike;
}

/** The first request for the record of a missing key. */
interface FirstRequest {
  /** Time of the response, in epoch ms on the scheduler's clock. */
  readonly at: number;
  /** Number of the sweep that missed the key; a key that is seen in this or a later sweep is not missing. */
  readonly since: number;
}

/**
 * Number of consecutive sweeps that could not prove missing keys absent after which the wait for the next sweep stops growing. While
 * missing keys wait for a proof, the wait is at most `proofMs`, doubled with each such sweep after the first.
 */
const MAX_DOUBLED = 4;

/**
 * Sweeps a list repeatedly and detects deleted records. Where single records can be requested, the record of each missing key is requested;
 * the key is deleted if two such requests, at least `proofMs` apart, find no record and no read has shown it in between. Otherwise
 * `deletedUnlessSeenSince` decides. Never completes. After a failure, a new subscription resumes from `progress`.
 *
 * The emitted steps are candidates for deletion: `pipeline/reads` evaluates the response to a single request, `pipeline/compare-batches.ts`
 * drops a key that was seen in the meantime, and `diff` drops one that an overlapping read has shown.
 *
 * Before any of that, the keys that this sweep is the first to miss are checked against the deletion limit (`deletion-limit.ts`): when many
 * records go missing at once, the API is more likely faulty than right.
 */
export function sweeps(options: SweepsOptions): Observable<SweepStep> {
  const {
    progress,
    scan,
    pageSlots,
    records,
    single,
    pollsCompleted$,
    scheduler = asyncScheduler,
  } = options;
  const { pace, createdSince = () => [] } = options;
  const { spacingMs = () => 0, startNow$ = NEVER } = pace;
  const { proofMs, limitPercent, onHeld, onCut } = options.deletions;
  let requests = 0;
  let lastRead: Span | undefined;
  let held = 0;
  /** Number of missing keys that are not yet proven absent. */
  let waiting = 0;
  /** Number of consecutive sweeps that could not prove that keys are absent, up to {@link MAX_DOUBLED}. */
  let inVain = 0;
  /** First requests for records, by missing key. */
  const firstRequests = new Map<string, FirstRequest>();

  const missing = missingKeys({
    ...{ progress, records, proofMs, scheduler },
    isDeletable: (key) => single === undefined || single.canRequest(key),
  });
  /** Emits once every emitted step has been processed: the only page slot is then free. */
  const stepsDone$ = defer(() => pageSlots.acquire.pipe(tap(() => pageSlots.release())));
  /** Takes the page slot, then emits the step. */
  const step = (step$: Observable<SweepStep>) => pageSlots.acquire.pipe(switchMap(() => step$));

  const read = (position: SweepProgress['position']): Observable<SweepStep> =>
    defer(() => {
      let beganAt = scheduler.now();
      let isFirst = true;
      let isConsistent = true;
      let ordered = true;
      const onTrouble = (trouble: ScanTrouble) => {
        if (trouble === 'unsettled' || trouble === 'cut') isConsistent = false;
        if (trouble === 'reordered') ordered = false;
      };
      return scan(position, onTrouble).pipe(
        map((page): SweepStep => {
          requests += 1;
          lastRead = page.answer.span;
          // An unreadable record may be that of any missing key.
          if (!recordsOf(page.answer).isReadable) isConsistent = false;
          const { age } = page.answer;
          // A sweep begins when the server produced its first page; a response older than that shows the list as it was before.
          if (isFirst && age && !isStale(age)) beganAt = Math.min(beganAt, age.asOf);
          isFirst = false;
          if (age && age.asOf < beganAt) isConsistent = false;
          return { kind: 'page', page, isConsistent, ordered, beganAt };
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
  /** Runs `work` if there are missing keys whose deletions are not held back. */
  const ifMissing = (work: Observable<SweepStep>): Observable<SweepStep> =>
    stepsDone$.pipe(
      switchMap(() => missing.countFree()),
      filter((count) => count > 0),
      switchMap(() => work),
    );
  const absent = defer((): Observable<SweepStep> => {
    const polls = defer(() =>
      progress().awaitsPolls && pollsCompleted$
        ? pollsCompleted$.pipe(
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
          const span = lastRead ?? options.emptySpan();
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
  /** Returns the first request for the record of a missing key; undefined if there was none, or if the key has been seen since. */
  const firstAsked = (key: string): FirstRequest | undefined => {
    const first = firstRequests.get(key);
    return first && records.isUnseen(key, first.since) ? first : undefined;
  };
  /**
   * Requests the record of each missing key once, and again when the key has stayed missing for `proofMs`. If the next sweep is due before
   * that, and this one has read the list in less time than is left, this one ends, and the next one makes the second request.
   */
  const asking = ({ request }: SingleReads): Observable<SweepStep> => {
    const askFor = (key: string, since: number, again: boolean) =>
      step(request(key).pipe(map((answer) => ({ kind: 'asked', key, since, answer, again }))));
    const once = defer(() => {
      const { number, askedUpTo, askedAt } = progress();
      if (askedAt !== null) return EMPTY;
      for (const key of firstRequests.keys()) if (!firstAsked(key)) firstRequests.delete(key);
      const each$ = missing.each((key) => {
        if (firstAsked(key)) return EMPTY;
        return askFor(key, number, false).pipe(
          tap(() => firstRequests.set(key, { at: scheduler.now(), since: number })),
        );
      }, askedUpTo ?? undefined);
      return concat(each$, step(of({ kind: 'asked-once' })));
    });
    const again = ifMissing(
      defer(() => {
        const tookMs = scheduler.now() - progress().beganAt;
        const wait = Math.min(
          proofRemainingMs(progress(), scheduler.now(), proofMs),
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
              firstRequests.delete(key);
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

  /** Returns the time to wait for the next sweep, in ms; shorter if missing keys wait for the proof that they are absent. */
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
      return race(timer(pauseLeft(), scheduler), startNow$).pipe(
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
