import {
  BehaviorSubject,
  catchError,
  concatMap,
  defer,
  EMPTY,
  map,
  merge,
  of,
  repeat,
  startWith,
  Subject,
  switchMap,
  take,
  throwError,
  timer,
} from 'rxjs';
import type { Observable } from 'rxjs';
import { isRefusal } from '../../core/errors.ts';
import type { Published } from '../../observe/hooks.ts';
import type { ServerClock } from '../../streams/http/server-clock.ts';
import { dateNegotiation, written } from '../../streams/paging/date-negotiation.ts';
import { dateProbe } from '../../streams/paging/date-probe.ts';
import type { ProbeFinding } from '../../streams/paging/date-probe.ts';
import { ListDates } from '../../streams/paging/list-dates.ts';
import { poll } from '../../streams/paging/poll.ts';
import type { PollPage, Window } from '../../streams/paging/poll.ts';
import type { Task } from '../task.ts';
import { datedScan } from './dated-scan.ts';
import type { PollRounds } from './poll-rounds.ts';
import type { ProbeLane } from './probe-lane.ts';
import type { PollBatch, ReadLane, RefetchBatch } from './read-batch.ts';
import { refusedLane } from './refused-lane.ts';

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
  /** Whether the list is read as one without dates: the present state, then each change. */
  readonly noDates$: Observable<boolean>;
  /** Takes what a batch has published: a change that polls should have read before leads to a new probe. */
  readonly published: (published: Pick<Published, 'lane' | 'changes'>) => void;
}

const AN_HOUR_MS = 3_600_000;
/** How long after the first poll the first probe begins, in ms: the first requests of a process are for records. Polls that a probe proves wrong are repeated. */
const FIRST_PROBE_MS = 2_000;
/** Least time between two probes, in ms: suspicions come in numbers. */
const SOON_MS = 60_000;

/**
 * Polls window by window, and finds out beside them whether the list's date parameters do what they say: see `date-probe.ts`. When something
 * new is found, polls go on with other windows from where they were when the dates were last known to be right.
 */
export function pollReads(options: PollReadsOptions): PollReads {
  const { task, clock, rounds, open, probe, since$, spacingMs, onPoll, catchesUp } = options;
  const { config, hooks, scheduler, phase = 1, pollNow$ } = task;
  const { intervalMs, lookbackMs } = config.poll;
  const noDates$ = new BehaviorSubject(false);
  const dates = new ListDates({
    clock,
    localTime: () => scheduler.now(),
    onFound: (found) => hooks.onDates(found),
  });
  const now = () => clock.now(scheduler.now()) ?? clock.latest(scheduler.now());
  const restart$ = new Subject<void>();
  const suspect$ = new Subject<void>();
  /** Where polls began, and have come to, ms. */
  let reached = { first: Infinity, since: -Infinity };
  /** The server's time when the last poll began that has come to its end: what was stamped before it has been asked for. */
  let polledAt = -Infinity;
  /** Where they were when the dates were last known to be right. */
  let rightSince = -Infinity;
  let suspected: number | undefined;
  let emptyProbes = 0;

  const restart = (from?: number) => {
    if (from !== undefined) reached = { ...reached, since: Math.min(reached.since, from) };
    noDates$.next(dates.noDates !== undefined);
    restart$.next();
  };

  const polling = (): Observable<PollBatch | RefetchBatch> =>
    defer(() => {
      if (dates.noDates) return EMPTY;
      const lanes = open();
      let asked: Window | undefined;
      let beganAt = -Infinity;
      const scanning = (lane: ReadLane) => (window: Window) => {
        asked = window;
        return datedScan(lane, dates, window, now());
      };
      const [scan, scanBack] = [scanning(lanes.newest), scanning(lanes.back)];
      return poll({
        scan: (window) => {
          beganAt = now();
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
          const brought = (looksBack ? lanes.back : lanes.newest).arrived(page.answer);
          if (page.next === undefined) rounds.ended(looksBack ? 'back' : 'newest');
          if (since !== undefined) {
            reached = { ...reached, since };
            polledAt = beganAt;
          }
          const isCaughtUp = since !== undefined && catchesUp();
          return { lane: 'poll', ...brought, page, since, catchesUp: isCaughtUp };
        }),
        catchError((error: unknown) => {
          if (!asked || !isRefusal(error)) return throwError(() => error);
          return negotiating(asked, error);
        }),
      );
    });
  /** Probes for dates that the list accepts after a poll was refused; then polls go on. */
  const negotiating = (refused: Window, error: unknown): Observable<PollBatch | RefetchBatch> =>
    probe(dateNegotiation(dates, refused, { now: now(), newest: clock.newestStamp() })).pipe(
      concatMap((step) => {
        if (step.lane !== 'found') return of(step);
        if (!step.finding) return throwError(() => error);
        noDates$.next(dates.noDates !== undefined);
        return polling();
      }),
    );

  const conclude = (finding: ProbeFinding, since: number): void => {
    if (finding.kind !== 'no-dates' || finding.why !== 'empty') emptyProbes = 0;
    if (finding.kind === 'offset') {
      const isNew = finding.offsetMs !== dates.offsetMs || dates.noDates !== undefined;
      if (dates.noDates) dates.tryAgain();
      dates.offsetFound(finding.offsetMs);
      dates.formWorks();
      if (isNew) restart(rightSince);
      else rightSince = since;
    } else if (finding.kind === 'no-dates' && finding.why === 'ignored') {
      dates.without('ignored');
      restart(rightSince);
    } else if (finding.kind === 'no-dates') {
      emptyProbes += 1;
      // An index that is being rebuilt shows nothing for a while.
      if (emptyProbes < 2 || dates.noDates) return;
      dates.nextForm('empty', 'text');
      restart(rightSince);
    }
  };
  let hasAsked = false;
  const probing = defer((): Observable<RefetchBatch> => {
    const { since } = reached;
    const stamp = suspected ?? clock.newestStamp();
    suspected = undefined;
    // A list that shows no modification time is asked for one once.
    if (stamp === undefined && hasAsked) return EMPTY;
    hasAsked = true;
    if (dates.noDates === 'refused') {
      dates.tryAgain();
      restart();
    }
    return probe(written(dateProbe(stamp, dates.offsetMs), dates)).pipe(
      concatMap((step) => {
        if (step.lane !== 'found') return of(step);
        conclude(step.finding, since);
        return EMPTY;
      }),
    );
  });
  const pauseMs = () =>
    emptyProbes > 0 || clock.newestStamp() === undefined ? SOON_MS : AN_HOUR_MS;
  const probes$ = probing.pipe(
    refusedLane({ task, goesAlone: () => dates.noDates === undefined }),
    repeat({
      delay: () => {
        const beganAt = scheduler.now();
        const suspected$ = suspect$.pipe(
          take(1),
          switchMap(() => timer(Math.max(0, beganAt + SOON_MS - scheduler.now()), scheduler)),
        );
        return merge(timer(pauseMs(), scheduler), suspected$).pipe(take(1));
      },
    }),
  );

  return {
    batches$: since$.pipe(
      take(1),
      switchMap((since) => {
        reached = { first: since, since };
        rightSince = since;
        const polls$ = restart$.pipe(startWith(undefined), switchMap(polling));
        const begun$ = timer(FIRST_PROBE_MS, scheduler);
        return merge(polls$, begun$.pipe(switchMap(() => probes$)));
      }),
    ),
    dates,
    noDates$,
    published: ({ lane, changes }) => {
      if (lane === 'poll' || dates.noDates) return;
      const until = polledAt - 2 * lookbackMs;
      const missed = changes.find(
        ({ op, updatedAt }) =>
          op !== 'd' && updatedAt !== null && updatedAt >= reached.first && updatedAt <= until,
      );
      if (!missed) return;
      suspected = missed.updatedAt ?? undefined;
      suspect$.next();
    },
  };
}
