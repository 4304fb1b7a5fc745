import { defer, filter, startWith, Subject, switchMap, take, timer } from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';

/** Counts the scans of each chain of polls of one list that have begun and ended. */
export interface PollScans {
  readonly scanStarted: (chain: PollChain) => void;
  /** To be called when the last page of a scan arrives, before the page is passed on. */
  readonly scanEnded: (chain: PollChain) => void;
  /** Emits once each chain of polls has completed a scan that began after the subscription, and has passed on its last page. */
  readonly pollsCompleted$: Observable<unknown>;
}

/** Chain of polls: `newest` for new changes, `back` for the long lookback. */
export type PollChain = 'newest' | 'back';

/**
 * Creates the counts of a list's poll scans.
 *
 * @param scheduler Delays `pollsCompleted$` by a turn of the event loop, until the last page of a scan has been passed on.
 */
export function pollScans(scheduler: SchedulerLike): PollScans {
  const begun = new Map<PollChain, number>();
  const ended = new Map<PollChain, number>();
  const ended$ = new Subject<void>();
  const add = (counts: Map<PollChain, number>, chain: PollChain) =>
    counts.set(chain, (counts.get(chain) ?? 0) + 1);
  return {
    scanStarted: (chain) => void add(begun, chain),
    scanEnded: (chain) => {
      add(ended, chain);
      ended$.next();
    },
    pollsCompleted$: defer(() => {
      const before = new Map(begun);
      // Only chains that have ever begun are waited for: `back` may not run at all.
      const isDone = () =>
        before.size > 0 && [...before].every(([chain, count]) => (ended.get(chain) ?? 0) > count);
      return ended$.pipe(
        startWith(undefined),
        filter(isDone),
        take(1),
        switchMap(() => timer(0, scheduler)),
      );
    }),
  };
}
