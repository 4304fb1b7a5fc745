import {
  BehaviorSubject,
  catchError,
  defer,
  EMPTY,
  filter,
  ignoreElements,
  map,
  merge,
  NEVER,
  repeat,
  startWith,
  Subject,
  switchMap,
  take,
  takeUntil,
  tap,
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
import { DateChecks } from './date-checks.ts';
import { datedScan, dateRefusal } from './dated-scan.ts';
import { PollScans } from './poll-scans.ts';
import type { PollChain } from './poll-scans.ts';
import type { ProbeLane } from './probe-lane.ts';
import type { PollBatch, ReadLane, RefetchBatch } from './read-batch.ts';

export interface PollReadsOptions {
  readonly task: Pick<Task, 'list' | 'config' | 'hooks' | 'scheduler' | 'phase' | 'pollNow$'>;
  readonly clock: ServerClock;
  /** Opens the lanes of polls: `newest` reads new changes, `back` looks further back for records that became visible late. */
  readonly open: () => { readonly newest: ReadLane; readonly back: ReadLane };
  readonly probe: ProbeLane;
  /** Start of the first poll window, in epoch ms. Emits as soon as the initial snapshot has begun. */
  readonly since$: Observable<number>;
  /** Returns the time between requests, in ms, at which polls stay within their share of the quota. */
  readonly spacingMs: () => number;
  /**
   * Returns whether a poll for new changes that begins now reads all changes that the initial snapshot missed. `from`: start of the poll's
   * window, in epoch ms.
   */
  readonly catchesUp: (from: number) => boolean;
}

const AN_HOUR_MS = 3_600_000;
/**
 * First pause before polls that were given up are tried again, in ms. The pause doubles with each try, up to an hour. If it is too small,
 * requests are wasted. If it is too large, sweeps alone read the list for longer than necessary.
 */
const REFUSED_POLLS_PAUSE_MS = 5 * 60_000;
/**
 * Number of consecutive failed scans after which polls are given up for a while. Scans for new changes and lookback scans are counted
 * apart. If it is too small, an outage during a single scan ends polls.
 */
const MAX_FAILED_SCANS = 2;
/**
 * Maximum time that a sweep waits for polls to read the changes made during the sweep, in ms; three poll intervals if they are longer. If
 * it is too small, a sweep during which records moved within the list proves no deletions. If it is too large, failing polls hold up
 * sweeps.
 */
const POLLS_TIMEOUT_MS = 5 * 60_000;

/**
 * Polls a list, one window after another, while probes (test requests) check what the list's date parameters mean. If polls fail because of
 * the dates, other date formats are tried. If none works, polls are given up (`isUnpolled`) and tried again later. Until a poll completes,
 * sweeps find new changes.
 */
export class PollReads {
  readonly batches$: Observable<PollBatch | RefetchBatch>;
  readonly dates: ListDates;
  /**
   * Emits once polls have read every change made before the subscription. Completes without a value if polls are given up or take too long.
   */
  readonly pollsCompleted$: Observable<unknown>;
  readonly #options: PollReadsOptions;
  readonly #checks: DateChecks;
  readonly #scans: PollScans;
  readonly #unpolled$ = new BehaviorSubject(false);
  /** Emits on subscription and at each change: true if polls do not work at the moment, so that sweeps have to find changes; else false. */
  readonly unpolled$: Observable<boolean> = this.#unpolled$;
  readonly #restart$ = new Subject<void>();
  /**
   * Start times of poll windows, before the lookback is subtracted, in epoch ms on the server's clock. `first`: of this process's first
   * window; initially Infinity. `since`: of the next window; initially -Infinity.
   */
  #windowStarts = { first: Infinity, since: -Infinity };
  /** Server time, in epoch ms, at which the last completed poll for new changes began; initially -Infinity. */
  #polledAt = -Infinity;
  /**
   * Number of consecutive failed scans of the polls for new changes (`newest`) and of the lookback polls (`back`); see
   * {@link MAX_FAILED_SCANS}.
   */
  readonly #failedScans = { newest: 0, back: 0 };
  /** Number of times that polls were given up and paused since the last completed scan. Determines the length of the next pause. */
  #pauses = 0;

  constructor(options: PollReadsOptions) {
    this.#options = options;
    const { task, clock, probe, since$ } = options;
    const { config, hooks, scheduler } = task;
    this.#scans = new PollScans(scheduler);
    const timeoutMs = Math.max(POLLS_TIMEOUT_MS, 3 * (config.poll.intervalMs ?? 0));
    this.pollsCompleted$ = defer(() =>
      this.isUnpolled ? EMPTY : this.#scans.pollsCompleted$,
    ).pipe(takeUntil(this.unpolled$.pipe(filter(Boolean))), takeUntil(timer(timeoutMs, scheduler)));
    const dates = new ListDates({
      clock,
      localTime: () => scheduler.now(),
      onFound: (found) => hooks.onDates(found),
      parameters: task.list.dates ?? {},
      stamp: task.list.updated.join(' or '),
      times: config.description.times,
    });
    this.dates = dates;
    this.#checks = new DateChecks({
      ...{ task, clock, dates, probe },
      restart: (from) => this.#restart(from),
      progress: () => this.#windowStarts,
      isPaused: () => isRetried(dates.noDates) || (this.isUnpolled && !dates.noDates),
    });
    this.batches$ = since$.pipe(
      take(1),
      switchMap((since) => {
        this.#windowStarts = { first: since, since };
        const polls$ = this.#restart$.pipe(
          startWith(undefined),
          switchMap(() => this.#polling()),
        );
        return merge(polls$, this.#checks.probes$);
      }),
    );
  }

  /** Whether polls do not work at the moment, so that sweeps have to find changes. */
  get isUnpolled(): boolean {
    return this.#unpolled$.value;
  }

  /** Checks published changes. If polls should have read one of them earlier, the list's date parameters are probed again. */
  onPublished({ lane, changes }: Pick<Published, 'lane' | 'changes'>): void {
    if (lane === 'poll' || this.dates.noDates) return;
    const { lookbackMs } = this.#options.task.config.poll;
    const until = this.#polledAt - 2 * lookbackMs;
    const { first } = this.#windowStarts;
    const missed = changes.find(
      ({ op, updatedAt }) =>
        op !== 'd' && updatedAt !== null && updatedAt >= first && updatedAt <= until,
    );
    if (missed) this.#checks.suspect(missed.updatedAt!);
  }

  /**
   * Polls, and begins again at once when polls fail (`#chains` completes). If requests with dates fail in every format, begins again after
   * a pause. If the list ignores dates, waits until `#restart$` emits.
   */
  #polling(): Observable<PollBatch | RefetchBatch> {
    // A loop (`repeat`) and no recursion: polls may be refused for months, and each nested attempt would occupy more memory.
    return defer(() => {
      const { noDates } = this.dates;
      if (isRetried(noDates)) return this.#pause();
      return noDates ? NEVER : this.#chains();
    }).pipe(repeat());
  }

  /** Completes after a pause. The caller then polls again, with the default date format. */
  #pause(): Observable<never> {
    const pauseMs = Math.min(AN_HOUR_MS, REFUSED_POLLS_PAUSE_MS * 2 ** Math.min(this.#pauses, 10));
    this.#pauses += 1;
    return timer(pauseMs, this.#options.task.scheduler).pipe(
      tap(() => this.dates.tryAgain()),
      ignoreElements(),
    );
  }

  /**
   * Polls for new changes, and for changes that became visible late. If a request with dates finally fails, looks for date parameters that
   * the list accepts, then completes.
   */
  #chains(): Observable<PollBatch | RefetchBatch> {
    const { task, clock, open, spacingMs, catchesUp } = this.#options;
    const { config, scheduler, phase = 1, pollNow$ } = task;
    const { intervalMs, lookbackMs } = config.poll;
    const { dates } = this;
    const lanes = open();
    let failed: { readonly window: Window; readonly chain: PollChain } | undefined;
    let running = { beganAt: -Infinity, catchesUp: false };
    const scan = (chain: PollChain, window: Window) => {
      this.#scans.scanStarted(chain);
      return datedScan(lanes[chain], dates, window, dates.now).pipe(
        catchError((error: unknown) => {
          failed = { window, chain };
          return throwError(() => error);
        }),
      );
    };
    return poll({
      scan: (window) => {
        running = { beganAt: dates.now, catchesUp: catchesUp(dates.timeOf(window.from)) };
        return scan('newest', window);
      },
      scanBack: (window) => scan('back', window),
      windowOf: (from, latest) => dates.windowOf(from, latest),
      clock,
      since: this.#windowStarts.since,
      lookbackMs,
      ...(intervalMs !== undefined && { intervalMs, firstIntervalMs: phase * intervalMs }),
      spacingMs,
      pollNow$,
      scheduler,
    }).pipe(
      map(({ page, since, looksBack }: PollPage): PollBatch => {
        const chain = looksBack ? 'back' : 'newest';
        const result = lanes[chain].split(page.answer);
        if (page.next === undefined) this.#scanEnded(chain);
        if (since !== undefined) {
          this.#windowStarts = { ...this.#windowStarts, since };
          this.#polledAt = running.beganAt;
        }
        const isCaughtUp = since !== undefined && running.catchesUp;
        return { lane: 'poll', ...result, page, since, catchesUp: isCaughtUp };
      }),
      catchError((error: unknown) => {
        const why = dateRefusal(error);
        if (!failed || !why) return throwError(() => error);
        return this.#negotiating(failed.window, failed.chain, why, error);
      }),
    );
  }

  /**
   * Called when a scan of `window` has failed. Looks for date parameters that the list accepts, then completes. Gives up polls if there are
   * none, or after {@link MAX_FAILED_SCANS} failed scans in a row of this kind (`chain`). Errors if requests without dates fail too.
   */
  #negotiating(
    window: Window,
    chain: PollChain,
    why: GiveUpReason,
    error: unknown,
  ): Observable<PollBatch | RefetchBatch> {
    const { clock, probe } = this.#options;
    const { dates } = this;
    const reason = describeError(error);
    const start = {
      now: dates.now,
      newest: clock.newestStamp(),
      reason,
      // If retries were given up, other date formats may take as long, so sweeps start meanwhile. A refusal is followed by quick ones.
      onConfirmed: () => giveUpReason(error) && this.#setUnpolled(true),
    };
    const onFinding = (isFound: boolean) => {
      if (!isFound) this.#failedScans[chain] += 1; // false if the list accepts the same window when it is requested again
      if (this.#failedScans[chain] >= MAX_FAILED_SCANS) dates.without(why, reason);
      if (dates.noDates) this.#setUnpolled(true);
    };
    return probe(dateNegotiation(dates, window, start), onFinding);
  }

  #scanEnded(chain: PollChain): void {
    this.#scans.scanEnded(chain);
    this.#failedScans[chain] = 0;
    this.#pauses = 0;
    if (!this.isUnpolled) return;
    this.dates.report();
    this.#setUnpolled(false);
  }

  #restart(from: number): void {
    const { first, since } = this.#windowStarts;
    this.#windowStarts = { first, since: Math.min(since, from) };
    if (this.dates.noDates) this.#setUnpolled(true);
    this.#restart$.next();
  }

  #setUnpolled(isUnpolled: boolean): void {
    if (isUnpolled !== this.isUnpolled) this.#unpolled$.next(isUnpolled);
  }
}

/**
 * Whether polls that were given up for the reason `noDates` are tried again after a pause. False if the list ignores dates, or returns no
 * records for them.
 */
function isRetried(noDates: NoDates | undefined): boolean {
  return noDates === 'refused' || noDates === 'unanswered';
}
