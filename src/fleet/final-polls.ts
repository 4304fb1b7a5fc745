import { merge, Observable, Subject, take, timer } from 'rxjs';
import type { SchedulerLike } from 'rxjs';
import type { Hooks } from '../observe/hooks.ts';

/**
 * Polls an account's lists once more before its release, so that the time without polls during a handover starts at the release, and not up
 * to a poll interval earlier.
 */
export interface FinalPolls {
  /** Each value triggers an immediate poll of the account's lists. */
  readonly pollNow$: Observable<void>;
  /** Hooks to be called with the account's events: they show when a poll is complete. */
  readonly hooks: Hooks;
  /**
   * Polls the account's lists on subscription; emits one value as soon as every list that was polled before has published its results, at
   * the latest after one second.
   */
  readonly pollAll$: Observable<unknown>;
}

/**
 * How long to wait for the final polls of an account's lists, in ms. Must stay well below the five seconds after which the next owner
 * claims the account without a release.
 */
const FINAL_POLL_TIMEOUT_MS = 1_000;

export function finalPolls(scheduler: SchedulerLike): FinalPolls {
  const pollNow$ = new Subject<void>();
  const allPolled$ = new Subject<void>();
  /** Lists that have completed a poll so far; `waiting` holds those whose final poll is pending. */
  const lists = new Set<string>();
  let waiting: Set<string> | undefined;

  return {
    pollNow$,
    hooks: {
      onPublished: ({ resource, lane, completes }) => {
        if (lane !== 'poll' || !completes) return;
        lists.add(resource);
        waiting?.delete(resource);
        if (waiting?.size === 0) allPolled$.next();
      },
    },
    pollAll$: new Observable((subscriber) => {
      waiting = new Set(lists);
      const within = timer(waiting.size > 0 ? FINAL_POLL_TIMEOUT_MS : 0, scheduler);
      const subscription = merge(allPolled$, within).pipe(take(1)).subscribe(subscriber);
      pollNow$.next();
      return subscription;
    }),
  };
}
