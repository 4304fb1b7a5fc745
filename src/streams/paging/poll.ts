import { asyncScheduler, defer, map, merge, NEVER, repeat, timer } from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import type { ScanPage } from './pages.ts';
import { recordsOf } from '../decode/answer.ts';
import { serverClock } from '../http/server-clock.ts';
import type { ServerClock } from '../http/server-clock.ts';

/** The modification dates a scan asks for. */
export interface Window {
  readonly modifiedFromDate: string;
  /** Left out where the server refuses it. */
  readonly modifiedToDate?: string;
}

/** A window as it is sent. */
export interface SentWindow {
  readonly dates: Window;
  /** Latest modification time that the window is sure to include, ms. */
  readonly until: number;
}

/** A page of a poll. */
export interface PollPage {
  readonly page: ScanPage;
  /**
   * With the last page of a poll for what is new: where to begin after a restart (before any lookback),
   * in ms.
   */
  readonly since: number | undefined;
  /** Read to look back far: what is new is not waited for, and `since` never there. */
  readonly looksBack: boolean;
}

/** What {@link poll} needs. */
export interface PollOptions {
  /** Reads a window whole. */
  readonly scan: (window: Window) => Observable<ScanPage>;
  /** The same to look back far, beside the other. Default `scan`. */
  readonly scanBack?: (window: Window) => Observable<ScanPage>;
  /** Writes a window's bounds as the list reads them: from an instant to at least the latest time known, ms. Default ISO 8601, to two days ahead. */
  readonly windowOf?: (from: number, latest: number) => SentWindow;
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
  /** The same of the first poll to the second one, so that lists need not ask all at once. Default `intervalMs`. */
  readonly firstIntervalMs?: number;
  /** What a request costs in time, ms, so that polls keep within their part of the quota. Default 0. */
  readonly spacingMs?: () => number;
  /** Each of its values ends the pause before the next poll for what is new. Default none. */
  readonly pollNow$?: Observable<unknown> | undefined;
  /** Clock and timers. Default {@link asyncScheduler}. */
  readonly scheduler?: SchedulerLike;
}

/** What polls for what is new look back: enough for a clock cut to the second and an ordinary late commit. */
const SHALLOW_MS = 10_000;
/** Most of the polls' part of the quota that looking back far has. */
const MAX_BACK = 1 / 3;
/** How far ahead a window ends, in ms: whatever zone or part of a day the server reads into its end, it is not in the past. */
export const AHEAD_MS = 2 * 86_400_000;
/**
 * How long a window is read again because a record in it can't be had, ms. Too small: an update is missed if the server is
 * mended later, until the next sweep. Too large: polls read windows that grow as long.
 */
const HOLD_MS = 10 * 60_000;
/** Beyond it ISO 8601 needs a sign, which an API may not read. */
const LAST_DAY = Date.UTC(9999, 11, 31);

/**
 * Scans one window of modification dates after the other, for ever, in two chains side by side. In each a
 * window begins where the scan before it began, by the server's time, less a lookback; what is read
 * twice costs nothing further on. One looks for what is new, ten seconds back; the other begins every
 * `lookbackMs` and looks back as long, so that a commit up to `lookbackMs` late is always found. Where one
 * chain comes as far as that by itself there is no other.
 *
 * A poll follows the one before in its chain as soon as `spacingMs` for each of its requests and
 * `intervalMs` are over: quick while windows are small, slower when they take many pages. What looking
 * back takes of the quota is paid for by all polls in between, a little by each, and none waits for it.
 *
 * If a window has a record that can't be had, as each page with it fails, the next window begins at the same place, for ten
 * minutes at most: a change of that record would be missed otherwise.
 *
 * After a restart both have to go on where they were, from the one `since` that is told: it is not
 * later than `lookbackMs` after the last scan that looked back, and has come to its end, began.
 */
export function poll(options: PollOptions): Observable<PollPage> {
  const { scan, scanBack = scan, clock = serverClock(), lookbackMs = 60_000 } = options;
  const { intervalMs = 0, firstIntervalMs = intervalMs, spacingMs = () => 0 } = options;
  const { pollNow$ = NEVER, scheduler = asyncScheduler, windowOf = aheadWindow } = options;

  return defer(() => {
    const shallow = Math.min(SHALLOW_MS, 2 * lookbackMs);
    const isOne = Math.max(shallow, intervalMs) >= lookbackMs;
    const known = { clock, since: options.since, windowOf, scheduler };
    const newest = chain({
      ...known,
      scan,
      behindMs: 0,
      reach: isOne ? 'far' : 'near',
      lookbackMs: isOne ? Math.max(shallow, lookbackMs) : shallow,
    });
    const back = chain({
      ...known,
      scan: scanBack,
      behindMs: lookbackMs,
      reach: 'far',
      lookbackMs,
    });
    /** Of the polls' part of the quota: what looking back takes of it. */
    const forBack = (): number => {
      if (isOne || back.requests() === 0) return 0;
      return Math.min(MAX_BACK, (back.requests() * spacingMs()) / lookbackMs);
    };
    const costMs = () => (newest.requests() * spacingMs()) / (1 - forBack());

    const newest$ = newest
      .scans((nth) => Math.max(nth === 1 ? firstIntervalMs : intervalMs, costMs()), pollNow$)
      .pipe(
        map(({ page, isLast }): PollPage => {
          const most = isOne ? Infinity : back.since() + lookbackMs;
          const since = isLast ? Math.min(newest.since(), most) : undefined;
          return { page, since, looksBack: false };
        }),
      );
    const back$ = back
      .scans(() => lookbackMs, NEVER)
      .pipe(map(({ page }): PollPage => ({ page, since: undefined, looksBack: true })));
    return isOne ? newest$ : merge(newest$, back$);
  });
}

/** One scan after the other: each from where the one before it began, less a lookback. */
function chain(options: {
  readonly scan: (window: Window) => Observable<ScanPage>;
  readonly clock: ServerClock;
  readonly since: number;
  /** The one before the first may have begun so much earlier than `since`, ms. */
  readonly behindMs: number;
  readonly lookbackMs: number;
  /** See {@link ServerClock.mark}. */
  readonly reach: 'near' | 'far';
  readonly windowOf: (from: number, latest: number) => SentWindow;
  readonly scheduler: SchedulerLike;
}) {
  const { scan, clock, reach, windowOf, scheduler } = options;
  let since = options.since - options.behindMs;
  let startedAt = 0;
  let requests = 0;
  let before = 0;
  let scans = 0;
  let heldAt: number | undefined; // when the first of the newest windows in a row with a gap was read

  const one = defer(() => {
    let hasGap = false;
    startedAt = scheduler.now();
    [before, requests] = [requests, 0];
    const newest = clock.newest(); // as of now: what is seen during the scan may be newer than it
    let mark: number | undefined;
    // Before the first `Date` the local clock has to do; `reached` is what even a wrong one gives.
    const latest = Math.max(clock.latest(scheduler.now()), since, options.since);
    const { dates, until: reached } = windowOf(since - options.lookbackMs, latest);
    return scan(dates).pipe(
      map((page) => {
        if (requests === 0) {
          clock.tell(page.answer.serverTime, scheduler.now());
          // Where the next window begins: at the earlier of `Date` and the newest `updated_at` seen before this scan. Undefined while no
          // `updated_at` has been seen: the window stays where it is.
          mark = clock.mark(newest, reach);
        }
        requests += 1;
        const stamps = recordsOf(page.answer).updatedAt();
        clock.see(stamps);
        // The scan before has read all that was stamped until then.
        if (scans > 0 && newest !== undefined) clock.rose(stamps, newest);
        const isLast = page.next === undefined;
        hasGap ||= page.answer.hasGap === true;
        if (isLast) {
          heldAt = hasGap ? (heldAt ?? scheduler.now()) : undefined;
          const isHeld = heldAt !== undefined && scheduler.now() - heldAt < HOLD_MS;
          if (!isHeld) since = Math.min(mark ?? since, reached) - clock.takeReach();
          before = requests;
          scans += 1;
        }
        return { page, isLast };
      }),
    );
  });
  return {
    /** For ever, each at least so many ms after the start of the one before, the `nth`, or when it is told to. */
    scans: (leastMs: (nth: number) => number, now$: Observable<unknown>) => {
      const pause = (nth: number) =>
        timer(Math.max(0, startedAt + leastMs(nth) - scheduler.now()), scheduler);
      return one.pipe(repeat({ delay: (nth) => merge(pause(nth), now$) }));
    },
    /** Where the last one that has come to its end began, on the server's clock. */
    since: () => since,
    /** Of the last one; of the one that goes on if it has taken more. */
    requests: () => Math.max(before, requests),
  };
}

/** The window from one instant to well after another; both in ms. */
export function window(from: number, latest: number): Required<Window> {
  return { modifiedFromDate: dateText(from), modifiedToDate: dateText(latest + AHEAD_MS) };
}

/** An instant in ISO 8601, kept within the years that have four digits. */
export function dateText(ms: number): string {
  return new Date(Math.min(Math.max(ms, 0), LAST_DAY)).toISOString();
}

function aheadWindow(from: number, latest: number): SentWindow {
  return { dates: window(from, latest), until: latest + AHEAD_MS / 2 };
}
