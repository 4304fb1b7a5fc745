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
import { CellarstreamError } from '../../core/errors.ts';
import { StartLog } from './start-log.ts';
import type { WorkOutcome } from './start-log.ts';

/** Options of {@link tokenBucket}, read once when the bucket is created. */
export interface TokenBucketOptions {
  /**
   * Maximum number of starts within any period of `windowMs`: an integer, at least 1. A start is a request that begins, or a stream value
   * that the limit lets pass.
   */
  readonly capacity: number;
  /** Length of the quota's window, in ms; more than 0. */
  readonly windowMs: number;
  /**
   * Provides the clock (ms) and timers. Default {@link asyncScheduler}, whose clock has whole ms and changes when NTP sets the system time.
   */
  readonly scheduler?: SchedulerLike;
  /**
   * Times at which requests started before this bucket was created, such as those of an earlier process, in ms on the scheduler's clock. A
   * future time is replaced by the current time. Default none.
   */
  readonly starts?: readonly number[];
  /**
   * Called with the time (ms) when the quota grants a start, before the waiting value is emitted or the waiting work begins. The time can
   * be stored and passed to a later bucket in `starts`.
   *
   * The returned function is called with the time (ms) when work run with {@link during} ends. `isAnswered`: false if the request may still
   * reach the server and be counted.
   */
  readonly onStart?: (at: number) => void | ((end: number, isAnswered: boolean) => void);
  /**
   * Maximum time from the failure or cancellation of a request of {@link during} until it arrives at the server, in ms: it may still be on
   * its way. Default 0.
   */
  readonly lateMs?: number;
  /** Condition under which requests may start, in addition to the quota. Default none. */
  readonly gate?: Gate;
}

/** Condition for request starts in addition to the quota, for example that requests are declared to other processes first. */
export interface Gate {
  /**
   * Returns the earliest time at which the gate lets a lane with this rank start a request, in ms on the scheduler's clock. A time up to
   * `now` means that the gate is open, Infinity that it stays closed until {@link opened$} emits.
   */
  opensAt(now: number, rank: number): number;
  /**
   * Called when requests wait and no timer can tell when one of them may start, usually because {@link opensAt} returns Infinity. The gate
   * should then do what is needed to open, such as declare the requests.
   */
  want(): void;
  /** Emits when a start may be allowed earlier than {@link opensAt} last returned. The caller then calls {@link opensAt} again. */
  readonly opened$: Observable<unknown>;
}

/** Options of a lane (stream of requests) of a {@link TokenBucket}. */
export interface LaneOptions {
  /**
   * Rank of the lane. Among the lanes with a waiting request that may start, the one with the lowest rank is served first. Default 0, which
   * is also the rank of the {@link TokenBucket} itself.
   */
  readonly rank?: number;
  /**
   * Maximum number of requests of this lane that may start within any period of `windowMs`. Either an integer from 1 to the capacity, or a
   * function that returns this number and is called whenever the lane waits; a result below 1 counts as 1. Default the capacity.
   */
  readonly share?: number | (() => number);
}

/** Operator that delays the values of a stream as the quota requires. Its type fits into pipes of any value type. */
export interface Limit {
  <T>(source: Observable<T>): Observable<T>;
  /** Implements {@link during} for this limit. If undefined, a start counts for one window from the beginning of `work`. */
  readonly during?: <T>(work: Observable<T>) => Observable<T>;
}

/**
 * Waits until `limit` allows a request to start, then subscribes to `work`, which sends the request. Emits what `work` emits.
 *
 * The start counts against the quota while `work` runs, and then for one more quota window (`windowMs`), which begins:
 *
 * - if `work` completed: at its end, or earlier by at most the estimated minimum latency;
 * - if `work` failed or was unsubscribed: `lateMs` (an option of the token bucket) after its end.
 *
 * If the server does not count the request, the start stops counting when `work` ends. If `limit` has no {@link Limit.during}, the start
 * counts for one quota window from the beginning of `work`.
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

/** A lane of a {@link TokenBucket}: the limit of one stream of requests, with its own rank and its own share of the tokens. */
export interface LaneLimit extends Limit {
  /** Number of request starts of this lane that count against the quota at present. */
  used(): number;
}

/** A lane for requests that count against several quotas: it can take a token of its bucket and of others at the same moment. */
export interface SharedLane extends LaneLimit, SharedLimit {
  /**
   * Returns a limit whose requests need a token from this lane and from each lane in `others` (lanes of other buckets), and take all tokens
   * at the same moment. This lane's bucket decides in which order the requests start.
   */
  together(others: readonly SharedLimit[]): Limit;
}

/**
 * Access to a lane (a stream of requests with its own share of a quota) for requests that wait in a lane of another {@link TokenBucket},
 * and need a token of this lane as well.
 */
export interface SharedLimit {
  /**
   * Returns the earliest time, in ms, at which the lane may start a request, as estimated at time `now`. Infinity while the gate of the
   * lane's bucket is closed.
   */
  opensAt(now: number): number;
  /**
   * Asks the gate of this lane's bucket to open. Called while the gate is closed and a request in the queue of another bucket needs a token
   * of this lane.
   */
  want(): void;
  /** Takes a token (the right to start one request) at `at`, in ms. The caller calls the returned function when the request ends. */
  begin(at: number): EndWork;
}

/** Function to call when a request ends, with the outcome. The request counts as ended at the time of the call. */
type EndWork = (outcome: WorkOutcome) => void;

/** Name of the property in an error's `context` that is true if the server does not count the failed request against the quota. */
export const COSTS_NOTHING = 'costsNothing';

/**
 * Rate limit of one quota: a {@link Limit} with rank 0, which creates further limits, called lanes, each with its own rank. All use the
 * tokens of this bucket; waiting requests with the lowest rank come first.
 */
export interface TokenBucket extends Limit {
  /**
   * Creates a lane: a limit with its own rank and share that uses the tokens of this bucket.
   *
   * @throws RangeError if `rank` or `share` is out of range.
   */
  lane(options: LaneOptions): LaneLimit;
  /** Counts request starts of other processes against the quota. `starts` are their times in ms, which may be in the future. */
  count(starts: readonly number[]): void;
  /** Number of request starts that count against the quota at present, from 0 to the capacity. */
  used(): number;
}

/**
 * Creates a limit that delays values so that at most `capacity` of them start within ANY period of `windowMs`.
 *
 * - A token becomes available again `windowMs` after it was taken. (A bucket that refills at a constant rate would allow almost twice
 *   `capacity` starts within a window.)
 * - Create one bucket per quota and share it. All pipes through it, and all resubscriptions (`retry`!), use the same tokens.
 * - The bucket has lanes (streams of requests). The starts of one lane within any window are at most its `share`. The lane with the lowest
 *   rank is served first, and within a lane first come, first served.
 * - Starts before the bucket was created, and those of other processes, count against the capacity only, because their lane is unknown.
 * - Values keep their order within a pipe. An error of the source is emitted at once, and values that still wait are dropped.
 * - A server counts when requests arrive, not when they start. For work that is run with {@link during}, the limit holds for arrivals, too,
 *   if no request arrives later than `lateMs` after it was given up. For values in a pipe, the bucket knows only the starts.
 * - Leave headroom: requests differ in how long they take to the server, and the limit is as exact as the scheduler's clock.
 *
 * @throws RangeError if `capacity` or `windowMs` is out of range.
 * @see https://github.com/tower-rs/tower/issues/842 - why a fixed window is not enough
 */
export function tokenBucket(options: TokenBucketOptions): TokenBucket {
  return sharedBucket(options);
}

/** A {@link TokenBucket} whose lanes can be combined with those of other buckets. */
export interface SharedBucket extends SharedLane, Omit<TokenBucket, keyof Limit> {
  lane(options: LaneOptions): SharedLane;
}

/** Creates a {@link tokenBucket} whose lanes can be combined with those of other buckets. */
export function sharedBucket(options: TokenBucketOptions): SharedBucket {
  const bucket = new Bucket(options);
  return Object.assign(bucket.lane({}), {
    lane: (lane: LaneOptions) => bucket.lane(lane),
    count: (starts: readonly number[]) => bucket.count(starts),
    used: () => bucket.used(),
  });
}

/**
 * Implementation of {@link TokenBucket}: the lanes with their waiting requests, the logs of request starts, and the timer for the next
 * start.
 */
class Bucket {
  readonly #options: TokenBucketOptions;
  readonly #scheduler: SchedulerLike;
  /** Lanes by rank, the lowest first. */
  readonly #lanes: Lane[] = [];
  /** Starts of requests that belong to no lane: those of earlier processes and of other processes. */
  readonly #unknown: StartLog;
  readonly #logs: StartLog[];
  #wakeUp: Subscription | undefined;
  #isDraining = false;

  constructor(options: TokenBucketOptions) {
    const { capacity, windowMs, starts = [], gate, scheduler = asyncScheduler } = options;
    requireInteger('capacity', capacity, Infinity);
    if (!Number.isFinite(windowMs) || windowMs <= 0) {
      throw new RangeError(`windowMs must be a finite number > 0, got ${windowMs}`);
    }
    this.#options = options;
    this.#scheduler = scheduler;
    this.#unknown = this.#newLog();
    this.#logs = [this.#unknown];
    const now = scheduler.now();
    for (const at of starts) this.#unknown.add(Math.min(at, now));
    gate?.opened$.subscribe(() => this.#drainAgain());
  }

  lane({ rank = 0, share = this.#options.capacity }: LaneOptions): SharedLane {
    if (!Number.isFinite(rank))
      throw new RangeError(
        `the rank of a lane of a token bucket must be a finite number, got ${rank}`,
      );
    if (typeof share === 'number') requireInteger('share', share, this.#options.capacity);
    const shareNow = typeof share === 'number' ? () => share : () => Math.max(1, share());
    const lane: Lane = { rank, share: shareNow, line: [], log: this.#newLog() };
    this.#lanes.push(lane);
    this.#lanes.sort((a, b) => a.rank - b.rank);
    this.#logs.push(lane.log);
    return this.#limit(lane);
  }

  count(starts: readonly number[]): void {
    for (const at of starts) this.#unknown.add(at);
  }

  used(): number {
    return Math.min(this.#options.capacity, this.#used(this.#scheduler.now()));
  }

  #newLog(): StartLog {
    return new StartLog(this.#options.windowMs, this.#options.lateMs);
  }

  #used(now: number): number {
    return this.#logs.reduce((sum, log) => sum + log.used(now), 0);
  }

  get #isAnyWaiting(): boolean {
    return this.#lanes.some(({ line }) => line.length > 0);
  }

  /** Earliest time at which the bucket has a token, in ms; `now` if it has one already. The shares of the lanes are not considered. */
  #opensAt(now: number): number {
    if (this.#used(now) < this.#options.capacity) return now;
    return Math.min(...this.#logs.map((log) => log.freesAt(now)));
  }

  /** Earliest time at which a lane may start a request, in ms, if the bucket has a token from `opens` (ms) on. */
  #startsAt({ log, share, rank }: Lane, now: number, opens: number): number {
    const at = log.used(now) < share() ? opens : Math.max(opens, log.freesAt(now));
    const { gate } = this.#options;
    return gate ? Math.max(at, gate.opensAt(now, rank)) : at;
  }

  /**
   * Returns the waiting request of `lane` that may start first. `index`: its index in the lane's queue. `at`: the earliest time of its
   * start in ms, Infinity if no request may start.
   *
   * @param opens Time from which the bucket has a token, in ms.
   */
  #firstOf(lane: Lane, now: number, opens: number) {
    const at = this.#startsAt(lane, now, opens);
    let first = { lane, index: 0, at: Infinity };
    for (const [index, { others }] of lane.line.entries()) {
      const startsAt = Math.max(at, ...others.map((other) => other.opensAt(now)));
      if (startsAt < first.at) first = { lane, index, at: startsAt };
      if (startsAt <= Math.max(at, now)) break;
    }
    return first;
  }

  /** Lets waiting requests start while tokens are available, and then sets the timer for the next start. */
  #drain(): void {
    const { onStart, gate } = this.#options;
    this.#wakeUp = undefined;
    this.#isDraining = true; // a start may request the next token synchronously; this loop serves that request as well
    for (;;) {
      const now = this.#scheduler.now();
      const waiting = this.#lanes.filter((lane) => lane.line.length > 0);
      if (waiting.length === 0) break;
      const opens = this.#opensAt(now);
      const firsts = waiting.map((lane) => this.#firstOf(lane, now, opens));
      const next = firsts.find(({ at }) => at <= now);
      if (!next) {
        const soonest = Math.min(...firsts.map(({ at }) => at));
        // The time is computed again when the timer fires, as Node's timers may fire up to 1 ms early.
        if (soonest === Infinity) gate?.want();
        else this.#wakeUp = this.#scheduler.schedule(() => this.#drain(), soonest - now);
        wantClosed(waiting, now);
        break;
      }
      const [{ start }] = next.lane.line.splice(next.index, 1) as [Waiting];
      start(now, onStart?.(now));
    }
    this.#isDraining = false;
  }

  #drainAgain(): void {
    if (this.#isDraining) return;
    this.#wakeUp?.unsubscribe();
    this.#drain();
  }

  /**
   * Returns an observable that waits until `lane` and all of `others` (lanes of other buckets) allow a start, then calls `take` with the
   * time of the start in ms, and emits its result.
   */
  #token<T>(
    lane: Lane,
    others: readonly SharedLimit[],
    take: (at: number, onEnd: OnEnd) => T,
  ): Observable<T> {
    return new Observable<T>((subscriber) => {
      const start = (at: number, onEnd: OnEnd) => {
        subscriber.next(take(at, onEnd));
        subscriber.complete();
      };
      const waiting = { start, others };
      lane.line.push(waiting);
      // Otherwise the timer is set for this lane already, unless the others in the line wait for other buckets.
      const isFirst = lane.line.length === 1 || others.length > 0;
      if (isFirst || !this.#wakeUp) this.#drainAgain();
      return () => {
        const index = lane.line.indexOf(waiting);
        if (index >= 0) lane.line.splice(index, 1);
        if (this.#isAnyWaiting) return;
        this.#wakeUp?.unsubscribe();
        this.#wakeUp = undefined;
      };
    });
  }

  /**
   * Takes a token of `lane` for a request that starts at `at` (ms). Returns a function to call with the outcome when the request ends; that
   * function calls `onEnd`.
   */
  #begin(lane: Lane, at: number, onEnd: OnEnd): EndWork {
    const endStart = lane.log.begin(at);
    return (outcome) => {
      const end = this.#scheduler.now();
      endStart(end, outcome);
      onEnd?.(end, outcome !== 'failed');
      if (this.#isAnyWaiting) this.#drainAgain(); // the end may show that other starts have stopped counting
    };
  }

  #limit(lane: Lane): SharedLane {
    const { onStart, gate } = this.#options;
    return Object.assign(this.#limitOf(lane, []), {
      used: () => lane.log.used(this.#scheduler.now()),
      together: (others: readonly SharedLimit[]) => this.#limitOf(lane, others),
      opensAt: (now: number) => this.#startsAt(lane, now, this.#opensAt(now)),
      want: () => gate?.want(),
      begin: (at: number) => this.#begin(lane, at, onStart?.(at)),
    });
  }

  #limitOf(lane: Lane, others: readonly SharedLimit[]): Limit {
    const started$ = this.#token(lane, others, (at) => {
      lane.log.add(at);
      for (const other of others) other.begin(at)('failed');
    });
    const each = <T>(source: Observable<T>) =>
      source.pipe(concatMap((value) => started$.pipe(map(() => value))));
    const begun$ = this.#token(lane, others, (at, onEnd) => {
      const ends = [...others.map((other) => other.begin(at)), this.#begin(lane, at, onEnd)];
      return (outcome: WorkOutcome) => ends.forEach((end) => end(outcome));
    });
    const held = <T>(work: Observable<T>) =>
      begun$.pipe(
        switchMap((end) => {
          let outcome: WorkOutcome = 'failed';
          return work.pipe(
            tap({
              complete: () => (outcome = 'answered'),
              error: (error: unknown) => (outcome = isFree(error) ? 'free' : 'failed'),
            }),
            finalize(() => end(outcome)),
          );
        }),
      );
    return Object.assign(each, { during: held });
  }
}

/**
 * Asks the closed gates of other buckets to open, if a request queued in one of the lanes `waiting` also needs a token of such a bucket.
 */
function wantClosed(waiting: readonly Lane[], now: number): void {
  for (const { line } of waiting) {
    for (const { others } of line) {
      for (const other of others) if (other.opensAt(now) === Infinity) other.want();
    }
  }
}

function isFree(error: unknown): boolean {
  return error instanceof CellarstreamError && error.context[COSTS_NOTHING] === true;
}

/** A queued request, which waits until the quota allows it to start. */
interface Waiting {
  /** Starts the request. `at` is the time of the start in ms; `onEnd` is to be called when the request has ended. */
  readonly start: (at: number, onEnd: OnEnd) => void;
  /** Lanes of the other quotas that the request counts against. It starts only when this bucket and all these lanes allow it. */
  readonly others: readonly SharedLimit[];
}

interface Lane {
  readonly rank: number;
  readonly share: () => number;
  /** Queued requests, the oldest first. */
  readonly line: Waiting[];
  readonly log: StartLog;
}

/** Function returned by {@link TokenBucketOptions.onStart}, to be called when the started work ends; undefined if there is none. */
type OnEnd = ReturnType<NonNullable<TokenBucketOptions['onStart']>>;

function requireInteger(name: string, value: number, most: number): void {
  if (Number.isInteger(value) && value >= 1 && value <= most) return;
  const range = most === Infinity ? '>= 1' : `from 1 to ${most}`;
  throw new RangeError(`${name} must be an integer ${range}, got ${value}`);
}

/**
 * Returns a limit that applies the limit `usual` until `haste$` emits, and the limit `hurried` from then on. A request that still waits in
 * `usual` then waits in `hurried` instead. Work that has started in `usual` continues to count there.
 *
 * @param haste$ Emits when work becomes urgent. If work is urgent already, it emits on subscription.
 */
export function urgentLimit(usual: Limit, hurried: Limit, haste$: Observable<unknown>): Limit {
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
