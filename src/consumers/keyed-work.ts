// Processes items concurrently, but items with the same key one after the other, and reports the low watermark of completed items.

import { finalize, Observable, Subscription, timer } from 'rxjs';
import type { SchedulerLike, Subscriber } from 'rxjs';

export type WorkOutcome<R> =
  | { readonly done: true; readonly result?: R | undefined }
  | { readonly done: false; readonly retryAfterMs: number };

interface KeyedWorkItems<E, R> {
  readonly items: readonly E[];
  /** Returns an item's key. Items with equal keys are processed one after the other, in order; items with a null key count as equal. */
  readonly keyOf: (item: E) => string | null;
  /**
   * Processes an item once. The last value emitted is the outcome; without a value, the item stays undone. An error stops the whole batch.
   *
   * @param tries Number of attempts at this item, including this one.
   */
  readonly work: (item: E, tries: number) => Observable<WorkOutcome<R>>;
  /** Halts the batch with its first value: no further item is started or retried; items in progress are finished. */
  readonly halt$: Observable<unknown>;
}

interface CompletedItem<E, R> {
  readonly item: E;
  readonly result: R | undefined;
  /** Index of the first item of the batch that is not done: all items before it are done. Equal to the number of items if all are done. */
  readonly lowWatermark: number;
}

/**
 * Processes a batch and emits each item when it is done. Items with different keys are processed concurrently, items with the same key in
 * order. After `halt$` or an error, no further item is started, and the Observable ends once no item is in progress.
 */
export type KeyedWork = <E, R>(work: KeyedWorkItems<E, R>) => Observable<CompletedItem<E, R>>;

/** Returns a function that processes batches. `concurrency` limits the number of items that run at once, over all batches together. */
export function keyedWork(concurrency: number, scheduler: SchedulerLike): KeyedWork {
  const slots = new Slots(concurrency);
  return (batch) =>
    new Observable((subscriber) => {
      const run = new BatchRun(batch, slots, scheduler, subscriber);
      subscriber.add(() => run.cancel());
      subscriber.add(batch.halt$.subscribe(() => run.halt()));
      run.start();
    });
}

/**
 * A fixed number of slots, shared by all batches. Each item in progress occupies one slot. Waiting batches receive free slots in turn, one
 * at a time.
 */
class Slots {
  /** Batches that wait for a slot (the right to process one item), in order. `begin` is called when the batch gets its slot. */
  readonly #waiting = new Set<{ begin(): void }>();
  #free: number;
  #isServing = false;

  constructor(count: number) {
    this.#free = count;
  }

  request(batch: { begin(): void }): void {
    this.#waiting.add(batch);
  }

  withdraw(batch: { begin(): void }): void {
    this.#waiting.delete(batch);
  }

  release(): void {
    this.#free += 1;
  }

  /** Gives free slots to the batches in `#waiting`, in order, until no slot is free or no batch waits. */
  serve(): void {
    if (this.#isServing) return; // the loop below serves it: avoids recursion when items complete synchronously
    this.#isServing = true;
    // A batch with more ready items adds itself to the end of the set again, and this loop reaches it.
    for (const batch of this.#waiting) {
      if (this.#free === 0) break;
      this.#waiting.delete(batch);
      this.#free -= 1;
      batch.begin();
    }
    this.#isServing = false;
  }
}

/**
 * The processing of one batch. An item passes through these states:
 *
 * - Waiting: an earlier item with the same key is not done yet.
 * - Ready: all earlier items with the same key are done. The ready item that is earliest in the batch is started first.
 * - In progress: the item holds a slot.
 * - Paused before a retry: the item holds no slot. After the pause it is ready again.
 *
 * After a halt or an error, only items in progress are finished.
 */
class BatchRun<E, R> {
  readonly #batch: KeyedWorkItems<E, R>;
  readonly #slots: Slots;
  readonly #scheduler: SchedulerLike;
  readonly #subscriber: Subscriber<CompletedItem<E, R>>;
  /**
   * For each item, by its index: the index of the next item with the same key, which waits until this item is done. Undefined if there is
   * no such item.
   */
  readonly #nextOfKey: (number | undefined)[] = [];
  /**
   * Indexes of the items that can be started, ascending: all earlier items with the same key are done, and the item is not paused for a
   * retry.
   */
  readonly #ready: number[];
  readonly #tries: number[];
  readonly #done: boolean[];
  readonly #pauses = new Subscription();
  readonly #inFlight = new Subscription();
  #lowWatermark = 0;
  #active = 0;
  #isHalted = false;
  #failure: { readonly error: unknown } | undefined;

  constructor(
    batch: KeyedWorkItems<E, R>,
    slots: Slots,
    scheduler: SchedulerLike,
    subscriber: Subscriber<CompletedItem<E, R>>,
  ) {
    this.#batch = batch;
    this.#slots = slots;
    this.#scheduler = scheduler;
    this.#subscriber = subscriber;
    const { items, keyOf } = batch;
    const firstOfKey = new Map<string | null, number>();
    for (let index = items.length - 1; index >= 0; index -= 1) {
      const key = keyOf(items[index]!);
      this.#nextOfKey[index] = firstOfKey.get(key);
      firstOfKey.set(key, index);
    }
    this.#ready = [...firstOfKey.values()].sort((a, b) => a - b);
    this.#tries = items.map(() => 0);
    this.#done = items.map(() => false);
  }

  start(): void {
    if (this.#ready.length > 0 && !this.#isHalted) this.#slots.request(this);
    this.#endIfOver();
    this.#slots.serve();
  }

  halt(): void {
    this.#stop();
    this.#endIfOver();
  }

  cancel(): void {
    this.#stop();
    this.#inFlight.unsubscribe();
  }

  /** Starts to process the ready item that is earliest in the batch. `Slots` calls this when it gives the batch a slot. */
  begin(): void {
    const index = this.#ready.shift()!;
    if (this.#ready.length > 0) this.#slots.request(this);
    this.#active += 1;
    let outcome: WorkOutcome<R> | undefined;
    const one = this.#batch
      .work(this.#batch.items[index]!, (this.#tries[index]! += 1))
      .pipe(finalize(() => this.#ended()))
      .subscribe({
        next: (value) => (outcome = value),
        error: (error: unknown) => {
          this.#failure ??= { error };
          this.#stop();
        },
        complete: () => {
          if (outcome?.done) this.#finish(index, outcome.result);
          else if (outcome) this.#pause(index, outcome.retryAfterMs);
        },
      });
    this.#inFlight.add(one);
  }

  #ended(): void {
    this.#slots.release();
    this.#active -= 1;
    this.#endIfOver();
    this.#slots.serve();
  }

  #finish(index: number, result: R | undefined): void {
    this.#done[index] = true;
    while (this.#done[this.#lowWatermark]) this.#lowWatermark += 1;
    const item = this.#batch.items[index]!;
    this.#subscriber.next({ item, result, lowWatermark: this.#lowWatermark });
    const next = this.#nextOfKey[index];
    if (next !== undefined) this.#makeReady(next);
  }

  #pause(index: number, ms: number): void {
    if (this.#isHalted) return;
    const again = () => {
      this.#makeReady(index);
      this.#slots.serve();
    };
    this.#pauses.add(timer(ms, this.#scheduler).subscribe(again));
  }

  #makeReady(index: number): void {
    if (this.#isHalted) return;
    insert(this.#ready, index);
    this.#slots.request(this);
  }

  #stop(): void {
    this.#isHalted = true;
    this.#slots.withdraw(this);
    this.#pauses.unsubscribe();
  }

  #endIfOver(): void {
    const isAllDone = this.#lowWatermark === this.#batch.items.length;
    if (this.#active > 0 || !(this.#isHalted || isAllDone)) return;
    if (this.#failure) this.#subscriber.error(this.#failure.error);
    else this.#subscriber.complete();
  }
}

/** Inserts a number into an ascending array. */
function insert(sorted: number[], value: number): void {
  let [from, to] = [0, sorted.length];
  while (from < to) {
    const middle = (from + to) >>> 1;
    if (sorted[middle]! < value) from = middle + 1;
    else to = middle;
  }
  sorted.splice(from, 0, value);
}
