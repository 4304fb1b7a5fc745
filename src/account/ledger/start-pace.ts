/** How requests that may begin are spread over time. */
export interface Pace {
  /** When a request of a lane of this rank may begin, ms; not after `now` is at once. */
  readonly opensAt: (now: number, rank: number) => number;
  readonly take: (now: number) => void;
  /** Most that begin in so long a time, ms. */
  readonly most: (ms: number) => number;
}

/** Faster than the quota, so that what a pause has left of it can still be used. */
const FASTER = 1.01;
/** At one go: one for a poll, whatever else goes on. */
const BURST = 2;
/** Timers are no finer, ms: where requests are more frequent, as many are made at one go. */
const TIMER_MS = 20;
/** Of a sum of parts. */
const NEARLY = 1e-6;

/**
 * Paces requests to about their quota: a burst of all that is free would leave a successor nothing for a minute. A start of rank
 * 0 (a poll) or less may take the last of what may begin at one go, others leave it.
 *
 * @param capacity Requests a minute.
 */
export function pace(capacity: number): Pace {
  const perMs = (FASTER * capacity) / 60_000;
  const burst = BURST + Math.floor(perMs * TIMER_MS);
  let level = burst;
  let leveledAt = -Infinity;

  const levelAt = (now: number) =>
    leveledAt === -Infinity ? level : Math.min(burst, level + Math.max(0, now - leveledAt) * perMs);
  return {
    opensAt: (now, rank) => {
      const missing = (rank <= 0 ? 1 : 2) - NEARLY - levelAt(now);
      return missing <= 0 ? now : now + Math.ceil(missing / perMs);
    },
    take: (now) => {
      level = levelAt(now) - 1;
      leveledAt = now;
    },
    most: (ms) => Math.floor(perMs * ms) + burst,
  };
}
