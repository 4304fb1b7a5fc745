import { defer, filter, startWith, Subject, switchMap, take, timer } from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';

/** The chains of polls of one list, and how many scans of each have begun and ended. */
export interface PollRounds {
  readonly begun: (chain: PollChain) => void;
  /** Called with the last page of a scan, before that page goes on. */
  readonly ended: (chain: PollChain) => void;
  /** Emits once a scan of each chain that began after the subscription has ended, and its pages are on their way. */
  readonly after$: Observable<unknown>;
}

/** Polls for what is new, and those that look back far. */
export type PollChain = 'newest' | 'back';

/** @param scheduler Lets the last page of a scan go on before `after$` emits. */
export function pollRounds(scheduler: SchedulerLike): PollRounds {
  const begun = new Map<PollChain, number>();
  const ended = new Map<PollChain, number>();
  const ended$ = new Subject<void>();
  const add = (counts: Map<PollChain, number>, chain: PollChain) =>
    counts.set(chain, (counts.get(chain) ?? 0) + 1);
  return {
    begun: (chain) => void add(begun, chain),
    ended: (chain) => {
      add(ended, chain);
      ended$.next();
    },
    after$: defer(() => {
      const before = new Map(begun);
      // A chain that has never begun is none: one does where it comes as far as two.
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
