// Polls a list by modification dates: two chains of scans, each of one window after the other.

import { asyncScheduler, defer, map, merge, NEVER, repeat, timer } from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import type { ScanPage } from './pages.ts';
import { recordsOf } from '../decode/response.ts';
import { ServerClock } from '../http/server-clock.ts';
import { ISO } from '../../description/time-format.ts';

/** The range of modification dates that a scan covers. */
export interface Window {
  readonly from: string;
  /**
   * Value of the date parameter for the end of the range. Undefined if no end is sent, for example because the list has no such parameter.
   */
  readonly to?: string;
}

/** Window of modification dates as it is requested: the values of the date parameters, and the time up to which it certainly reaches. */
export interface SentWindow {
  readonly dates: Window;
  /** Time up to which the window certainly includes all modification times, however the server interprets its end; in epoch ms. */
  readonly until: number;
}

/** A page of a poll, with the time from which polling resumes after a restart. */
export interface PollPage {
  readonly page: ScanPage;
  /**
   * Value of {@link PollOptions.since} with which polling resumes after a restart, in epoch ms on the server's clock. Set only on the last
   * page of a poll for new records; otherwise undefined.
   */
  readonly since: number | undefined;
  /** Whether the page comes from the lookback chain, which looks for records that became visible late. `since` is then undefined. */
  readonly looksBack: boolean;
}

/** Options of {@link poll}. */
export interface PollOptions {
  /** Scans a window of modification dates: emits the pages of all records in it. */
  readonly scan: (window: Window) => Observable<ScanPage>;
  /**
   * Scans a window of the lookback polls, which read the recent past again to find records that became visible late. Runs concurrently with
   * `scan`. Default: `scan`.
   */
  readonly scanBack?: (window: Window) => Observable<ScanPage>;
  /**
   * Formats a window's bounds as the list parses them. The window begins at `from` and should include `latest`, both in epoch ms. Default:
   * ISO 8601, with an end two days after `latest`.
   */
  readonly windowOf?: (from: number, latest: number) => SentWindow;
  /** Estimate of the server's clock, updated with every page. Pass the same object to the other reads of the list. Default: a new one. */
  readonly clock?: ServerClock;
  /** Start of the first window, in epoch ms on the server's clock, before any lookback is subtracted from it. */
  readonly since: number;
  /** Polls still read a record that becomes visible in the API up to this many ms after its modification time. Default 60,000. */
  readonly lookbackMs?: number;
  /** Minimum time from the start of one poll for new records to the start of the next, in ms. Default 0: only `spacingMs` delays polls. */
  readonly intervalMs?: number;
  /**
   * Minimum time from the start of the first poll for new records to the start of the second, in ms. Different values stagger the polls of
   * several lists. Default: `intervalMs`.
   */
  readonly firstIntervalMs?: number;
  /**
   * Returns the minimum time per request, in ms: a poll with n requests and the pause after it together take at least n times as long.
   * Default: 0.
   */
  readonly spacingMs?: () => number;
  /** Each emission ends the pause before the next poll for new records. Default: never emits. */
  readonly pollNow$?: Observable<unknown> | undefined;
  /** Clock and timers. Default {@link asyncScheduler}. */
  readonly scheduler?: SchedulerLike;
}

/** How far polls for new records look back, in ms. Covers stamps truncated to the second, and ordinary delays of commits. */
const SHORT_LOOKBACK_MS = 10_000;
/**
 * Largest fraction of the polls' quota that the polls for new records leave to the lookback chain, by pausing longer. If it is too small,
 * the two chains together exceed that quota. If it is too large, new records are read late.
 */
const MAX_BACK = 1 / 3;
/**
 * How far in the future windows end, in ms: two days, so that the end is in the future in any time zone, even if its time of day is
 * ignored.
 */
export const WINDOW_END_LEAD_MS = 2 * 86_400_000;
/**
 * How long poll windows keep the same start after a gap (a record that could not be read), to request this record again, in ms. If it is
 * too small, a change of the record is missed until the next full scan. If it is too large, polls read growing windows again for longer.
 */
const GAP_RETRY_MS = 10 * 60_000;

/**
 * Polls a list for ever. Each poll scans a window of modification dates. The window begins a lookback before the start of the previous poll
 * of the same chain, or earlier, on the server's clock. Records that are read twice are dropped by later stages.
 *
 * Two chains run concurrently:
 *
 * - The first chain reads new records, and looks back ten seconds.
 * - The lookback chain starts a scan every `lookbackMs`, and looks back by `lookbackMs`, to read commits that are up to `lookbackMs` late.
 *
 * If `lookbackMs` is at most ten seconds or at most `intervalMs`, there is only the first chain, and it looks back at least `lookbackMs`.
 *
 * A poll of the first chain starts `intervalMs` after the start of its previous poll, or later if that poll sent many requests: after
 * `spacingMs` for each of them. The pauses are even longer while the lookback chain uses quota.
 *
 * After a window with a gap (a record that no response contains), the next window has the same start, for at most ten minutes.
 *
 * The last page of each poll of the first chain has a `since`. Pass the newest one as option `since` to resume after a restart.
 */
export function poll(options: PollOptions): Observable<PollPage> {
  const { scan, scanBack = scan, clock = new ServerClock(), lookbackMs = 60_000 } = options;
  const { intervalMs = 0, firstIntervalMs = intervalMs, spacingMs = () => 0 } = options;
  const { pollNow$ = NEVER, scheduler = asyncScheduler, windowOf = aheadWindow } = options;

  return defer(() => {
    const shallow = Math.min(SHORT_LOOKBACK_MS, 2 * lookbackMs);
    const isOne = Math.max(shallow, intervalMs) >= lookbackMs;
    const known = { clock, since: options.since, windowOf, scheduler };
    const newest = new ScanChain({
      ...known,
      scan,
      behindMs: 0,
      reach: isOne ? 'far' : 'near',
      lookbackMs: isOne ? Math.max(shallow, lookbackMs) : shallow,
    });
    const back = new ScanChain({
      ...known,
      scan: scanBack,
      behindMs: lookbackMs, // its last scan may have begun that long before `since`
      reach: 'far',
      lookbackMs,
    });
    /** Returns the fraction of the polls' share of the quota that the lookback chain uses, at most `MAX_BACK`. */
    const forBack = (): number => {
      if (isOne || back.requests === 0) return 0;
      return Math.min(MAX_BACK, (back.requests * spacingMs()) / lookbackMs);
    };
    const costMs = () => (newest.requests * spacingMs()) / (1 - forBack());

    const newest$ = newest
      .scans((nth) => Math.max(nth === 1 ? firstIntervalMs : intervalMs, costMs()), pollNow$)
      .pipe(
        map(({ page, isLast }): PollPage => {
          const most = isOne ? Infinity : back.since + lookbackMs;
          const since = isLast ? Math.min(newest.since, most) : undefined;
          return { page, since, looksBack: false };
        }),
      );
    const back$ = back
      .scans(() => lookbackMs, NEVER)
      .pipe(map(({ page }): PollPage => ({ page, since: undefined, looksBack: true })));
    return isOne ? newest$ : merge(newest$, back$);
  });
}

interface ScanChainOptions extends Required<Pick<PollOptions, 'scan' | 'windowOf'>> {
  readonly clock: ServerClock;
  readonly since: number;
  /**
   * How much earlier than `since` (the stored position of the polls) the chain resumes after a restart, in ms: 0 for the chain for new
   * records, `lookbackMs` for a lookback chain.
   */
  readonly behindMs: number;
  readonly lookbackMs: number;
  /**
   * Which stamps (modification times) {@link ServerClock.mark} compares with the `Date` header, to detect that the server stamps records in
   * local time:
   *
   * - `near`: those of new changes that polls have read. Used by the chain for new records if there is a lookback chain, too.
   * - `far`: all stamps seen. Used by all other chains.
   */
  readonly reach: 'near' | 'far';
  readonly scheduler: SchedulerLike;
}

/** A chain of scans of a list by modification date. Each window begins at {@link ScanChain.since} minus a lookback. */
class ScanChain {
  readonly #options: ScanChainOptions;
  #since: number;
  #startedAt = 0;
  #requests = 0;
  #requestsBefore = 0;
  #scans = 0;
  /**
   * When the first scan of the current series of scans with gaps (records that could not be read) ended, in epoch ms on the local clock.
   * Undefined if the last scan had no gap.
   */
  #gapsSince: number | undefined;

  constructor(options: ScanChainOptions) {
    this.#options = options;
    this.#since = options.since - options.behindMs;
  }

  /**
   * Start of the next window before the lookback is subtracted, in epoch ms on the server's clock: normally the newest modification time
   * that was known when the last completed scan began.
   */
  get since(): number {
    return this.#since;
  }

  /** Number of requests of the last completed scan, or of the running scan if it has sent more. */
  get requests(): number {
    return Math.max(this.#requestsBefore, this.#requests);
  }

  /**
   * Repeats the scan without end, and emits the pages of all scans. After the end of the nth scan, the next one starts as soon as
   * `leastMs(nth)` ms have passed since the start of the nth, or when `now$` emits.
   */
  scans(leastMs: (nth: number) => number, now$: Observable<unknown>) {
    const { scheduler } = this.#options;
    const pause = (nth: number) =>
      timer(Math.max(0, this.#startedAt + leastMs(nth) - scheduler.now()), scheduler);
    return defer(() => this.#scan()).pipe(repeat({ delay: (nth) => merge(pause(nth), now$) }));
  }

  #scan() {
    const { clock, scheduler, since, lookbackMs, reach, scan, windowOf } = this.#options;
    let hasGap = false;
    this.#startedAt = scheduler.now();
    [this.#requestsBefore, this.#requests] = [this.#requests, 0];
    const newest = clock.newest(); // before the scan, which may itself see newer stamps
    let mark: number | undefined;
    // Before the first `Date` header this depends on the local clock; `reached` is what the window includes even if that clock is wrong.
    const latest = Math.max(clock.latest(scheduler.now()), this.#since, since);
    const { dates, until: reached } = windowOf(this.#since - lookbackMs, latest);
    return scan(dates).pipe(
      map((page) => {
        if (this.#requests === 0) {
          clock.tell(page.answer.serverTime, scheduler.now());
          // Start of the next window; undefined while no modification time has been seen: the start of the window then stays the same.
          mark = clock.mark(newest, reach);
        }
        this.#requests += 1;
        const stamps = recordsOf(page.answer).updatedAt();
        clock.see(stamps);
        // The previous scan has read everything stamped up to `newest`.
        if (this.#scans > 0 && newest !== undefined) clock.rose(stamps, newest);
        const isLast = page.next === undefined;
        hasGap ||= page.answer.hasGap === true;
        if (isLast) this.#scanned(Math.min(mark ?? this.#since, reached), hasGap);
        return { page, isLast };
      }),
    );
  }

  /**
   * Handles the end of a scan: the next window starts at `reached` (epoch ms) minus the lookback. After a scan with a gap, the next
   * window has the same start as the window of that scan, for at most `GAP_RETRY_MS`.
   */
  #scanned(reached: number, hasGap: boolean): void {
    const { clock, scheduler } = this.#options;
    this.#gapsSince = hasGap ? (this.#gapsSince ?? scheduler.now()) : undefined;
    const isHeld =
      this.#gapsSince !== undefined && scheduler.now() - this.#gapsSince < GAP_RETRY_MS;
    if (!isHeld) this.#since = reached - clock.takeReach(); // earlier if a page came from a cache
    this.#requestsBefore = this.#requests;
    this.#scans += 1;
  }
}

/**
 * Returns a window of modification dates from `from` to two days after `latest`, both in epoch ms.
 *
 * @param times Notation of the dates. Default: ISO 8601.
 */
export function window(from: number, latest: number, times = ISO): Required<Window> {
  return {
    from: times.write(from),
    to: times.write(latest + WINDOW_END_LEAD_MS),
  };
}

function aheadWindow(from: number, latest: number): SentWindow {
  return { dates: window(from, latest), until: latest + WINDOW_END_LEAD_MS / 2 };
}
