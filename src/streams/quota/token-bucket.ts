import {
  asyncScheduler,
  concat,
  concatMap,
  defer,
  finalize,
  map,
  Observable,
  of,
  Subject,
  switchMap,
  take,
  takeUntil,
  tap,
} from 'rxjs';
import type { SchedulerLike, Subscription } from 'rxjs';
import { StartLog } from './start-log.ts';

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
   * Told of every start before its value goes on, so that a later bucket can be given it. What it returns is told the end, where {@link
   * during} knows it: that time counts then. And whether that was an answer: what failed or was given up may still be on its way.
   */
  readonly onStart?: (at: number) => void | ((end: number, isAnswered: boolean) => void);
  /** What failed or was given up may arrive so much later than its end: ms, as far as {@link during} knows of it. Default 0. */
  readonly lateMs?: number;
  /** What else a start has to wait for. Default nothing. */
  readonly gate?: Gate;
}

/** Lets starts through in its own time: those that were declared before, say. */
export interface Gate {
  /**
   * When a start of a lane of this rank may be made, as far as the gate goes: ms; `now` or before is at once, Infinity
   * until {@link opened$} says otherwise.
   */
  opensAt(now: number, rank: number): number;
  /** A start waits, and knows of no time at which it may be made. */
  want(): void;
  /** Emits when {@link opensAt} may give an earlier time. */
  readonly opened$: Observable<unknown>;
}

/** A place in the line of a {@link TokenBucket}. */
export interface LaneOptions {
  /** Lanes are served by rank, the lowest first. Default 0, the rank of the bucket itself. */
  readonly rank?: number;
  /**
   * Most starts of this lane in one window, so that the others find tokens left: an integer from 1 to the capacity, or what says so (below
   * 1 is 1), which is asked whenever the lane waits. Default the capacity.
   */
  readonly share?: number | (() => number);
}

/** Holds a stream to the quota. One value serves pipes of any type. */
export interface Limit {
  <T>(source: Observable<T>): Observable<T>;
  /** What {@link during} does, where the limit can. */
  readonly during?: <T>(work: Observable<T>) => Observable<T>;
}

/**
 * Subscribes to `work` when `limit` allows a start, and counts that start while it is under way: what is on its way to a server arrives at
 * some time until it is answered, and the server counts arrivals. From then on it counts from its end, or, where `work` completes, from as
 * much before it as answers take at the least.
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

/** A lane of a {@link TokenBucket}. */
export interface LaneLimit extends Limit {
  /** Starts of this lane that count just now. */
  used(): number;
}

/** A {@link Limit}, and others that draw on the same tokens with less claim to them. */
export interface TokenBucket extends Limit {
  /** @throws RangeError when called, if `rank` or `share` is out of range. */
  lane(options: LaneOptions): LaneLimit;
  /** Counts starts of somebody else: times in ms, which may be to come. */
  count(starts: readonly number[]): void;
  /** Starts that count just now: 0 to the capacity. */
  used(): number;
}

/**
 * Delays values so that at most `capacity` of them start within ANY `windowMs`.
 *
 * A token comes back `windowMs` after it was taken, not at a steady trickle: a bucket that also refills while it drains lets nearly `2 *
 * capacity` through. With `s(k)` the k-th start, the promise is `s(k + capacity) - s(k) >= windowMs`; a window is half-open, `[t, t +
 * windowMs)`. The same holds for the starts of each lane and its `share`, but for those before the bucket was made: nobody says which lane
 * they were of.
 *
 * Make one bucket per quota and share it. Every pipe through it, and every resubscription (`retry`!), draws on the same tokens: the lowest
 * rank first, then first come first served. Values keep their order within a pipe; an error of the source overtakes the values still
 * waiting.
 *
 * The promise holds to the tick of the scheduler's clock. A server counts arrivals: with {@link during} a token comes back `windowMs` after
 * the latest time at which the request can have arrived, so that the promise holds for arrivals too, as long as nothing arrives later than
 * `lateMs` after it was given up; as an operator the bucket knows of starts alone. Leave headroom for either: requests are not all as long
 * on their way.
 *
 * @throws RangeError when called, if `capacity` or `windowMs` is out of range.
 * @see https://github.com/tower-rs/tower/issues/842 - why a fixed window is not enough
 */
export function tokenBucket(options: TokenBucketOptions): TokenBucket {
  const { capacity, windowMs, lateMs = 0, scheduler = asyncScheduler } = options;
  const { starts = [], onStart, gate } = options;
  requireInteger('capacity', capacity, Infinity);
  if (!Number.isFinite(windowMs) || windowMs <= 0) {
    throw new RangeError(`windowMs must be a finite number > 0, got ${windowMs}`);
  }

  const lanes: Lane[] = []; // by rank
  /** Starts of nobody who is known. */
  const unknown = new StartLog(windowMs, lateMs);
  const logs = [unknown]; // and one of each lane
  const made = scheduler.now();
  for (const at of starts) unknown.add(Math.min(at, made));
  let wakeUp: Subscription | undefined;
  let draining = false;

  const used = (now: number) => logs.reduce((sum, log) => sum + log.used(now), 0);
  /** When there is a token for anybody: `now` or before it is at once. */
  const opensAt = (now: number): number =>
    used(now) < capacity ? now : Math.min(...logs.map((log) => log.freesAt(now)));
  /** When a lane may start, where there is a token for anybody from `opens` on. */
  const startsAt = ({ log, share, rank }: Lane, now: number, opens: number): number => {
    const at = log.used(now) < share() ? opens : Math.max(opens, log.freesAt(now));
    return gate ? Math.max(at, gate.opensAt(now, rank)) : at;
  };
  const drain = (): void => {
    wakeUp = undefined;
    draining = true; // a start may ask for the next token: it joins the line, this loop serves it
    for (;;) {
      const now = scheduler.now();
      const waiting = lanes.filter((lane) => lane.line.length > 0);
      if (waiting.length === 0) break;
      const opens = opensAt(now);
      const times = waiting.map((lane) => startsAt(lane, now, opens));
      const next = waiting[times.findIndex((at) => at <= now)];
      if (!next) {
        const soonest = Math.min(...times);
        // Worked out again on waking: a timer can fire early (Node's do, by up to 1 ms).
        if (soonest < Infinity) wakeUp = scheduler.schedule(drain, soonest - now);
        else gate?.want();
        break;
      }
      next.line.shift()!(now, onStart?.(now));
    }
    draining = false;
  };
  const drainAgain = (): void => {
    if (draining) return;
    wakeUp?.unsubscribe();
    drain();
  };

  const limit = (lane: Lane): LaneLimit => {
    /** Emits what `take` makes of a start. */
    const token = <T>(take: (at: number, onEnd: OnEnd) => T) =>
      new Observable<T>((subscriber) => {
        const start = (at: number, onEnd: OnEnd) => {
          subscriber.next(take(at, onEnd));
          subscriber.complete();
        };
        lane.line.push(start);
        const alone = lane.line.length === 1; // else the timer is set for this lane already
        if (alone || !wakeUp) drainAgain();
        return () => {
          const place = lane.line.indexOf(start);
          if (place >= 0) lane.line.splice(place, 1);
          if (lanes.some(({ line }) => line.length > 0)) return;
          wakeUp?.unsubscribe();
          wakeUp = undefined;
        };
      });
    const started = token((at) => lane.log.add(at));
    const each = <T>(source: Observable<T>) =>
      source.pipe(concatMap((value) => started.pipe(map(() => value))));
    const begun = token((at, onEnd) => {
      const told = lane.log.begin(at);
      return (isAnswered: boolean) => {
        const end = scheduler.now();
        told(end, isAnswered);
        onEnd?.(end, isAnswered);
        // It may have shown that others count no longer.
        if (lanes.some(({ line }) => line.length > 0)) drainAgain();
      };
    });
    const held = <T>(work: Observable<T>) =>
      begun.pipe(
        switchMap((end) => {
          let isAnswered = false;
          return work.pipe(
            tap({ complete: () => (isAnswered = true) }),
            finalize(() => end(isAnswered)),
          );
        }),
      );
    const usedNow = () => lane.log.used(scheduler.now());
    return Object.assign(each, { during: held, used: usedNow });
  };

  const lane = ({ rank = 0, share = capacity }: LaneOptions): LaneLimit => {
    if (!Number.isFinite(rank)) throw new RangeError(`rank must be a finite number, got ${rank}`);
    if (typeof share === 'number') requireInteger('share', share, capacity);
    const shareNow = typeof share === 'number' ? () => share : () => Math.max(1, share());
    const made: Lane = { rank, share: shareNow, line: [], log: new StartLog(windowMs, lateMs) };
    lanes.push(made);
    lanes.sort((a, b) => a.rank - b.rank);
    logs.push(made.log);
    return limit(made);
  };
  const count = (starts: readonly number[]): void => {
    for (const at of starts) unknown.add(at);
  };
  const usedNow = () => Math.min(capacity, used(scheduler.now()));
  gate?.opened$.subscribe(drainAgain);
  return Object.assign(lane({}), { lane, count, used: usedNow });
}

interface Lane {
  readonly rank: number;
  readonly share: () => number;
  readonly line: ((at: number, onEnd: OnEnd) => void)[];
  readonly log: StartLog;
}

type OnEnd = ReturnType<NonNullable<TokenBucketOptions['onStart']>>;

function requireInteger(name: string, value: number, most: number): void {
  if (Number.isInteger(value) && value >= 1 && value <= most) return;
  const range = most === Infinity ? '>= 1' : `from 1 to ${most}`;
  throw new RangeError(`${name} must be an integer ${range}, got ${value}`);
}

/**
 * The `usual` limit, and where there is haste the `hurried` one. A start that waits when haste begins goes over to the other
 * line; one that is under way stays where it began.
 *
 * @param haste$ Emits when there is haste: at once, where there is already.
 */
export function hastened(usual: Limit, hurried: Limit, haste$: Observable<unknown>): Limit {
  const held = <T>(work: Observable<T>): Observable<T> =>
    defer(() => {
      const begun$ = new Subject<void>();
      const begun = defer(() => {
        begun$.next();
        return work;
      });
      const faster$ = haste$.pipe(
        take(1),
        map(() => hurried),
      );
      return concat(of(usual), faster$).pipe(
        takeUntil(begun$),
        switchMap((limit) => during(limit, begun)),
      );
    });
  const each = <T>(source: Observable<T>) => source.pipe(concatMap((value) => held(of(value))));
  return Object.assign(each, { during: held });
}
