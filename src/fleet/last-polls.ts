import { merge, Observable, Subject, take, timer } from 'rxjs';
import type { SchedulerLike } from 'rxjs';
import type { Hooks } from '../observe/hooks.ts';

/** An account's lists are polled once more before it is let go: its silence begins then, and not a poll interval earlier. */
export interface LastPolls {
  /** Has its lists polled at once. */
  readonly pollNow$: Observable<void>;
  /** What is told of the account. */
  readonly hooks: Hooks;
  /** Polls; emits once each list that is polled has published what that brought, or after a second. */
  readonly polled$: Observable<unknown>;
}

/** An API that takes longer for a page is not waited for: whoever asks for the account waits no more than five times as long. */
const POLLED_WITHIN_MS = 1_000;

export function lastPolls(scheduler: SchedulerLike): LastPolls {
  const pollNow$ = new Subject<void>();
  const allPolled$ = new Subject<void>();
  /** Lists that are polled; and those of which it is waited for. */
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
    polled$: new Observable((subscriber) => {
      waiting = new Set(lists);
      const within = timer(waiting.size > 0 ? POLLED_WITHIN_MS : 0, scheduler);
      const subscription = merge(allPolled$, within).pipe(take(1)).subscribe(subscriber);
      pollNow$.next();
      return subscription;
    }),
  };
}
