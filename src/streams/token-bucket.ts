import { asyncScheduler, concatMap, finalize, map, Observable, of, switchMap } from 'rxjs';
import type { SchedulerLike, Subscription } from 'rxjs';

/** The limit a {@link tokenBucket} keeps. Read once, when the bucket is made. */
export interface TokenBucketOptions {
  /** Most starts in one window: an integer, at least 1. */
  readonly capacity: number;
  /** Length of the window, in milliseconds; more than 0. */
  readonly windowMs: number;
  /** Clock (ms) and timers. Default {@link asyncScheduler}: whole ms, and NTP can step it. */
  readonly scheduler?: SchedulerLike;
  /**
   * Times (ms, on the scheduler's clock) of starts before this bucket was made: an earlier
   * process's, say. Default none. A time in the future counts as now.
   */
  readonly starts?: readonly number[];
  /**
   * Told of every start before its value goes on, so that a later bucket can be given it. What it
   * returns is told the end, where {@link during} knows it: that time counts then.
   */
  readonly onStart?: (at: number) => void | ((end: number) => void);
}

/** A place in the line of a {@link TokenBucket}. */
export interface LaneOptions {
  /** Lanes are served by rank, the lowest first. Default 0, the rank of the bucket itself. */
  readonly rank?: number;
  /**
   * Most starts of this lane in one window, so that the others find tokens left: an integer from
   * 1 to the capacity. Default the capacity.
   */
  readonly share?: number;
}

/** Holds a stream to the quota. One value serves pipes of any type. */
export interface Limit {
  <T>(source: Observable<T>): Observable<T>;
  /** What {@link during} does, where the limit can. */
  readonly during?: <T>(work: Observable<T>) => Observable<T>;
}

/**
 * Subscribes to `work` when `limit` allows a start, and counts that start until `work` ends, in
 * whatever way: what is on its way to a server arrives at some time until it is answered, and the
 * server counts arrivals.
 */
export function during<T>(limit: Limit, work: Observable<T>): Observable<T> {
  return (
    limit.during?.(work) ??
    of(undefined).pipe(
      limit,
      switchMap(() => work),
    )
  );
}

/** A {@link Limit}, and others that draw on the same tokens with less claim to them. */
export interface TokenBucket extends Limit {
  /** @throws RangeError when called, if `rank` or `share` is out of range. */
  lane(options: LaneOptions): Limit;
  /** Counts as many starts as a window may have as made just now, by somebody unknown. */
  exhaust(): void;
  /** Starts that count just now: 0 to the capacity. */
  used(): number;
}

/**
 * Delays values so that at most `capacity` of them start within ANY `windowMs`.
 *
 * A token comes back `windowMs` after it was taken, not at a steady trickle: a bucket that also
 * refills while it drains lets nearly `2 * capacity` through. With `s(k)` the k-th start, the
 * promise is `s(k + capacity) - s(k) >= windowMs`; a window is half-open, `[t, t + windowMs)`.
 * The same holds for the starts of each lane and its `share`, but for those before the bucket was
 * made: nobody says which lane they were of.
 *
 * Make one bucket per quota and share it. Every pipe through it, and every resubscription
 * (`retry`!), draws on the same tokens: the lowest rank first, then first come first served.
 * Values keep their order within a pipe; an error of the source overtakes the values still waiting.
 *
 * The promise holds to the tick of the scheduler's clock. A server counts arrivals: with {@link during}
 * a token comes back `windowMs` after the end, so that the promise holds for arrivals too, as long as
 * nothing arrives that was given up before; as an operator the bucket knows of starts alone: leave headroom.
 *
 * @throws RangeError when called, if `capacity` or `windowMs` is out of range.
 * @see https://github.com/tower-rs/tower/issues/842 - why a fixed window is not enough
 */
export function tokenBucket(options: TokenBucketOptions): TokenBucket {
  const { capacity, windowMs, scheduler = asyncScheduler, starts = [], onStart } = options;
  requireInteger('capacity', capacity, Infinity);
  if (!Number.isFinite(windowMs) || windowMs <= 0) {
    throw new RangeError(`windowMs must be a finite number > 0, got ${windowMs}`);
  }

  const all = startLog(capacity, windowMs);
  const made = scheduler.now();
  for (const at of starts) all.add({ at: Math.min(at, made) });

  const lanes: Lane[] = []; // by rank
  let wakeUp: Subscription | undefined;
  let draining = false;

  const drain = (): void => {
    wakeUp = undefined;
    draining = true; // a start may ask for the next token: it joins the line, this loop serves it
    for (;;) {
      const now = scheduler.now();
      const waiting = lanes.filter((lane) => lane.line.length > 0);
      const waits = waiting.map((lane) => Math.max(all.wait(now), lane.starts.wait(now)));
      const next = waiting[waits.findIndex((wait) => wait <= 0)];
      if (!next) {
        // Worked out again on waking: a timer can fire early (Node's do, by up to 1 ms).
        if (waits.length > 0) wakeUp = scheduler.schedule(drain, Math.min(...waits));
        break;
      }
      const start: Start = { at: now, onEnd: onStart?.(now) };
      all.add(start);
      next.starts.add(start);
      next.line.shift()!(start);
    }
    draining = false;
  };

  const limit = (lane: Lane): Limit => {
    const token = new Observable<Start>((subscriber) => {
      const start = (taken: Start) => {
        subscriber.next(taken);
        subscriber.complete();
      };
      lane.line.push(start);
      const alone = lane.line.length === 1; // else the timer is set for this lane already
      if (!draining && (alone || !wakeUp)) {
        wakeUp?.unsubscribe();
        drain();
      }
      return () => {
        const place = lane.line.indexOf(start);
        if (place >= 0) lane.line.splice(place, 1);
        if (lanes.some(({ line }) => line.length > 0)) return;
        wakeUp?.unsubscribe();
        wakeUp = undefined;
      };
    });
    const each = <T>(source: Observable<T>) =>
      source.pipe(concatMap((value) => token.pipe(map(() => value))));
    const held = <T>(work: Observable<T>) =>
      token.pipe(
        switchMap((start) => {
          start.isUnderWay = true;
          return work.pipe(
            finalize(() => {
              start.isUnderWay = false;
              start.at = scheduler.now();
              start.onEnd?.(start.at);
            }),
          );
        }),
      );
    return Object.assign(each, { during: held });
  };

  const lane = ({ rank = 0, share = capacity }: LaneOptions): Limit => {
    if (!Number.isFinite(rank)) throw new RangeError(`rank must be a finite number, got ${rank}`);
    requireInteger('share', share, capacity);
    const made: Lane = { rank, line: [], starts: startLog(share, windowMs) };
    lanes.push(made);
    lanes.sort((a, b) => a.rank - b.rank);
    return limit(made);
  };
  const exhaust = (): void => {
    const now = scheduler.now();
    for (let k = 0; k < capacity; k++) {
      all.add({ at: now });
      onStart?.(now);
    }
  };
  return Object.assign(lane({}), { lane, exhaust, used: () => all.used(scheduler.now()) });
}

interface Lane {
  readonly rank: number;
  readonly line: ((start: Start) => void)[];
  readonly starts: StartLog;
}

/** What a token was taken for. */
interface Start {
  /** When it counts: as it started, or as it ended. */
  at: number;
  /** It counts as now for as long as that. */
  isUnderWay?: boolean;
  readonly onEnd?: void | ((end: number) => void);
}

interface StartLog {
  add(start: Start): void;
  /** How long until one more may start: 0 or less is now. */
  wait(now: number): number;
  used(now: number): number;
}

/** The `most` starts that count longest. */
function startLog(most: number, windowMs: number): StartLog {
  const starts: Start[] = [];
  const timeOf = ({ at, isUnderWay }: Start, now: number) => (isUnderWay ? now : at);
  const oldest = (now: number) =>
    starts.reduce((place, start, k) => (timeOf(start, now) < timeOf(starts[place]!, now) ? k : place), 0); // prettier-ignore
  return {
    add: (start) => {
      if (starts.length === most) starts.splice(oldest(Infinity), 1);
      starts.push(start);
    },
    wait: (now) => (starts.length < most ? 0 : timeOf(starts[oldest(now)]!, now) + windowMs - now),
    used: (now) => starts.filter((start) => timeOf(start, now) + windowMs > now).length,
  };
}

function requireInteger(name: string, value: number, most: number): void {
  if (Number.isInteger(value) && value >= 1 && value <= most) return;
  const range = most === Infinity ? '>= 1' : `from 1 to ${most}`;
  throw new RangeError(`${name} must be an integer ${range}, got ${value}`);
}
