import { timeLine } from './time-line.ts';
import type { Timed } from './time-line.ts';

/** The starts of one lane of a quota, for as long as they may count. */
export interface StartLog {
  /** One that counts from `at` on, and is over. */
  readonly add: (at: number) => void;
  /**
   * One that is under way from `at` on; to be told its end, and whether that was an answer: what
   * failed or was given up says nothing of how long an answer takes.
   */
  readonly begin: (at: number) => (end: number, isAnswered: boolean) => void;
  /** How many count. */
  readonly used: (now: number) => number;
  /** When one of them does no longer, as far as that is known: Infinity if none counts. */
  readonly freesAt: (now: number) => number;
}

/** One that was answered at `at`. */
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
 * A start counts for `windowMs` from the latest time at which it can have arrived at the server.
 *
 * That is before its end: an answer takes time to be made and to come back. At least how long? The
 * quickest of the answers of a window says it, or, where there are fewer, of the last {@link MANY}: `least`. Less
 * {@link MARGIN} times that by which they take longer on the average, as the quickest of some that vary
 * much need not be as quick as one can be: more times where there are fewer, 20 where there are 10. So what was answered
 * counts from `end - early`, with `early = least - MARGIN * (mean - least)` or 0, as soon as something is answered that began after its end; all else from its end.
 *
 * Why this is safe. Let a request be under way `there` to the server, and `back` from its arrival to the
 * end. Another one that starts `windowMs` after it began to count arrives `windowMs + there' + back -
 * early` after it, where `there'` is the other's: too early only if `early > there' + back`.
 *
 * - *However long answers take to be made and to come back*, and however that changes: `early` is
 *   not more than this answer itself took, `there + back`. So arrivals are as far apart as starts,
 *   give or take the difference of two ways there, which windows need headroom for.
 * - *A way there that takes long at times* (a stall of the network, a connection being made, a process
 *   that stood still): `there` is in the end, and `there' + back` is what an undisturbed answer takes.
 *   One in the window is enough. A burst may be disturbed as a whole; so an answer is needed that
 *   began after the end, and went the way there as it was then.
 * - *A way there that was long for all of these answers, and then is short*: until an answer shows it starts
 *   are made too early by the difference. One is enough: `early` is worked out whenever it is needed, so
 *   all starts count later at once. The same of a server that becomes quicker while the way stalls.
 *
 * So nothing is forgotten before a window has passed since its end.
 *
 * @param lateMs By how much what failed or was given up may arrive later than its end.
 */
export function startLog(windowMs: number, lateMs = 0): StartLog {
  const underWay = new Set<Timed>(); // a Set keeps the order of insertion: the oldest is its first
  const answered = timeLine<Timed>();
  /** Answers that say how long one takes. */
  const measured = timeLine<Answered>();
  /** Of the measured those that no later one was as quick as: the first was the quickest of all. */
  const quickest = timeLine<Answered>();
  const others = timeLine<Timed>();
  let tookTogether = 0;
  /** When the newest of the answered began: those that had ended by then may count from earlier. */
  let confirmedUntil = -Infinity;

  /** How many of the answered count no longer. */
  const over = (now: number) =>
    Math.min(answered.aged(windowMs - early(), now), answered.aged(0, confirmedUntil));
  const early = (): number => {
    const count = measured.size();
    if (count < ENOUGH) return 0;
    const least = quickest.first()!.took;
    const margin = MARGIN * Math.max(1, MANY / count);
    return Math.max(0, Math.floor(least - margin * (tookTogether / count - least)));
  };
  const forget = (now: number): void => {
    for (let k = others.aged(windowMs, now); k > 0; k--) others.dropFirst();
    for (let k = answered.aged(windowMs, now); k > 0; k--) answered.dropFirst();
    const spare = Math.min(measured.aged(windowMs, now), measured.size() - MANY);
    for (let k = spare; k > 0; k--) {
      const old = measured.dropFirst()!;
      if (quickest.first() === old) quickest.dropFirst();
      tookTogether -= old.took;
    }
  };
  const answer = (at: number, took: number): void => {
    const one = { at, took };
    while (took <= (quickest.last()?.took ?? -1)) quickest.dropLast();
    quickest.add(one);
    measured.add(one);
    answered.add(one);
    tookTogether += took;
    confirmedUntil = Math.max(confirmedUntil, at - took);
  };

  return {
    add: (at) => others.add({ at }),
    begin: (at) => {
      const start = { at };
      underWay.add(start);
      return (end, isAnswered) => {
        underWay.delete(start);
        // What took no time was never asked; and by a clock that was set back nothing can be measured.
        const isMeasured = end > at && end >= (answered.last()?.at ?? end);
        if (isAnswered && isMeasured) answer(end, end - at);
        else others.add({ at: end + lateMs }); // it may still be on its way
      };
    },
    used: (now) => {
      forget(now);
      return underWay.size + others.size() + answered.size() - over(now);
    },
    freesAt: (now) => {
      forget(now);
      const before = early();
      const { at: began = Infinity } = underWay.values().next().value ?? {};
      const { at: ended = Infinity } = others.first() ?? {};
      const { at: answeredAt = Infinity } = answered.at(over(now)) ?? {};
      const span = answeredAt <= confirmedUntil ? windowMs - before : windowMs;
      // One that is under way ends now at the earliest.
      const endsAt = began === Infinity ? Infinity : Math.max(Math.min(began, now), now - before);
      return Math.min(endsAt + windowMs, ended + windowMs, answeredAt + span);
    },
  };
}
