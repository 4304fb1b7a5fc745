import {
  BehaviorSubject,
  catchError,
  concatMap,
  defer,
  EMPTY,
  map,
  merge,
  of,
  startWith,
  Subject,
  switchMap,
  take,
  throwError,
  timer,
} from 'rxjs';
import type { Observable } from 'rxjs';
import { describeError } from '../../core/errors.ts';
import type { Published } from '../../observe/hooks.ts';
import type { ServerClock } from '../../streams/http/server-clock.ts';
import { dateNegotiation } from '../../streams/paging/date-negotiation.ts';
import { giveUpReason } from '../../streams/decode/dated-patience.ts';
import type { GiveUpReason } from '../../streams/decode/dated-patience.ts';
import { ListDates } from '../../streams/paging/list-dates.ts';
import type { NoDates } from '../../streams/paging/list-dates.ts';
import { poll } from '../../streams/paging/poll.ts';
import type { PollPage, Window } from '../../streams/paging/poll.ts';
import type { Task } from '../task.ts';
import { dateChecks } from './date-checks.ts';
import { datedScan, dateRefusal } from './dated-scan.ts';
import type { PollChain, PollScans } from './poll-scans.ts';
import type { ProbeLane } from './probe-lane.ts';
import type { PollBatch, ReadLane, RefetchBatch } from './read-batch.ts';

export interface PollReadsOptions {
  readonly task: Pick<Task, 'rules' | 'config' | 'hooks' | 'scheduler' | 'phase' | 'pollNow$'>;
  readonly clock: ServerClock;
  readonly pollScans: Pick<PollScans, 'scanStarted' | 'scanEnded'>;
  /** Opens the two lanes of polls: `newest` for new changes, and `back` for lookback polls, which find records that became visible late. */
  readonly open: () => { readonly newest: ReadLane; readonly back: ReadLane };
  readonly probe: ProbeLane;
  /** Start of the first poll window, in epoch ms. Emits once the initial snapshot has begun, or at once if an earlier process began it. */
  readonly since$: Observable<number>;
  /** Returns the time between poll requests, in ms, at which polls stay within their share of the quota. */
  readonly spacingMs: () => number;
  /** Called before each poll for new changes, with the start of its window in epoch ms. */
  readonly onPoll: (from: number) => void;
  /** Whether the running poll reads the changes that the initial snapshot missed. */
  readonly catchesUp: () => boolean;
}

export interface PollReads {
  readonly batches$: Observable<PollBatch | RefetchBatch>;
  readonly dates: ListDates;
  /** Whether polls do not work at the moment, so that sweeps have to find changes. Emits the current state, then each change of it. */
  readonly unpolled$: Observable<boolean>;
  /** Whether polls do not work at the moment: the current value of `unpolled$`. */
  readonly isUnpolled: () => boolean;
  /** To be called with what a batch has published. A change that polls should have read earlier starts a probe. */
  readonly onPublished: (published: Pick<Published, 'lane' | 'changes'>) => void;
}

const AN_HOUR_MS = 3_600_000;
/**
 * Pause before refused polls are tried again, in ms. Doubles with each try, up to an hour. Too small: requests are wasted on a list that
 * does not support dates. Too large: a list that supports them again is swept for that much longer.
 */
const REFUSED_POLLS_PAUSE_MS = 5 * 60_000;
/**
 * Number of failed scans in a row, within one chain of polls, after which polls are given up. Counts only scans whose first page works when
 * it is requested again. A single such failure may be an outage.
 */
const MAX_FAILED_SCANS = 2;

/**
 * Polls a list, one window after another. Probes that run alongside check whether the list's date parameters work as documented
 * (`date-checks.ts`).
 *
 * A poll that is refused, or fails for a while, ends no other lane: if the list works without dates, other date formats are tried. If none
 * works, polls are given up and tried again later; until a poll completes, sweeps find new changes.
 */
export function pollReads(options: PollReadsOptions): PollReads {
  const { task, clock, pollScans, open, probe, since$, spacingMs, onPoll, catchesUp } = options;
  const { config, hooks, scheduler, phase = 1, pollNow$ } = task;
  const { intervalMs, lookbackMs } = config.poll;
  const unpolled$ = new BehaviorSubject(false);
  const dates = new ListDates({
    clock,
    localTime: () => scheduler.now(),
    onFound: (found) => hooks.onDates(found),
  });
  const restart$ = new Subject<void>();
  /** Start times of the first poll window (`first`) and of the next one (`since`), in epoch ms. */
  let reached = { first: Infinity, since: -Infinity };
  /** Server time at which the last completed poll began, in epoch ms: polls have requested every change stamped before it. */
  let polledAt = -Infinity;
  /** Number of failed scans in a row of each chain of polls, counting only scans whose first page worked when it was requested again. */
  const failedScans = { newest: 0, back: 0 };
  /** Number of times, since the last completed scan, that polls paused after they were given up. */
  let pauses = 0;

  const tellUnpolled = (isUnpolled: boolean) => {
    if (isUnpolled !== unpolled$.value) unpolled$.next(isUnpolled);
  };
  const restart = (from: number) => {
    reached = { ...reached, since: Math.min(reached.since, from) };
    if (dates.noDates) tellUnpolled(true);
    restart$.next();
  };
  const scanEnded = (chain: PollChain) => {
    pollScans.scanEnded(chain);
    failedScans[chain] = 0;
    pauses = 0;
    if (!unpolled$.value) return;
    dates.formWorks();
    tellUnpolled(false);
  };

  const polling = (): Observable<PollBatch | RefetchBatch> =>
    defer(() => {
      if (isRetried(dates.noDates)) return pollingLater();
      if (dates.noDates) return EMPTY;
      const lanes = open();
      let failed: { readonly window: Window; readonly chain: PollChain } | undefined;
      let beganAt = -Infinity;
      const scanning = (chain: PollChain) => (window: Window) =>
        datedScan(lanes[chain], dates, window, dates.now).pipe(
          catchError((error: unknown) => {
            failed = { window, chain };
            return throwError(() => error);
          }),
        );
      const [scan, scanBack] = [scanning('newest'), scanning('back')];
      return poll({
        scan: (window) => {
          beganAt = dates.now;
          pollScans.scanStarted('newest');
          onPoll(Date.parse(window.modifiedFromDate));
          return scan(window);
        },
        scanBack: (window) => {
          pollScans.scanStarted('back');
          return scanBack(window);
        },
        windowOf: (from, latest) => dates.windowOf(from, latest),
        clock,
        since: reached.since,
        lookbackMs,
        ...(intervalMs !== undefined && { intervalMs, firstIntervalMs: phase * intervalMs }),
        spacingMs,
        pollNow$,
        scheduler,
      }).pipe(
        map(({ page, since, looksBack }: PollPage): PollBatch => {
          const chain = looksBack ? 'back' : 'newest';
          const result = lanes[chain].split(page.answer);
          if (page.next === undefined) scanEnded(chain);
          if (since !== undefined) {
            reached = { ...reached, since };
            polledAt = beganAt;
          }
          const isCaughtUp = since !== undefined && catchesUp();
          return { lane: 'poll', ...result, page, since, catchesUp: isCaughtUp };
        }),
        catchError((error: unknown) => {
          const why = dateRefusal(error);
          if (!failed || !why) return throwError(() => error);
          return negotiating({ ...failed, why, error });
        }),
      );
    });
  /** Polls again after a pause, beginning with the default date format. */
  const pollingLater = (): Observable<PollBatch | RefetchBatch> => {
    const pauseMs = Math.min(AN_HOUR_MS, REFUSED_POLLS_PAUSE_MS * 2 ** Math.min(pauses, 10));
    pauses += 1;
    return timer(pauseMs, scheduler).pipe(
      switchMap(() => {
        dates.tryAgain();
        return polling();
      }),
    );
  };
  /**
   * After a refused poll, probes for a date format that the list accepts, then polls again. Errors if the list also refuses requests
   * without dates.
   */
  const negotiating = (refused: FailedScan): Observable<PollBatch | RefetchBatch> => {
    const { window, chain, why, error } = refused;
    const reason = describeError(error);
    const start = {
      now: dates.now,
      newest: clock.newestStamp(),
      reason,
      // If retries were given up, other date formats may take as long, so sweeps start meanwhile. A refusal is followed by quick ones.
      onConfirmed: () => giveUpReason(error) && tellUnpolled(true),
    };
    return probe(dateNegotiation(dates, window, start)).pipe(
      concatMap((step) => {
        if (step.lane !== 'found') return of(step);
        if (!step.finding) failedScans[chain] += 1;
        if (failedScans[chain] >= MAX_FAILED_SCANS) dates.without(why, reason);
        if (dates.noDates) tellUnpolled(true);
        return polling();
      }),
    );
  };

  const checks = dateChecks({
    ...{ task, clock, dates, probe, restart },
    progress: () => reached,
    isPaused: () => isRetried(dates.noDates) || (unpolled$.value && !dates.noDates),
  });

  return {
    batches$: since$.pipe(
      take(1),
      switchMap((since) => {
        reached = { first: since, since };
        const polls$ = restart$.pipe(startWith(undefined), switchMap(polling));
        return merge(polls$, checks.probes$);
      }),
    ),
    dates,
    unpolled$,
    isUnpolled: () => unpolled$.value,
    onPublished: ({ lane, changes }) => {
      if (lane === 'poll' || dates.noDates) return;
      const until = polledAt - 2 * lookbackMs;
      const missed = changes.find(
        ({ op, updatedAt }) =>
          op !== 'd' && updatedAt !== null && updatedAt >= reached.first && updatedAt <= until,
      );
      if (missed) checks.suspect(missed.updatedAt!);
    },
  };
}

/** A poll's scan that failed with an error that retries did not resolve. */
interface FailedScan {
  readonly window: Window;
  readonly chain: PollChain;
  readonly why: GiveUpReason;
  readonly error: unknown;
}

/**
 * Whether polls given up for this reason are tried again after a pause. A list that ignores dates, or returns no records for them, is
 * probed instead.
 */
function isRetried(noDates: NoDates | undefined): boolean {
  return noDates === 'refused' || noDates === 'unanswered';
}
