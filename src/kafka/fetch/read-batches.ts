// Reads a topic and passes its batches to a handler one after the other, with backpressure.

import { defer, Observable, Subject, takeUntil } from 'rxjs';
import type { ObservableInput } from 'rxjs';
import { arrivalOrder } from './batch-queue.ts';
import type { BatchQueue } from './batch-queue.ts';
import { openReader, unreadEnds } from './kafka-reader.ts';
import type { PartitionBatch, ReaderOptions } from './kafka-reader.ts';

export interface ReadBatchesOptions extends Omit<ReaderOptions, 'onBatch' | 'onCaughtUp'> {
  /** Determines the order of batches from several partitions. Default: the order of their arrival. */
  readonly queue?: BatchQueue;
  /** Called once, when all messages before the end offsets have been handled; not after `stop$` has emitted. */
  readonly onCaughtUp?: () => void;
  /** The first value ends the read after the batch that is being handled. An error of this observable is passed on to the subscriber. */
  readonly stop$?: Observable<unknown>;
}

/** A partition is paused while it has this many batches in the queue. Bounds memory; too small: the handler waits for fetches. */
const MAX_QUEUED_BATCHES = 2;

/**
 * Passes the batches of a topic to `handle`, one at a time: the next one follows when the observable of the previous one has completed.
 * Meanwhile only a few batches of each partition are fetched. Emits the values of the observables that `handle` returns. Completes after
 * `stop$` has emitted or, without `follow`, at the end offsets, once the reader is closed.
 */
export function readBatches<R>(
  options: ReadBatchesOptions,
  handle: (batch: PartitionBatch) => ObservableInput<R>,
): Observable<R> {
  return new Observable((subscriber) => {
    const { queue = arrivalOrder(), onCaughtUp, stop$, ...others } = options;
    const behind = unreadEnds(options.range.from, options.range.ends);
    const paused = new Set<number>();
    // A subject, because a handler that emits synchronously has no subscription yet that could be cancelled.
    const over$ = new Subject<void>();
    let isBusy = false;
    let isAtEnd = false;
    let isStopped = false;

    const reader = openReader({
      ...others,
      onBatch: (batch) => {
        const { partition } = batch;
        queue.put(batch);
        if (queue.waiting(partition) >= MAX_QUEUED_BATCHES && !paused.has(partition)) {
          paused.add(partition);
          reader.pause(partition);
        }
        go();
      },
    });
    subscriber.add(() => {
      over$.next();
      reader.close().catch(() => undefined); // there is no subscriber to report it to
    });
    const finish = () => {
      isBusy = true; // from here on no batch is taken
      reader.close().then(
        () => subscriber.complete(),
        (error: unknown) => subscriber.error(error),
      );
    };
    const take = (): PartitionBatch | undefined => {
      const batch = queue.take();
      if (
        batch &&
        paused.has(batch.partition) &&
        queue.waiting(batch.partition) < MAX_QUEUED_BATCHES
      ) {
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
      if (isStopped) return; // this batch may not have been handled completely
      if (!behind.has(partition) || next < behind.get(partition)!) return;
      behind.delete(partition);
      if (behind.size === 0) caughtUp();
    };
    const go = (): void => {
      // A loop instead of recursion: batches that are handled synchronously must not grow the stack.
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
              if (subscriber.closed) return; // completed by `over$`, not by the handler
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
