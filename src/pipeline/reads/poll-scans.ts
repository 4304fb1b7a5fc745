import { defer, filter, startWith, Subject, switchMap, take, timer } from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';

/** Chain (series of poll windows): `newest` reads new changes, `back` looks further back for changes that became visible late. */
export type PollChain = 'newest' | 'back';

/**
 * Tracks which poll scans of a list have ended. A poll scan reads all pages of one poll window. If a scan begins before the previous one of
 * its chain (series of poll windows) has ended, it replaces the previous one.
 */
export class PollScans {
  /** Number of the newest scan that has begun. */
  readonly #begun = new Map<PollChain, number>();
  /** Number of the newest scan that has ended. */
  readonly #ended = new Map<PollChain, number>();
  readonly #ended$ = new Subject<void>();
  /**
   * Emits once per subscription: when polls have read all changes made before the subscription, and have emitted the pages with these
   * changes.
   */
  readonly pollsCompleted$: Observable<unknown>;

  /** @param scheduler Delays `pollsCompleted$` by one turn of the event loop, so that the last page of a scan is emitted first. */
  constructor(scheduler: SchedulerLike) {
    this.pollsCompleted$ = defer(() => {
      // The chain `back` is waited for only if it has ever begun: it may not run at all.
      const before = new Map<PollChain, number>([['newest', 0], ...this.#begun]);
      const isDone = () =>
        [...before].every(([chain, count]) => (this.#ended.get(chain) ?? 0) > count);
      return this.#ended$.pipe(
        startWith(undefined),
        filter(isDone),
        take(1),
        switchMap(() => timer(0, scheduler)),
      );
    });
  }

  /** Reports that a poll scan of this chain (series of poll windows) has begun. */
  scanStarted(chain: PollChain): void {
    this.#begun.set(chain, (this.#begun.get(chain) ?? 0) + 1);
  }

  /**
   * Reports that the newest poll scan of this chain has ended. To be called when the scan's last page has arrived, before that page is
   * emitted.
   */
  scanEnded(chain: PollChain): void {
    this.#ended.set(chain, this.#begun.get(chain) ?? 0);
    this.#ended$.next();
  }
}
