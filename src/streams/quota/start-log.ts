// Logs the starts of one lane of a quota, and computes how many of them count at a given time.

/** An answered request whose latency was measured. `at` is the time when its response arrived, `took` its latency, both in ms. */
interface AnsweredStart extends Timed {
  readonly took: number;
}

/**
 * How a request ended. `answered`: with a usable response. `failed`: without a response, or with one that refuses the request, such as a
 * 429. `free`: with a response to a request that the server does not count against the quota.
 */
export type WorkOutcome = 'answered' | 'failed' | 'free';

/** Minimum number of measured latencies for an estimate of the minimum latency. With fewer, the estimate is 0. */
const MIN_SAMPLES = 10;
/**
 * Number of newest latencies that are retained for the estimate even if they are older than the quota's window. If it is too small, all of
 * them may be long, and the minimum latency is overestimated.
 */
const MAX_SAMPLES = 100;
/**
 * Safety margin in the estimate of the minimum latency, as a multiple of the difference between the mean and the shortest latency. If it is
 * too small, the server may count more requests than allowed. If it is too large, quota is left unused.
 */
const LATENCY_MARGIN = 2;

/**
 * How often per window to check, at most, if a request in flight has ended. Matters only if responses take about a window or longer. Too
 * large: needless timers. Too small: requests that need tokens of this bucket and of another one may start late.
 */
const IN_FLIGHT_CHECKS = 10;

/**
 * Log of the request starts of one lane of a quota. A start is removed once it cannot count against the quota any more.
 *
 * A server counts a request for `windowMs` from its arrival. The time of the arrival is not known here, so a start counts until `windowMs`
 * after the latest possible arrival of its request:
 *
 * - For a request in flight: not known yet, so its start counts.
 * - For a request that failed or was given up: `lateMs` after its end, because it may still be on its way to the server.
 * - For an answered request: `end`, when the response arrived. Once a request that was sent after this `end` has been answered as well, the
 *   latest possible arrival is the earlier time `end - early`.
 *
 * `early` is a lower bound of the time from a request's arrival at the server to the arrival of its response here:
 *
 * - The formula is `early = max(0, least - margin * (mean - least))`. With fewer than `MIN_SAMPLES` responses, `early` is 0.
 * - `least` is the shortest and `mean` the average latency of the responses of the last window, or of the last `MAX_SAMPLES` responses if
 *   the window has fewer.
 * - `margin` is `LATENCY_MARGIN` for `MAX_SAMPLES` or more responses, and larger for fewer. Latencies that vary a lot may all be above the
 *   true minimum.
 *
 * Why the server never counts too many requests: consider two requests. The second one starts as soon as the start of the first has ceased
 * to count, `windowMs` after `end - early`. Let
 *
 * - `there` be the time from the start of the first request to its arrival,
 * - `back` the time from the arrival of the first request to its end,
 * - `there'` the time from the start of the second request to its arrival.
 *
 * The first request arrives at `end - back`, and the second at `end - early + windowMs + there'`. The arrivals are
 * `windowMs + there' + back - early` apart. The server counts both requests in one window only if `early > there' + back`. Three cases:
 *
 * - *Responses take long, and their latency changes*: `early` is at most the latency of the first request, `there + back`. So the arrivals
 *   are at least `windowMs - (there - there')` apart. For the difference `there - there'`, `windowMs` needs headroom.
 * - *Some requests take long to reach the server* (the network stalls, for example): this delay of the first request makes its `end` later,
 *   too. `there' + back` is the latency of an undisturbed request, which `early` does not exceed once one undisturbed request within the
 *   window has been answered. As a whole burst may be disturbed, a start counts from `end - early` only after a request that was sent after
 *   its `end` has been answered.
 * - *All measured requests took long to reach the server, and then they become fast*: until a response shows the change, starts are granted
 *   too early, by as much as the way to the server has become shorter. One response is enough: `early` is computed whenever it is needed,
 *   so all starts count for longer at once.
 *
 * Because `early` may decrease at any time, a start is retained for one window after the end of its request, even if it has ceased to
 * count.
 */
export class StartLog {
  readonly #windowMs: number;
  readonly #lateMs: number;
  /** Starts of requests in flight, the oldest first. */
  readonly #underWay = new Set<Timed>();
  /** Answered requests, ordered by `at`, the arrival time of the response. */
  readonly #answered = new TimeLine<Timed>();
  /** Answered requests whose latencies are used for the estimate of the minimum latency. */
  readonly #measured = new TimeLine<AnsweredStart>();
  /** Monotonic queue over `#measured`: the requests with a lower latency than all later ones. The first has the lowest latency of all. */
  readonly #quickest = new TimeLine<AnsweredStart>();
  /**
   * Request starts that count for one window from a fixed time, whatever the latencies are: those of failed requests, for example, and
   * those added by {@link StartLog.add}.
   */
  readonly #others = new TimeLine<Timed>();
  /** Sum of the latencies in `#measured`, in ms. */
  #tookTogether = 0;
  /**
   * Send time, in ms, of the answered request that was sent last. The start of a request whose response arrived by this time counts for one
   * window from `end - early` ({@link StartLog}); that of any other answered request counts from `end`.
   */
  #confirmedUntil = -Infinity;

  /**
   * @param windowMs Length of the quota's window, in ms.
   * @param lateMs A request that failed or was given up may still arrive at the server up to this long afterwards, in ms.
   */
  constructor(windowMs: number, lateMs = 0) {
    this.#windowMs = windowMs;
    this.#lateMs = lateMs;
  }

  /** Adds the start of a request that counts from `at` (ms) on for one window, regardless of when the request ends. */
  add(at: number): void {
    this.#others.add({ at });
  }

  /**
   * Adds the start of a request that is sent at `at` (ms). Returns a function to be called when the request ends, with the time and the
   * outcome. The outcome `free`, a request that the server did not count, removes the start.
   */
  begin(at: number): (end: number, outcome: WorkOutcome) => void {
    const start = { at };
    this.#underWay.add(start);
    return (end, outcome) => {
      this.#underWay.delete(start);
      if (outcome === 'free') return;
      const isAnswered = outcome === 'answered';
      // Not measured: a duration of 0, as the request was never sent, and any duration after the clock was set back.
      const isMeasured = end > at && end >= (this.#answered.last?.at ?? end);
      if (isAnswered && isMeasured) this.#answer(end, end - at);
      else this.#others.add({ at: end + this.#lateMs }); // the request may still be on its way to the server
    };
  }

  /** Number of request starts of this lane that count against the quota at `now` (ms). */
  used(now: number): number {
    if (this.#isEmpty) return 0;
    this.#forget(now);
    return this.#underWay.size + this.#others.size + this.#answered.size - this.#over(now);
  }

  /**
   * Returns the earliest time at which one of the logged starts may cease to count against the quota, as estimated at time `now`, in ms.
   * Infinity if no start counts.
   */
  freesAt(now: number): number {
    if (this.#isEmpty) return Infinity;
    this.#forget(now);
    const before = this.#early();
    const { at: began = Infinity } = this.#underWay.values().next().value ?? {};
    const { at: ended = Infinity } = this.#others.first ?? {};
    const { at: answeredAt = Infinity } = this.#answered.at(this.#over(now)) ?? {};
    const span = answeredAt <= this.#confirmedUntil ? this.#windowMs - before : this.#windowMs;
    // A request in flight ends now at the earliest.
    const endsAt = began === Infinity ? Infinity : Math.max(Math.min(began, now), now - before);
    // In a short window, responses may take longer than the window: then the start ends to count when its response arrives.
    const free = Math.max(endsAt + this.#windowMs, now + this.#windowMs / IN_FLIGHT_CHECKS);
    return Math.min(free, ended + this.#windowMs, answeredAt + span);
  }

  /** Whether no starts of requests are logged, as for a lane (stream of requests) without requests lately. */
  get #isEmpty(): boolean {
    return this.#underWay.size + this.#others.size + this.#answered.size === 0;
  }

  /** Number of starts in `#answered` that have ceased to count against the quota at `now` (ms). */
  #over(now: number): number {
    const early = this.#answered.aged(this.#windowMs - this.#early(), now);
    return Math.min(early, this.#answered.aged(0, this.#confirmedUntil));
  }

  /**
   * Returns a lower bound of the time from a request's arrival at the server to the end of its response, in ms; 0 with too few
   * measurements.
   */
  #early(): number {
    const count = this.#measured.size;
    if (count < MIN_SAMPLES) return 0;
    const least = this.#quickest.first!.took;
    const margin = LATENCY_MARGIN * Math.max(1, MAX_SAMPLES / count);
    return Math.max(0, Math.floor(least - margin * (this.#tookTogether / count - least)));
  }

  #forget(now: number): void {
    for (let k = this.#others.aged(this.#windowMs, now); k > 0; k--) this.#others.dropFirst();
    for (let k = this.#answered.aged(this.#windowMs, now); k > 0; k--) this.#answered.dropFirst();
    const spare = Math.min(
      this.#measured.aged(this.#windowMs, now),
      this.#measured.size - MAX_SAMPLES,
    );
    for (let k = spare; k > 0; k--) {
      const old = this.#measured.dropFirst()!;
      if (this.#quickest.first === old) this.#quickest.dropFirst();
      this.#tookTogether -= old.took;
    }
  }

  #answer(at: number, took: number): void {
    const one = { at, took };
    while (took <= (this.#quickest.last?.took ?? -1)) this.#quickest.dropLast();
    this.#quickest.add(one);
    this.#measured.add(one);
    this.#answered.add(one);
    this.#tookTogether += took;
    this.#confirmedUntil = Math.max(this.#confirmedUntil, at - took);
  }
}

interface Timed {
  readonly at: number;
}

/** Minimum number of items dropped from the front of a {@link TimeLine} before its array is replaced by one without them. */
const LEAST_DROPPED = 1_000;

/**
 * Queue of items ordered by time. It is a class and not a closure to save memory: a fleet has tens of thousands of these queues, most of
 * them empty.
 */
class TimeLine<T extends Timed> {
  #items: T[] = [];
  #begin = 0;

  get size(): number {
    return this.#items.length - this.#begin;
  }

  get first(): T | undefined {
    return this.#items[this.#begin];
  }

  get last(): T | undefined {
    return this.size > 0 ? this.#items[this.#items.length - 1] : undefined;
  }

  at(index: number): T | undefined {
    return this.#items[this.#begin + index];
  }

  /** Inserts an item after those with the same or an earlier time. */
  add(item: T): void {
    if ((this.last?.at ?? -Infinity) <= item.at) this.#items.push(item);
    else this.#items.splice(this.#end(0, item.at), 0, item); // the clock was set back
  }

  dropFirst(): T | undefined {
    const item = this.first;
    if (item === undefined) return undefined;
    this.#begin += 1;
    if (this.#begin >= LEAST_DROPPED && 2 * this.#begin >= this.#items.length) {
      this.#items = this.#items.slice(this.#begin);
      this.#begin = 0;
    }
    return item;
  }

  dropLast(): T | undefined {
    return this.size > 0 ? this.#items.pop() : undefined;
  }

  /** Number of items that are at least `spanMs` old at `now`. */
  aged(spanMs: number, now: number): number {
    return this.#end(spanMs, now) - this.#begin;
  }

  /** Index of the first item that is less than `spanMs` old at `now`. */
  #end(spanMs: number, now: number): number {
    let [low, high] = [this.#begin, this.#items.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#items[middle]!.at + spanMs <= now) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
