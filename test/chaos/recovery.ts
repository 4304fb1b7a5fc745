import type { Read } from '../integration/support/topic-reader.ts';

/** One fault, and when: ms since the epoch. */
export interface Round {
  readonly fault: string;
  readonly struckAt: number;
  readonly liftedAt: number;
  /** When the topics said what the API says. */
  readonly agreedAt: number;
}

export interface Recovery {
  readonly fault: string;
  readonly rounds: number;
  /** From the end of the fault to the first event of a change that was made after it, s. */
  readonly seconds: readonly number[];
  readonly median: number;
  readonly worst: number;
}

/** How long it took after each kind of fault until changes came through again. */
export function recoveries(rounds: readonly Round[], events: readonly Read[]): Recovery[] {
  const changes = events.flatMap(({ value, timestamp }) => {
    const after = value?.after as { updated_at?: string } | null | undefined;
    return after?.updated_at ? [{ changedAt: Date.parse(after.updated_at), timestamp }] : [];
  });
  const taken = new Map<string, number[]>();
  for (const { fault, liftedAt } of rounds) {
    const times = changes.flatMap(({ changedAt, timestamp }) =>
      changedAt >= liftedAt ? [timestamp] : [],
    );
    if (times.length === 0) continue;
    const first = times.reduce((least, at) => Math.min(least, at));
    taken.set(fault, [...(taken.get(fault) ?? []), (first - liftedAt) / 1_000]);
  }
  return [...taken].map(([fault, seconds]) => {
    const sorted = [...seconds].sort((a, b) => a - b);
    const median = sorted[Math.floor(sorted.length / 2)]!;
    return { fault, rounds: seconds.length, seconds, median, worst: sorted.at(-1)! };
  });
}
