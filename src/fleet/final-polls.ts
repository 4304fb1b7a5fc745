import { merge, Observable, Subject, take, timer } from 'rxjs';
import type { SchedulerLike } from 'rxjs';
import type { Hooks } from '../observe/hooks.ts';

/** Polls an account's lists once more before its release, so that the pause in polling begins as late as possible. */
export interface FinalPolls {
  /** Each value triggers an immediate poll of the account's lists. */
  readonly pollNow$: Observable<void>;
  /** Hooks that the account must call as it reads: by them, this object detects when the results of a list's poll have been published. */
  readonly hooks: Hooks;
  /**
   * Starts the final polls on subscription. Emits one value once a poll of every list that has been polled before is published, or after
   * {@link FINAL_POLL_TIMEOUT_MS}. Emits at once if no list has been polled.
   */
  readonly pollAll$: Observable<unknown>;
}

/**
 * How long to wait for the final polls, in ms. Must stay well below `RELEASE_TIMEOUT_MS`, after which the next owner claims the account
 * without a release.
 */
const FINAL_POLL_TIMEOUT_MS = 1_000;

export function finalPolls(scheduler: SchedulerLike): FinalPolls {
  const pollNow$ = new Subject<void>();
  const allPolled$ = new Subject<void>();
  /** Lists of which a complete poll has been published. The final polls are done once each of these lists has been polled once more. */
  const lists = new Set<string>();
  /** Lists whose final poll, the last one before the account is released, is not published yet; undefined until the final polls begin. */
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
