import { WINDOW_MS } from './sim-api.ts';
import type { ApiTraits, Arrival } from './sim-api.ts';

/** When a process ran. */
export interface Life {
  readonly startedAt: number;
  readonly endedAt: number;
}

/**
 * The quota, in ANY window of 60 s, as the server counts arrivals:
 *
 * - Processes of one state folder, one after the other, keep to it together; of logins too.
 * - So do all processes, one after the other, whatever became of their folders.
 * - Two that are alive at once (one stood still, and was replaced) can't know of each other: in a
 *   window in which both are, they come to two times the quota at most; in later ones to one.
 */
export function checkArrivals(
  arrivals: readonly Arrival[],
  lives: readonly Life[],
  { quotaPerMinute, loginsPerMinute }: ApiTraits,
): string[] {
  const violations: string[] = [];
  const lists = arrivals.filter(({ what }) => what === 'list');
  for (const [from, count] of overfull(lists, quotaPerMinute)) {
    const together = mostAlive(lives, from, from + WINDOW_MS);
    if (count > together * quotaPerMinute)
      violations.push(`${count} list requests within 60 s, of ${together} processes alive at once`);
  }
  for (const folder of new Set(arrivals.map(({ client }) => client.folder))) {
    const ofFolder = arrivals.filter(({ client }) => client.folder === folder);
    const say = (what: string, most: number) => {
      for (const [, count] of overfull(
        ofFolder.filter((each) => each.what === what),
        most,
      ))
        violations.push(`${count} ${what} requests within 60 s, of one folder`);
    };
    say('list', quotaPerMinute);
    say('login', loginsPerMinute);
  }
  return violations;
}

/** Windows, by where they begin, with more than `most` arrivals. */
function overfull(arrivals: readonly Arrival[], most: number): [from: number, count: number][] {
  const found: [number, number][] = [];
  let next = 0; // the first arrival behind the window
  arrivals.forEach(({ at }, first) => {
    while (next < arrivals.length && arrivals[next]!.at < at + WINDOW_MS) next += 1;
    if (next - first > most) found.push([at, next - first]);
  });
  return found;
}

/** The most processes that were alive at one moment of a window. */
function mostAlive(lives: readonly Life[], from: number, to: number): number {
  const inWindow = lives.filter(({ startedAt, endedAt }) => startedAt < to && endedAt >= from);
  const together = inWindow.map(({ startedAt }) => {
    const moment = Math.max(startedAt, from);
    return inWindow.filter((life) => life.startedAt <= moment && life.endedAt >= moment).length;
  });
  return Math.max(1, ...together);
}
