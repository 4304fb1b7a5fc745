// The starts of one lane of a quota, and from when on each of them counts.

interface Answered extends Timed {
  readonly took: number;
}

/** Answers that have to be there before they say how long one takes. */
const ENOUGH = 10;
/** So many are kept, however small the quota: of few all may have been held up. */
const MANY = 100;
/** By how many times that which answers take longer on the average the quickest of many may be slower than one can be. */
const MARGIN = 2;

/**
 * The starts of one lane of a quota, for as long as they may count.
 *
 * A start counts for `windowMs` from the latest time at which it can have arrived at the server.
 *
 * That is before its end: an answer takes time to be made and to come back. At least how long? The quickest of the answers of a window says
 * it, or, where there are fewer, of the last {@link MANY}: `least`. Less {@link MARGIN} times that by which they take longer on the
 * average, as the quickest of some that vary much need not be as quick as one can be: more times where there are fewer, 20 where there are
 * 10. So what was answered counts from `end - early`, with `early = least - MARGIN * (mean - least)` or 0, as soon as something is answered
 * that began after its end; all else from its end.
 *
 * Why this is safe. Let a request be under way `there` to the server, and `back` from its arrival to the end. Another one that starts
 * `windowMs` after it began to count arrives `windowMs + there' + back - early` after it, where `there'` is the other's: too early only if
 * `early > there' + back`.
 *
 * - *However long answers take to be made and to come back*, and however that changes: `early` is not more than this answer itself took,
 *   `there + back`. So arrivals are as far apart as starts, give or take the difference of two ways there, which windows need headroom for.
 * - *A way there that takes long at times* (a stall of the network, a connection being made, a process that stood still): `there` is in the
 *   end, and `there' + back` is what an undisturbed answer takes. One in the window is enough. A burst may be disturbed as a whole; so an
 *   answer is needed that began after the end, and went the way there as it was then.
 * - *A way there that was long for all of these answers, and then is short*: until an answer shows it starts are made too early by the
 *   difference. One is enough: `early` is worked out whenever it is needed, so all starts count later at once. The same of a server that
 *   becomes quicker while the way stalls.
 *
 * So nothing is forgotten before a window has passed since its end.
 */
export class StartLog {
  readonly #windowMs: number;
  readonly #lateMs: number;
  readonly #underWay = new Set<Timed>(); // a Set keeps the order of insertion: the oldest is its first
  readonly #answered = new TimeLine<Timed>();
  /** Answers that say how long one takes. */
  readonly #measured = new TimeLine<Answered>();
  /** Of the measured those that no later one was as quick as: the first was the quickest of all. */
  readonly #quickest = new TimeLine<Answered>();
  readonly #others = new TimeLine<Timed>();
  #tookTogether = 0;
  /** When the newest of the answered began: those that had ended by then may count from earlier. */
  #confirmedUntil = -Infinity;

  /** @param lateMs By how much what failed or was given up may arrive later than its end. */
  constructor(windowMs: number, lateMs = 0) {
    this.#windowMs = windowMs;
    this.#lateMs = lateMs;
  }

  /** A start that counts from `at` on, and is over. */
  add(at: number): void {
    this.#others.add({ at });
  }

  /**
   * A start that is under way from `at` on; to be told its end, and whether that was an answer: what
   * failed or was given up says nothing of how long an answer takes.
   */
  begin(at: number): (end: number, isAnswered: boolean) => void {
    const start = { at };
    this.#underWay.add(start);
    return (end, isAnswered) => {
      this.#underWay.delete(start);
      // What took no time was never asked; and by a clock that was set back nothing can be measured.
      const isMeasured = end > at && end >= (this.#answered.last?.at ?? end);
      if (isAnswered && isMeasured) this.#answer(end, end - at);
      else this.#others.add({ at: end + this.#lateMs }); // it may still be on its way
    };
  }

  /** How many count. */
  used(now: number): number {
    if (this.#isEmpty) return 0;
    this.#forget(now);
    return this.#underWay.size + this.#others.size + this.#answered.size - this.#over(now);
  }

  /** When one of them does no longer, as far as that is known: Infinity if none counts. */
  freesAt(now: number): number {
    if (this.#isEmpty) return Infinity;
    this.#forget(now);
    const before = this.#early();
    const { at: began = Infinity } = this.#underWay.values().next().value ?? {};
    const { at: ended = Infinity } = this.#others.first ?? {};
    const { at: answeredAt = Infinity } = this.#answered.at(this.#over(now)) ?? {};
    const span = answeredAt <= this.#confirmedUntil ? this.#windowMs - before : this.#windowMs;
    // One that is under way ends now at the earliest.
    const endsAt = began === Infinity ? Infinity : Math.max(Math.min(began, now), now - before);
    return Math.min(endsAt + this.#windowMs, ended + this.#windowMs, answeredAt + span);
  }

  /** As most lanes are, most of the time. */
  get #isEmpty(): boolean {
    return this.#underWay.size + this.#others.size + this.#answered.size === 0;
  }

  /** How many of the answered count no longer. */
  #over(now: number): number {
    const early = this.#answered.aged(this.#windowMs - this.#early(), now);
    return Math.min(early, this.#answered.aged(0, this.#confirmedUntil));
  }

  #early(): number {
    const count = this.#measured.size;
    if (count < ENOUGH) return 0;
    const least = this.#quickest.first!.took;
    const margin = MARGIN * Math.max(1, MANY / count);
    return Math.max(0, Math.floor(least - margin * (this.#tookTogether / count - least)));
  }

  #forget(now: number): void {
    for (let k = this.#others.aged(this.#windowMs, now); k > 0; k--) this.#others.dropFirst();
    for (let k = this.#answered.aged(this.#windowMs, now); k > 0; k--) this.#answered.dropFirst();
    const spare = Math.min(this.#measured.aged(this.#windowMs, now), this.#measured.size - MANY);
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

/** Something that happened at a time, ms. */
interface Timed {
  readonly at: number;
}

/** Places of dropped items that are kept at least, so that moving the others costs next to nothing. */
const LEAST_DROPPED = 1_000;

/**
 * Things in the order of their times. Whatever comes in that order is added and dropped at no cost that grows.
 *
 * A class: a fleet has tens of thousands of these lines, most of them empty.
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

  /** By its place, from 0: the earliest. */
  at(place: number): T | undefined {
    return this.#items[this.#begin + place];
  }

  /** Behind all of the same time. */
  add(item: T): void {
    if ((this.last?.at ?? -Infinity) <= item.at) this.#items.push(item);
    else this.#items.splice(this.#end(0, item.at), 0, item); // a clock was set back
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

  /** How many are `spanMs` old or older. */
  aged(spanMs: number, now: number): number {
    return this.#end(spanMs, now) - this.#begin;
  }

  /** The first place, from the earliest on, of an item that is not `spanMs` old. */
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
