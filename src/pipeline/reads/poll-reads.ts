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
import { whyGivenUp } from '../../streams/decode/dated-patience.ts';
import type { GivenUp } from '../../streams/decode/dated-patience.ts';
import { ListDates } from '../../streams/paging/list-dates.ts';
import type { NoDates } from '../../streams/paging/list-dates.ts';
import { poll } from '../../streams/paging/poll.ts';
import type { PollPage, Window } from '../../streams/paging/poll.ts';
import type { Task } from '../task.ts';
import { dateChecks } from './date-checks.ts';
import { datedScan, whyRefused } from './dated-scan.ts';
import type { PollChain, PollRounds } from './poll-rounds.ts';
import type { ProbeLane } from './probe-lane.ts';
import type { PollBatch, ReadLane, RefetchBatch } from './read-batch.ts';

export interface PollReadsOptions {
  readonly task: Pick<Task, 'rules' | 'config' | 'hooks' | 'scheduler' | 'phase' | 'pollNow$'>;
  readonly clock: ServerClock;
  readonly rounds: Pick<PollRounds, 'begun' | 'ended'>;
  /** Opens the lanes of polls: for what is new, and to look back far. Each chain of polls has lanes of its own. */
  readonly open: () => { readonly newest: ReadLane; readonly back: ReadLane };
  readonly probe: ProbeLane;
  /** Where the first window begins, ms; emits when the initial snapshot or an earlier process has begun. */
  readonly since$: Observable<number>;
  readonly spacingMs: () => number;
  /** Called before a poll for what is new is asked for, with where its window begins, ms. */
  readonly onPoll: (from: number) => void;
  /** Whether the poll that is read now finds what the initial snapshot has missed. */
  readonly catchesUp: () => boolean;
}

export interface PollReads {
  readonly batches$: Observable<PollBatch | RefetchBatch>;
  readonly dates: ListDates;
  /** Whether polls find nothing for now, so that sweeps have to: the present state, then each change. */
  readonly unpolled$: Observable<boolean>;
  /** The present state of `unpolled$`. */
  readonly isUnpolled: () => boolean;
  /** Takes what a batch has published: a change that polls should have read before leads to a new probe. */
  readonly published: (published: Pick<Published, 'lane' | 'changes'>) => void;
}

const AN_HOUR_MS = 3_600_000;
/**
 * Pause before polls are tried again that were refused, in ms; it doubles from try to try, to an hour at most. Too small: requests are spent on
 * a list that does not take dates. Too large: a list whose trouble has passed is swept for that much longer.
 */
const TRY_AGAIN_MS = 5 * 60_000;
/** Scans of one chain in a row that fail although their first page is accepted when it is asked for again. One may be an outage. */
const MAX_FAILED_SCANS = 2;

/**
 * Polls window by window. Probes beside the polls find out whether the list's date parameters do what they say (`date-checks.ts`).
 *
 * A poll that is refused, or fails for a while, ends no other lane: if the list answers without dates, another form of dates is looked for.
 * Where none works polls are given up and tried again later, and sweeps find what is new until a poll has come to its end.
 */
export function pollReads(options: PollReadsOptions): PollReads {
  const { task, clock, rounds, open, probe, since$, spacingMs, onPoll, catchesUp } = options;
  const { config, hooks, scheduler, phase = 1, pollNow$ } = task;
  const { intervalMs, lookbackMs } = config.poll;
  const unpolled$ = new BehaviorSubject(false);
  const dates = new ListDates({
    clock,
    localTime: () => scheduler.now(),
    onFound: (found) => hooks.onDates(found),
  });
  const restart$ = new Subject<void>();
  /** Where polls began, and have come to, ms. */
  let reached = { first: Infinity, since: -Infinity };
  /** The server's time when the last poll began that has come to its end: what was stamped before it has been asked for. */
  let polledAt = -Infinity;
  /** Scans in a row that failed although their first page was accepted afterwards, by chain. */
  const failedScans = { newest: 0, back: 0 };
  /** Pauses in a row before polls that were given up are tried again. */
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
    rounds.ended(chain);
    failedScans[chain] = 0;
    pauses = 0;
    if (!unpolled$.value) return;
    dates.formWorks();
    tellUnpolled(false);
  };

  const polling = (): Observable<PollBatch | RefetchBatch> =>
    defer(() => {
      if (isTriedAgain(dates.noDates)) return pollingLater();
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
          rounds.begun('newest');
          onPoll(Date.parse(window.modifiedFromDate));
          return scan(window);
        },
        scanBack: (window) => {
          rounds.begun('back');
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
          const brought = lanes[chain].arrived(page.answer);
          if (page.next === undefined) scanEnded(chain);
          if (since !== undefined) {
            reached = { ...reached, since };
            polledAt = beganAt;
          }
          const isCaughtUp = since !== undefined && catchesUp();
          return { lane: 'poll', ...brought, page, since, catchesUp: isCaughtUp };
        }),
        catchError((error: unknown) => {
          const why = whyRefused(error);
          if (!failed || !why) return throwError(() => error);
          return negotiating({ ...failed, why, error });
        }),
      );
    });
  /** Polls again after a pause, with the usual form of dates first. */
  const pollingLater = (): Observable<PollBatch | RefetchBatch> => {
    const pauseMs = Math.min(AN_HOUR_MS, TRY_AGAIN_MS * 2 ** Math.min(pauses, 10));
    pauses += 1;
    return timer(pauseMs, scheduler).pipe(
      switchMap(() => {
        dates.tryAgain();
        return polling();
      }),
    );
  };
  /** Probes for dates that the list accepts after a poll was refused; then polls go on. Errors if the list refuses requests without dates too. */
  const negotiating = (refused: Refused): Observable<PollBatch | RefetchBatch> => {
    const { window, chain, why, error } = refused;
    const reason = describeError(error);
    const start = {
      now: dates.now,
      newest: clock.newestStamp(),
      reason,
      // A refusal at once is followed by the answers to other forms at once; a server that fails keeps polls waiting.
      onConfirmed: () => whyGivenUp(error) && tellUnpolled(true),
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
    reached: () => reached,
    isPaused: () => isTriedAgain(dates.noDates) || (unpolled$.value && !dates.noDates),
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
    published: ({ lane, changes }) => {
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

/** A scan that failed for good. */
interface Refused {
  readonly window: Window;
  readonly chain: PollChain;
  readonly why: GivenUp;
  readonly error: unknown;
}

/** Whether polls that are given up for this reason are tried again; a list that ignores dates, or shows nothing for them, is probed. */
function isTriedAgain(noDates: NoDates | undefined): boolean {
  return noDates === 'refused' || noDates === 'unanswered';
}
