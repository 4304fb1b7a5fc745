import { defer, EMPTY, merge, repeat, Subject, switchMap, take, timer } from 'rxjs';
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
  readonly task: Pick<Task, 'list' | 'hooks' | 'scheduler'>;
  readonly clock: ServerClock;
  /** Meaning of the list's date parameters, as far as it is known. Probes store their findings in this object. */
  readonly dates: ListDates;
  readonly probe: ProbeLane;
  /** Returns the start times of the first poll window and of the next one, in epoch ms. */
  readonly progress: () => { readonly first: number; readonly since: number };
  /** Returns whether probes (tests of the date parameters) are paused, for example because the API refuses polls. */
  readonly isPaused: () => boolean;
  /** Restarts polls from an earlier time, in epoch ms, with the current date parameters. */
  readonly restart: (from: number) => void;
}

const AN_HOUR_MS = 3_600_000;
/** Delay of the first probe after polls begin, in ms. If it is too large, more polls are repeated when the date parameters are wrong. */
const FIRST_PROBE_MS = 2_000;
/**
 * Minimum time from the end of a probe (test of the list's date parameters) to the next probe, in ms. If it is too small, many changes that
 * polls missed cause many probes.
 */
const SOON_MS = 60_000;

/**
 * Probes a list's date parameters alongside its polls (see `date-probe.ts`): soon after the start, every hour, and after polls missed a
 * change. If the parameters do not mean what was assumed, polls restart from where they were when a probe last confirmed the assumption.
 */
export class DateChecks {
  /**
   * Batches with the records that the probes (requests that test the date parameters) read. Subscribing starts the probes; never completes.
   */
  readonly probes$: Observable<RefetchBatch>;
  readonly #options: DateChecksOptions;
  readonly #suspect$ = new Subject<void>();
  /**
   * Modification time of a change that polls missed, in epoch ms, with which the next probe tests the date parameters. Undefined if there
   * is none.
   */
  #missedStamp: number | undefined;
  /**
   * Start of the poll window that was next when a probe last confirmed the date parameters, in epoch ms. Polls restart there if a later
   * probe finds another meaning. Undefined before the first confirmation.
   */
  #rightSince: number | undefined;
  /** Number of probes in a row that returned no records. */
  #emptyProbes = 0;
  #hasProbed = false;

  constructor(options: DateChecksOptions) {
    this.#options = options;
    const { task, dates } = options;
    const probes$ = defer(() => this.#probe()).pipe(
      retryRefusedLane(task, () => dates.noDates === undefined),
      repeat({ delay: () => this.#nextProbe() }),
    );
    this.probes$ = timer(FIRST_PROBE_MS, task.scheduler).pipe(switchMap(() => probes$));
  }

  /** Reports that polls missed a change with this modification time, in epoch ms. The date parameters are then probed again soon. */
  suspect(stamp: number): void {
    this.#missedStamp = stamp;
    this.#suspect$.next();
  }

  #probe(): Observable<RefetchBatch> {
    const { clock, dates, probe, progress, isPaused } = this.#options;
    const { since } = progress();
    const stamp = this.#missedStamp ?? clock.newestStamp();
    // Without a known modification time, the list is probed only once.
    if ((stamp === undefined && this.#hasProbed) || isPaused()) return EMPTY;
    this.#missedStamp = undefined;
    this.#hasProbed = true;
    const before = dates.found;
    return probe(probedDates(dates, stamp), (finding) => this.#conclude(finding, since, before));
  }

  /**
   * Applies the finding of a probe (a test of the list's date parameters): restarts polls if the parameters do not mean what was assumed.
   * `before` is the meaning when the probe began; `since` is the start of the poll window that was next at that time, in epoch ms.
   */
  #conclude(finding: ProbeFinding, since: number, before: DatesFound): void {
    const { dates } = this.#options;
    const why = finding.kind === 'no-dates' ? finding.why : undefined;
    this.#emptyProbes = why === 'empty' ? this.#emptyProbes + 1 : 0;
    if (finding.kind === 'offset') {
      const { form, offsetMs } = dates.found;
      if (form !== before.form || offsetMs !== before.offsetMs) this.#restart();
      else this.#rightSince = since;
    } else if (why === 'ignored') {
      dates.without('ignored');
      this.#restart();
    } else if (this.#emptyProbes >= 2 && !dates.noDates) {
      // A single empty probe proves nothing: a search index that is being rebuilt returns no records for a while.
      dates.nextForm('empty', 'text');
      this.#restart();
    }
  }

  #restart(): void {
    const { restart, progress } = this.#options;
    restart(this.#rightSince ?? progress().first);
  }

  /** Emits once, when the list's date parameters have to be probed again: after an hour, or sooner, for example if polls miss a change. */
  #nextProbe(): Observable<unknown> {
    const { task, clock, isPaused } = this.#options;
    const { scheduler } = task;
    const endedAt = scheduler.now();
    const isSoon = this.#emptyProbes > 0 || clock.newestStamp() === undefined || isPaused();
    const suspected$ = this.#suspect$.pipe(
      take(1),
      switchMap(() => timer(Math.max(0, endedAt + SOON_MS - scheduler.now()), scheduler)),
    );
    return merge(timer(isSoon ? SOON_MS : AN_HOUR_MS, scheduler), suspected$).pipe(take(1));
  }
}
