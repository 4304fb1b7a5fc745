import { concatMap, defer, EMPTY, merge, of, repeat, Subject, switchMap, take, timer } from 'rxjs';
import type { Observable } from 'rxjs';
import type { ServerClock } from '../../streams/http/server-clock.ts';
import { probedDates } from '../../streams/paging/date-negotiation.ts';
import type { ProbeFinding } from '../../streams/paging/date-probe.ts';
import type { DatesFound, ListDates } from '../../streams/paging/list-dates.ts';
import type { Task } from '../task.ts';
import type { ProbeLane } from './probe-lane.ts';
import type { RefetchBatch } from './read-batch.ts';
import { retryRefusedLane } from './retry-refused-lane.ts';

export interface DateChecksOptions {
  readonly task: Pick<Task, 'rules' | 'hooks' | 'scheduler'>;
  readonly clock: ServerClock;
  /** The list's date parameters as known so far; updated by the findings of probes. */
  readonly dates: ListDates;
  readonly probe: ProbeLane;
  /** Returns the start times of the first poll window and of the next one, in epoch ms. */
  readonly progress: () => { readonly first: number; readonly since: number };
  /** Whether polls were refused and none has completed since. Polls then probe the dates themselves, and these probes pause. */
  readonly isPaused: () => boolean;
  /** Restarts polls from an earlier time, in epoch ms, with the current date parameters. */
  readonly restart: (from: number) => void;
}

/** Probes of a list's date parameters that run alongside its polls. */
export interface DateChecks {
  /** Records that the probes read. Probing begins with the subscription; never completes. */
  readonly probes$: Observable<RefetchBatch>;
  /** Reports a change with this stamp, in epoch ms, that polls missed and another lane read. Starts a probe soon. */
  readonly suspect: (stamp: number) => void;
}

const AN_HOUR_MS = 3_600_000;
/**
 * Delay of the first probe of the list's date parameters, in ms, so that a process requests records first. Too large: more polls are
 * repeated if the probe shows that dates were wrong.
 */
const FIRST_PROBE_MS = 2_000;
/** Minimum time between two probes of the list's date parameters, in ms. Too small: many missed changes at once cause a probe each. */
const SOON_MS = 60_000;

/**
 * Probes a list's date parameters soon after the start, every hour, and after polls missed a change (see `date-probe.ts`). If a probe finds
 * that the parameters mean something else than assumed, polls restart from where they were when the parameters were last known to be right.
 */
export function dateChecks(options: DateChecksOptions): DateChecks {
  const { task, clock, dates, probe, progress, isPaused, restart } = options;
  const { scheduler } = task;
  const suspect$ = new Subject<void>();
  let suspected: number | undefined;
  /** Start of the next poll window as it was when the list's date parameters were last known to be right, in epoch ms. */
  let rightSince: number | undefined;
  let emptyProbes = 0;
  let hasAsked = false;

  const restartFromRight = () => restart(rightSince ?? progress().first);
  /**
   * Applies the finding of a probe: if it differs from what was assumed, polls restart.
   *
   * @param before The date parameters as known when the probe began.
   */
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
      // One empty probe proves nothing: a search index that is being rebuilt returns no records for a while.
      if (emptyProbes < 2 || dates.noDates) return;
      dates.nextForm('empty', 'text');
      restartFromRight();
    }
  };
  const probing = defer((): Observable<RefetchBatch> => {
    const { since } = progress();
    const stamp = suspected ?? clock.newestStamp();
    suspected = undefined;
    // Without a known modification time, the list is probed only once.
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
    retryRefusedLane({ task, hasOtherLanes: () => dates.noDates === undefined }),
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
