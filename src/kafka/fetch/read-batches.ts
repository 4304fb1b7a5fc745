// Reads a topic and passes its batches to a handler one after the other, with backpressure.

import { defer, Observable, Subject, takeUntil } from 'rxjs';
import type { ObservableInput, Subscriber } from 'rxjs';
import { arrivalOrder } from './batch-queue.ts';
import type { BatchQueue } from './batch-queue.ts';
import { TopicReader, unreadEnds } from './kafka-reader.ts';
import type { PartitionBatch, ReaderOptions } from './kafka-reader.ts';

export interface ReadBatchesOptions extends Omit<ReaderOptions, 'onBatch'> {
  /** Queue that determines the order of batches from several partitions. Default: the order of their arrival. */
  readonly queue?: BatchQueue;
  /** Called once, when all messages before the end offsets have been handled. Not called after `stop$` has emitted. */
  readonly onCaughtUp?: () => void;
  /**
   * The first value ends reading after the batch that is being handled. An error of this observable is passed on to the subscriber of
   * {@link readBatches}.
   */
  readonly stop$?: Observable<unknown>;
}

/**
 * Number of queued batches at which a partition is paused. If it is too small, the handler waits for fetches. If it is too large, more
 * memory is used.
 */
const MAX_QUEUED_BATCHES = 2;

/**
 * Passes the batches of a topic to `handle`, one after another, and emits the values of the observables that `handle` returns. Completes
 * after `stop$` has emitted or, without `follow`, at the end offsets.
 */
export function readBatches<R>(
  options: ReadBatchesOptions,
  handle: (batch: PartitionBatch) => ObservableInput<R>,
): Observable<R> {
  return new Observable((subscriber) => new BatchHandling(options, handle, subscriber).start());
}

/**
 * One subscription to {@link readBatches}. The reader puts batches into the queue, and the handler takes them from it. A partition with
 * enough queued batches is paused.
 */
class BatchHandling<R> {
  readonly #options: ReadBatchesOptions;
  readonly #handle: (batch: PartitionBatch) => ObservableInput<R>;
  readonly #subscriber: Subscriber<R>;
  readonly #reader: TopicReader;
  readonly #queue: BatchQueue;
  /** End offsets by partition. A partition is removed once its messages before the end offset have been handled. */
  readonly #behind: Map<number, bigint>;
  /** Emits when the subscription to {@link readBatches} ends. This ends the observable that `handle` returned for the current batch. */
  readonly #over$ = new Subject<void>();
  /** Whether a batch is being handled, or the reader is being closed. */
  #isBusy = false;
  #isAtEnd = false;
  #isStopped = false;

  constructor(
    options: ReadBatchesOptions,
    handle: (batch: PartitionBatch) => ObservableInput<R>,
    subscriber: Subscriber<R>,
  ) {
    this.#options = options;
    this.#handle = handle;
    this.#subscriber = subscriber;
    this.#queue = options.queue ?? arrivalOrder();
    this.#behind = unreadEnds(options.range.from, options.range.ends);
    this.#reader = new TopicReader({ ...options, onBatch: (batch) => this.#put(batch) });
  }

  start(): void {
    const subscriber = this.#subscriber;
    const fail = (error: unknown) => subscriber.error(error);
    subscriber.add(() => {
      this.#over$.next();
      this.#reader.close().catch(() => undefined); // there is no subscriber to report it to
    });
    this.#reader.done.then(() => {
      this.#isAtEnd = true;
      this.#goOn();
    }, fail);
    if (this.#behind.size === 0) this.#caughtUp();
    const stop = () => {
      this.#isStopped = true;
      this.#goOn();
    };
    subscriber.add(this.#options.stop$?.subscribe({ next: stop, error: fail }));
  }

  #put(batch: PartitionBatch): void {
    const { partition } = batch;
    this.#queue.put(batch);
    if (this.#isFull(partition)) this.#reader.pause(partition);
    this.#goOn();
  }

  #take(): PartitionBatch | undefined {
    const batch = this.#queue.take();
    if (batch && !this.#isFull(batch.partition)) this.#reader.resume(batch.partition);
    return batch;
  }

  #isFull(partition: number): boolean {
    return this.#queue.waiting(partition) >= MAX_QUEUED_BATCHES;
  }

  /**
   * Passes queued batches to the handler until the handler is busy with one, or the queue has none ready. Completes the subscriber when no
   * batch can follow.
   */
  #goOn(): void {
    // A loop instead of recursion: batches that are handled synchronously must not grow the stack.
    while (!this.#isBusy && !this.#subscriber.closed) {
      const batch = this.#isStopped ? undefined : this.#take();
      if (!batch) {
        if (this.#isStopped || (this.#isAtEnd && this.#queue.isEmpty)) this.#finish();
        return;
      }
      this.#run(batch);
    }
  }

  #run(batch: PartitionBatch): void {
    const subscriber = this.#subscriber;
    let isSynchronous = true;
    this.#isBusy = true;
    // `#over$` instead of unsubscribing: while the observable emits synchronously, `subscribe` has not yet returned a subscription.
    defer(() => this.#handle(batch))
      .pipe(takeUntil(this.#over$))
      .subscribe({
        next: (value) => subscriber.next(value),
        error: (error: unknown) => subscriber.error(error),
        complete: () => {
          if (subscriber.closed) return; // completed by `#over$`, not by the handler
          this.#handled(batch);
          if (!isSynchronous) this.#goOn();
        },
      });
    isSynchronous = false;
  }

  #handled({ partition, next }: PartitionBatch): void {
    this.#isBusy = false;
    if (this.#isStopped) return; // this batch may not have been handled completely
    if (next < (this.#behind.get(partition) ?? Infinity)) return;
    this.#behind.delete(partition);
    if (this.#behind.size === 0) this.#caughtUp();
  }

  #caughtUp(): void {
    try {
      this.#options.onCaughtUp?.();
    } catch (error) {
      this.#subscriber.error(error);
    }
  }

  #finish(): void {
    this.#isBusy = true; // from here on no batch is taken
    this.#reader.close().then(
      () => this.#subscriber.complete(),
      (error: unknown) => this.#subscriber.error(error),
    );
  }
}
