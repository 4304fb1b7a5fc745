/** How old the content of an answer may be. */
export interface AnswerAge {
  /** Earliest local time, in ms, at which the server can have read the content: when the request was sent, less `staleMs`. */
  readonly asOf: number;
  /** How long before its request the answer was made, in ms, as its headers show; 0 for an ordinary answer. */
  readonly staleMs: number;
}

/**
 * Longest lag of a read replica, in ms, that may pass unnoticed, because nothing in its answers tells of it. If it is too small, a lagging
 * replica makes false events; if it is too large, a record that really went back to an earlier state is published that much later.
 */
export const MAX_LAG_MS = 10_000;

/** Whether an answer comes from a cache: it is older than a replica may lag. */
export function isStale(age: AnswerAge | undefined): boolean {
  return age !== undefined && age.staleMs > MAX_LAG_MS;
}

/** The age of an answer that is made of several: as old as the oldest of them. */
export function oldestOf(ages: readonly (AnswerAge | undefined)[]): AnswerAge | undefined {
  const known = ages.filter((age) => age !== undefined);
  if (known.length === 0) return undefined;
  return {
    asOf: Math.min(...known.map(({ asOf }) => asOf)),
    staleMs: Math.max(...known.map(({ staleMs }) => staleMs)),
  };
}

/** The parts of an answer that tell its age. */
export interface DatedAnswer {
  /** When its request was sent, local ms. */
  readonly askedAt: number;
  readonly elapsedMs: number;
  /** The `Date` header, ms since the epoch; undefined when there is none. */
  readonly date: number | undefined;
  /** The `Age` header, ms; undefined when there is none that is plausible. */
  readonly ageMs: number | undefined;
}

/** Tells the ages of the answers of one API. */
export interface AnswerAges {
  /** The age of an answer, by its headers and those of earlier answers. */
  readonly of: (answer: DatedAnswer) => AnswerAge & {
    /** How far the answer's `Date` is behind those of other answers, ms; 0 if it is not. */
    readonly dateLagMs: number;
  };
}

/** `Date` is cut to the second. */
const DATE_STEP_MS = 1_000;
/** Backends whose clocks are behind that of another one: most of them that are told apart. */
const MAX_CLOCKS = 4;
/** Two answers of one clock differ by no more than this, ms: latency, and the step of `Date`. */
const SAME_CLOCK_MS = 3_000;
/** How long, in ms, and in how many answers a clock has to be behind by the same time before it counts as one. */
const STEADY_MS = 30_000;
const STEADY_ANSWERS = 5;

/**
 * Ages by `Age`, and by `Date`: a cache passes on the `Date` of the origin, so the `Date` of a cached answer is behind that of others.
 * A backend whose clock is behind, or a clock that was set back, shows in the same way at first. But such a clock goes on, by the same
 * time behind in each answer; it is known after {@link STEADY_MS}, and its answers are not stale from then on.
 */
export function answerAges(): AnswerAges {
  /** The server's clock ahead of the local one at least, ms; by the most advanced of its clocks. */
  let ahead = -Infinity;
  /** Clocks behind that one, the least recently met first. */
  const clocks: { readonly ahead: number; readonly since: number; answers: number }[] = [];

  const isOfSteadyClock = (most: number, now: number): boolean => {
    const place = clocks.findIndex((clock) => Math.abs(clock.ahead - most) <= SAME_CLOCK_MS);
    const [known] = place < 0 ? [] : clocks.splice(place, 1);
    const clock = known ?? { ahead: most, since: now, answers: 0 };
    clock.answers += 1;
    clocks.push(clock);
    if (clocks.length > MAX_CLOCKS) clocks.shift();
    return clock.answers >= STEADY_ANSWERS && now - clock.since >= STEADY_MS;
  };
  const dateLag = ({ askedAt, elapsedMs, date }: DatedAnswer): number => {
    if (date === undefined) return 0;
    const most = date + DATE_STEP_MS - askedAt;
    ahead = Math.max(ahead, date - elapsedMs - askedAt);
    const lag = ahead - most;
    return lag <= MAX_LAG_MS || isOfSteadyClock(most, askedAt) ? 0 : lag;
  };
  return {
    of: (answer) => {
      const dateLagMs = dateLag(answer);
      const staleMs = Math.max(answer.ageMs ?? 0, dateLagMs);
      return { asOf: answer.askedAt - staleMs, staleMs, dateLagMs };
    },
  };
}
