import { defer, filter, startWith, Subject, switchMap, take, timer } from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';

/** Chain of polls: `newest` for new changes, `back` for the long lookback. */
export type PollChain = 'newest' | 'back';

/** Counts the scans of each chain of polls of one list that have begun and ended. */
export class PollScans {
  readonly #begun = new Map<PollChain, number>();
  readonly #ended = new Map<PollChain, number>();
  readonly #ended$ = new Subject<void>();
  /**
   * Emits once each chain of polls has completed a scan that began after the subscription, and the last page of that scan has been emitted.
   */
  readonly pollsCompleted$: Observable<unknown>;

  /** @param scheduler Delays `pollsCompleted$` by a turn of the event loop, in which the last page of a scan is emitted. */
  constructor(scheduler: SchedulerLike) {
    this.pollsCompleted$ = defer(() => {
      const before = new Map(this.#begun);
      // Only chains that have ever begun are waited for: `back` may not run at all.
      const isDone = () =>
        before.size > 0 &&
        [...before].every(([chain, count]) => (this.#ended.get(chain) ?? 0) > count);
      return this.#ended$.pipe(
        startWith(undefined),
        filter(isDone),
        take(1),
        switchMap(() => timer(0, scheduler)),
      );
    });
  }

  scanStarted(chain: PollChain): void {
    this.#begun.set(chain, (this.#begun.get(chain) ?? 0) + 1);
  }

  /** To be called when the last page of a scan arrives, before the page is emitted. */
  scanEnded(chain: PollChain): void {
    this.#ended.set(chain, (this.#ended.get(chain) ?? 0) + 1);
    this.#ended$.next();
  }
}
