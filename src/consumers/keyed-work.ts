// Processes items concurrently, but items with the same key one after the other, and reports the low watermark of completed items.

import { finalize, Observable, Subscription, timer } from 'rxjs';
import type { SchedulerLike } from 'rxjs';

/** Result of processing an item: done, or due for a retry after `retryAfterMs`. */
export type WorkOutcome<R> =
  | { readonly done: true; readonly result?: R | undefined }
  | { readonly done: false; readonly retryAfterMs: number };

/** A batch of items, and how they are processed. */
interface KeyedWorkItems<E, R> {
  readonly items: readonly E[];
  /** Items with the same key are processed one after the other, in order. */
  readonly keyOf: (item: E) => string | null;
  /**
   * Processes an item once; the last value emitted is the outcome. If it completes without a value, because `halt$` interrupted it, the
   * item stays undone. An error stops the whole batch.
   *
   * @param tries Number of attempts at this item, including this one.
   */
  readonly work: (item: E, tries: number) => Observable<WorkOutcome<R>>;
  /** After the first value no item is started or retried; items in progress are finished. */
  readonly halt$: Observable<unknown>;
}

/** An item of a batch whose processing is done, and the batch's progress. */
interface CompletedItem<E, R> {
  readonly item: E;
  readonly result: R | undefined;
  /** Low watermark: the number of items from the start of the batch that are done without a gap. */
  readonly lowWatermark: number;
}

/**
 * Processes a batch: items with different keys concurrently, items with the same key in order. Emits each item when it is done. Completes
 * when all are done, or after a halt once no item is in progress. After an error no item is started; the error is emitted once no item is
 * in progress.
 */
type KeyedWork = <E, R>(work: KeyedWorkItems<E, R>) => Observable<CompletedItem<E, R>>;

/**
 * Returns a function that processes batches; at most `concurrency` items of all subscribed batches run at once, and batches take turns.
 * Within a batch, the earliest item whose key is free runs first, so that the low watermark advances. An item waiting for a retry frees its
 * slot but blocks its key.
 */
export function keyedWork(concurrency: number, scheduler: SchedulerLike): KeyedWork {
  /** One function for each batch that has an item ready; calling it starts the batch's earliest ready item. */
  const turns = new Set<() => void>();
  let free = concurrency;
  let serving = false;

  const serve = (): void => {
    if (serving) return; // the loop below serves it: avoids recursion when items complete synchronously
    serving = true;
    // A batch with more ready items adds itself to the end of the set again, and this loop reaches it.
    for (const begin of turns) {
      if (free === 0) break;
      turns.delete(begin);
      free -= 1;
      begin();
    }
    serving = false;
  };

  return <E, R>({ items, keyOf, work, halt$ }: KeyedWorkItems<E, R>) =>
    new Observable<CompletedItem<E, R>>((subscriber) => {
      const lines = indexesByKey(items.map(keyOf));
      const ready = [...lines.values()].map((line) => line[0]!);
      const tries = items.map(() => 0);
      const done = items.map(() => false);
      const pauses = new Subscription();
      const inFlight = new Subscription();
      let lowWatermark = 0;
      let active = 0;
      let halted = false;
      let failure: { readonly error: unknown } | undefined;

      const makeReady = (index: number): void => {
        if (halted) return;
        insert(ready, index);
        turns.add(begin);
      };
      const halt = (): void => {
        halted = true;
        turns.delete(begin);
        pauses.unsubscribe();
      };
      const endIfOver = (): void => {
        if (active > 0 || !(halted || lowWatermark === items.length)) return;
        if (failure) subscriber.error(failure.error);
        else subscriber.complete();
      };
      const finish = (index: number, result: R | undefined): void => {
        done[index] = true;
        while (done[lowWatermark]) lowWatermark += 1;
        const item = items[index]!;
        const line = lines.get(keyOf(item))!;
        line.shift();
        const [next] = line;
        subscriber.next({ item, result, lowWatermark });
        if (next !== undefined) makeReady(next);
      };
      const pause = (index: number, ms: number): void => {
        if (halted) return;
        const again = () => {
          makeReady(index);
          serve();
        };
        pauses.add(timer(ms, scheduler).subscribe(again));
      };
      const begin = (): void => {
        const index = ready.shift()!;
        if (ready.length > 0) turns.add(begin);
        active += 1;
        let outcome: WorkOutcome<R> | undefined;
        const one = work(items[index]!, (tries[index]! += 1))
          .pipe(
            finalize(() => {
              free += 1;
              active -= 1;
              endIfOver();
              serve();
            }),
          )
          .subscribe({
            next: (value) => (outcome = value),
            error: (error: unknown) => {
              failure ??= { error };
              halt();
            },
            complete: () => {
              if (outcome?.done) finish(index, outcome.result);
              else if (outcome) pause(index, outcome.retryAfterMs);
            },
          });
        inFlight.add(one);
      };

      subscriber.add(() => {
        halt();
        inFlight.unsubscribe();
      });
      subscriber.add(
        halt$.subscribe(() => {
          halt();
          endIfOver();
        }),
      );
      if (ready.length > 0 && !halted) turns.add(begin);
      endIfOver();
      serve();
    });
}

/** Returns the ascending indexes of the items with each key. */
function indexesByKey(keys: readonly (string | null)[]): Map<string | null, number[]> {
  const lines = new Map<string | null, number[]>();
  keys.forEach((key, index) => {
    const line = lines.get(key);
    if (line) line.push(index);
    else lines.set(key, [index]);
  });
  return lines;
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
