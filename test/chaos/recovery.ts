import type { Read } from '../integration/support/topic-reader.ts';

/** One fault, and when: ms since the epoch. */
export interface Round {
  readonly fault: string;
  readonly struckAt: number;
  readonly liftedAt: number;
  /** When the topics said what the API says. */
  readonly agreedAt: number;
}

/** Of the rounds of a fault, s. */
export interface Times {
  readonly seconds: readonly number[];
  readonly mean: number;
  readonly median: number;
  readonly worst: number;
}

export interface Recovery {
  readonly fault: string;
  readonly rounds: number;
  /** From the beginning of the fault to the first event of a change that was made after it. */
  readonly fromBegin: Times;
  /** From the end of the fault to the first event of a change that was made after it. */
  readonly fromEnd: Times;
  /** The longest that no event was published, between the fault's beginning and the agreement after it. */
  readonly silence: Times;
}

/** How long it took with each kind of fault until changes came through again. */
export function recoveries(rounds: readonly Round[], events: readonly Read[]): Recovery[] {
  const changes = events.flatMap(({ value, timestamp }) => {
    const after = value?.after as { updated_at?: string } | null | undefined;
    return after?.updated_at ? [{ changedAt: Date.parse(after.updated_at), timestamp }] : [];
  });
  const published = changes.map(({ timestamp }) => timestamp).sort((a, b) => a - b);
  const firstAfter = (at: number): number[] => {
    const times = changes.filter(({ changedAt }) => changedAt >= at);
    if (times.length === 0) return [];
    return [times.reduce((least, { timestamp }) => Math.min(least, timestamp), Infinity) - at];
  };
  const silenceIn = ({ struckAt, agreedAt }: Round): number[] => {
    // One event at least: the next, where none came in time.
    const next = published.find((at) => at >= struckAt) ?? agreedAt;
    const within = published.filter((at) => at >= struckAt && at <= Math.max(agreedAt, next));
    const begin = published.findLast((at) => at < struckAt) ?? struckAt;
    const gaps = [begin, ...within].map((at, k) => (within[k] ?? at) - at);
    return [Math.max(0, ...gaps)];
  };
  return [...new Set(rounds.map(({ fault }) => fault))].map((fault) => {
    const those = rounds.filter((round) => round.fault === fault);
    return {
      fault,
      rounds: those.length,
      fromBegin: times(those.flatMap(({ struckAt }) => firstAfter(struckAt))),
      fromEnd: times(those.flatMap(({ liftedAt }) => firstAfter(liftedAt))),
      silence: times(those.flatMap(silenceIn)),
    };
  });
}

/** The same as a row of a table for people. */
export function rowOf({ fault, rounds, fromBegin, fromEnd, silence }: Recovery) {
  return {
    fault,
    rounds,
    'from begin: mean': fromBegin.mean,
    worst: fromBegin.worst,
    'from end: mean': fromEnd.mean,
    median: fromEnd.median,
    'worst from end': fromEnd.worst,
    'longest silence': silence.worst,
  };
}

function times(ms: readonly number[]): Times {
  const seconds = ms.map((each) => each / 1_000);
  const sorted = [...seconds].sort((a, b) => a - b);
  const sum = seconds.reduce((total, each) => total + each, 0);
  return {
    seconds,
    mean: Number((sum / seconds.length).toFixed(2)),
    median: sorted[Math.floor(sorted.length / 2)] ?? NaN,
    worst: sorted.at(-1) ?? NaN,
  };
}
