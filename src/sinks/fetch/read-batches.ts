// Batches of a topic handed over one after the other, with back-pressure.

import { defer, Observable, Subject, takeUntil } from 'rxjs';
import type { ObservableInput } from 'rxjs';
import { arrivalOrder } from './batch-queue.ts';
import type { BatchQueue } from './batch-queue.ts';
import { openReader, unread } from './kafka-reader.ts';
import type { PartitionBatch, ReaderOptions } from './kafka-reader.ts';

export interface ReadBatchesOptions extends Omit<ReaderOptions, 'onBatch' | 'onCaughtUp'> {
  /** In which order batches of several partitions are handed over. Default as they come. */
  readonly queue?: BatchQueue;
  /** Called once, when all up to the ends has been handled; not behind `stop$`. */
  readonly onCaughtUp?: () => void;
  /** Its first value ends the reading, behind the batch in hand. An error of it is the reading's. */
  readonly stop$?: Observable<unknown>;
}

/** Of one partition: no more are fetched while so many wait. */
const MAX_WAITING = 2;

/**
 * Batches of a topic, one after the other: the next one is taken when what `handle` gave for the one
 * before has completed. Meanwhile no more than a few are fetched of each partition. Emits what
 * `handle` gives; completes at the ends, unless it follows, and when nothing is left of the reader.
 */
export function readBatches<R>(
  options: ReadBatchesOptions,
  handle: (batch: PartitionBatch) => ObservableInput<R>,
): Observable<R> {
  return new Observable((subscriber) => {
    const { queue = arrivalOrder(), onCaughtUp, stop$, ...others } = options;
    const behind = unread(options.range.from, options.range.ends);
    const paused = new Set<number>();
    // Not by a subscription: there is none yet while what is made of a batch emits at once.
    const over$ = new Subject<void>();
    let isBusy = false;
    let isAtEnd = false;
    let isStopped = false;

    const reader = openReader({
      ...others,
      onBatch: (batch) => {
        const { partition } = batch;
        queue.put(batch);
        if (queue.waiting(partition) >= MAX_WAITING && !paused.has(partition)) {
          paused.add(partition);
          reader.pause(partition);
        }
        go();
      },
    });
    subscriber.add(() => {
      over$.next();
      reader.close().catch(() => undefined); // nobody is there any more to be told
    });
    const finish = () => {
      isBusy = true; // for good
      reader.close().then(
        () => subscriber.complete(),
        (error: unknown) => subscriber.error(error),
      );
    };
    const take = (): PartitionBatch | undefined => {
      const batch = queue.take();
      if (batch && paused.has(batch.partition) && queue.waiting(batch.partition) < MAX_WAITING) {
        paused.delete(batch.partition);
        reader.resume(batch.partition);
      }
      return batch;
    };
    const caughtUp = () => {
      try {
        onCaughtUp?.();
      } catch (error) {
        subscriber.error(error);
      }
    };
    const handled = ({ partition, next }: PartitionBatch) => {
      isBusy = false;
      if (isStopped) return; // the batch in hand may have been cut short
      if (!behind.has(partition) || next < behind.get(partition)!) return;
      behind.delete(partition);
      if (behind.size === 0) caughtUp();
    };
    const go = (): void => {
      // A loop, not a recursion: what is handled at once must not fill the stack.
      while (!isBusy && !subscriber.closed) {
        const batch = isStopped ? undefined : take();
        if (!batch) {
          if (isStopped || (isAtEnd && queue.isEmpty)) finish();
          return;
        }
        isBusy = true;
        let isAtOnce = true;
        defer(() => handle(batch))
          .pipe(takeUntil(over$))
          .subscribe({
            next: (value) => subscriber.next(value),
            error: (error: unknown) => subscriber.error(error),
            complete: () => {
              if (subscriber.closed) return; // it was cut short
              handled(batch);
              if (!isAtOnce) go();
            },
          });
        isAtOnce = false;
      }
    };
    reader.done.then(
      () => {
        isAtEnd = true;
        go();
      },
      (error: unknown) => subscriber.error(error),
    );
    if (behind.size === 0) caughtUp();
    subscriber.add(
      stop$?.subscribe({
        next: () => {
          isStopped = true;
          go();
        },
        error: (error: unknown) => subscriber.error(error),
      }),
    );
  });
}
