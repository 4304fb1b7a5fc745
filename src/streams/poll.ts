import { asyncScheduler, defer, map, repeat, timer } from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import { updatedAtIn } from './known-record.ts';
import type { ScanPage } from './pages.ts';
import { serverClock } from './server-clock.ts';
import type { ServerClock } from './server-clock.ts';

/** The modification dates a scan asks for; both are always sent. */
export interface Window {
  readonly modifiedFromDate: string;
  readonly modifiedToDate: string;
}

/** A page of a poll. */
export interface PollPage {
  readonly page: ScanPage;
  /** With a poll's last page: where the next window begins (before any lookback), in ms. */
  readonly since: number | undefined;
}

/** What {@link poll} needs. */
export interface PollOptions {
  /** Reads a window whole. */
  readonly scan: (window: Window) => Observable<ScanPage>;
  /** Told of every page that is read. Default one of its own; reads beside the polls share it. */
  readonly clock?: ServerClock;
  /** Where the first window begins, ms on the server's clock, before any lookback. */
  readonly since: number;
  /**
   * A record may become visible this long after its `updated_at`, in ms; it is found within as
   * long again. Default 60,000.
   */
  readonly lookbackMs?: number;
  /** Least time from the start of a poll to the next, ms. Default 0: as often as `spacingMs` lets. */
  readonly intervalMs?: number;
  /** What a request costs in time, ms, so that polls keep within their part of the quota. Default 0. */
  readonly spacingMs?: () => number;
  /** Clock and timers. Default {@link asyncScheduler}. */
  readonly scheduler?: SchedulerLike;
}

/** What most polls look back: enough for a clock cut to the second and an ordinary late commit. */
const SHALLOW_MS = 10_000;
/** Nobody knows how an API reads its end dates: two days ahead no reading can matter. */
const AHEAD_MS = 2 * 86_400_000;
/** Beyond it ISO 8601 needs a sign, which an API may not read. */
const LAST_DAY = Date.UTC(9999, 11, 31);

/**
 * Scans one window of modification dates after the other, for ever. A window begins where the scan
 * before it began, by the server's time, less a lookback; what is read twice costs nothing further
 * on. Most polls look back ten seconds; every `lookbackMs` one looks back twice as long as that, so
 * that a commit up to `lookbackMs` late is always found.
 *
 * A poll follows the one before as soon as `spacingMs` for each of its requests and `intervalMs` are
 * over: quick while windows are small, slower when they take many pages. No two run at once.
 */
export function poll(options: PollOptions): Observable<PollPage> {
  const { scan, clock = serverClock(), lookbackMs = 60_000, intervalMs = 0 } = options;
  const { spacingMs = () => 0, scheduler = asyncScheduler } = options;

  return defer(() => {
    let since = options.since;
    let deepAt = -Infinity;
    let startedAt = 0;
    let requests = 0;

    const one = defer(() => {
      startedAt = scheduler.now();
      requests = 0;
      const deep = startedAt - deepAt >= lookbackMs;
      if (deep) deepAt = startedAt;
      const lookback = deep ? 2 * lookbackMs : Math.min(SHALLOW_MS, 2 * lookbackMs);
      const newest = clock.newest(); // as of now: what is seen during the scan may be newer than it
      let mark: number | undefined;
      // Before the first answer the local clock has to do; `reached` is what even a wrong one gives.
      const latest = Math.max(clock.latest() ?? scheduler.now(), since);
      const reached = latest + AHEAD_MS / 2;
      return scan(window(since - lookback, latest)).pipe(
        map((page): PollPage => {
          if (requests === 0) {
            clock.tell(page.answer.serverTime);
            mark = clock.mark(newest);
          }
          requests += 1;
          clock.see(page.answer.data.map(updatedAtIn));
          if (page.next) return { page, since: undefined };
          since = Math.min(mark ?? since, reached);
          return { page, since };
        }),
      );
    });
    const pause = (): Observable<unknown> => {
      const wait = Math.max(intervalMs, requests * spacingMs());
      return timer(Math.max(0, wait - (scheduler.now() - startedAt)), scheduler);
    };
    return one.pipe(repeat({ delay: pause }));
  });
}

/** The window from one instant to well after another; both in ms. */
export function window(from: number, latest: number): Window {
  const text = (ms: number) => new Date(Math.min(Math.max(ms, 0), LAST_DAY)).toISOString();
  return { modifiedFromDate: text(from), modifiedToDate: text(latest + AHEAD_MS) };
}
