import { concatMap, defer, EMPTY, merge, of, repeat, Subject, switchMap, take, timer } from 'rxjs';
import type { Observable } from 'rxjs';
import type { ServerClock } from '../../streams/http/server-clock.ts';
import { probedDates } from '../../streams/paging/date-negotiation.ts';
import type { ProbeFinding } from '../../streams/paging/date-probe.ts';
import type { DatesFound, ListDates } from '../../streams/paging/list-dates.ts';
import type { Task } from '../task.ts';
import type { ProbeLane } from './probe-lane.ts';
import type { RefetchBatch } from './read-batch.ts';
import { refusedLane } from './refused-lane.ts';

export interface DateChecksOptions {
  readonly task: Pick<Task, 'rules' | 'hooks' | 'scheduler'>;
  readonly clock: ServerClock;
  /** Changed by what a probe finds. */
  readonly dates: ListDates;
  readonly probe: ProbeLane;
  /** Where polls began, and have come to, in ms. */
  readonly reached: () => { readonly first: number; readonly since: number };
  /** Whether polls were refused, and none has come to its end since: then they find out about dates themselves. */
  readonly isPaused: () => boolean;
  /** Has polls go on from an earlier time, in ms, with the dates as they are now. */
  readonly restart: (from: number) => void;
}

/** Probes of a list's date parameters beside its polls. */
export interface DateChecks {
  /** Records that the probes read; probing begins with the subscription, and the stream never completes. */
  readonly probes$: Observable<RefetchBatch>;
  /** A change with this stamp, in ms, was read by another lane, and not by polls: a reason to probe soon. */
  readonly suspect: (stamp: number) => void;
}

const AN_HOUR_MS = 3_600_000;
/** How long after the first poll the first probe begins, in ms: the first requests of a process are for records. Polls that a probe proves wrong are repeated. */
const FIRST_PROBE_MS = 2_000;
/** Least time between two probes, in ms: suspicions come in numbers. */
const SOON_MS = 60_000;

/**
 * Probes the dates soon after the start, each hour, and when a change was missed (see `date-probe.ts`). When something new is found, polls go on
 * from where they were when the dates were last known to be right.
 */
export function dateChecks(options: DateChecksOptions): DateChecks {
  const { task, clock, dates, probe, reached, isPaused, restart } = options;
  const { scheduler } = task;
  const suspect$ = new Subject<void>();
  let suspected: number | undefined;
  /** Where polls were when the dates were last known to be right, in ms. */
  let rightSince: number | undefined;
  let emptyProbes = 0;
  let hasAsked = false;

  const restartFromRight = () => restart(rightSince ?? reached().first);
  /** @param before What was known of the dates when the probe began. */
  const conclude = (finding: ProbeFinding, since: number, before: DatesFound): void => {
    if (finding.kind !== 'no-dates' || finding.why !== 'empty') emptyProbes = 0;
    if (finding.kind === 'offset') {
      const { form, offsetMs } = dates.found;
      if (form !== before.form || offsetMs !== before.offsetMs) restartFromRight();
      else rightSince = since;
    } else if (finding.kind === 'no-dates' && finding.why === 'ignored') {
      dates.without('ignored');
      restartFromRight();
    } else if (finding.kind === 'no-dates') {
      emptyProbes += 1;
      // An index that is being rebuilt shows nothing for a while.
      if (emptyProbes < 2 || dates.noDates) return;
      dates.nextForm('empty', 'text');
      restartFromRight();
    }
  };
  const probing = defer((): Observable<RefetchBatch> => {
    const { since } = reached();
    const stamp = suspected ?? clock.newestStamp();
    suspected = undefined;
    // A list that shows no modification time is asked for one once.
    if ((stamp === undefined && hasAsked) || isPaused()) return EMPTY;
    hasAsked = true;
    const before = dates.found;
    return probe(probedDates(dates, stamp)).pipe(
      concatMap((step) => {
        if (step.lane !== 'found') return of(step);
        conclude(step.finding, since, before);
        return EMPTY;
      }),
    );
  });
  const pauseMs = () =>
    emptyProbes > 0 || clock.newestStamp() === undefined || isPaused() ? SOON_MS : AN_HOUR_MS;
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
    probes$: timer(FIRST_PROBE_MS, scheduler).pipe(switchMap(() => probes$)),
    suspect: (stamp) => {
      suspected = stamp;
      suspect$.next();
    },
  };
}
