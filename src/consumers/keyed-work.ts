// Works on many items at once, those of one key one after the other, and says up to where all are done.

import { finalize, Observable, Subscription, timer } from 'rxjs';
import type { SchedulerLike } from 'rxjs';

/** What became of an item that was worked on: it is done, or it is to be tried again. */
export type Outcome<R> =
  | { readonly done: true; readonly result?: R | undefined }
  | { readonly done: false; readonly againMs: number };

/** Items in order, and how they are worked on. */
interface Work<E, R> {
  readonly items: readonly E[];
  /** Items of one key are worked on one after the other. */
  readonly keyOf: (item: E) => string | null;
  /**
   * Works on an item once; its last value counts. Completing without one leaves the item undone, and
   * is for work that `halt$` has cut short. An error ends it all.
   *
   * @param tries How often it was worked on, this time included.
   */
  readonly work: (item: E, tries: number) => Observable<Outcome<R>>;
  /** Its first value: nothing more is begun or tried again, what is under way is finished. */
  readonly halt$: Observable<unknown>;
}

/** An item that is done. */
interface Done<E, R> {
  readonly item: E;
  readonly result: R | undefined;
  /** So many items from the first on are done without a gap: the low-water mark. */
  readonly doneBefore: number;
}

/**
 * Works on many items at once, as long as their keys differ: emits each when it is done, completes when
 * all are, or after a halt when nothing is under way. After an error nothing more is begun; it comes
 * out when nothing is under way.
 */
type KeyedWork = <E, R>(work: Work<E, R>) => Observable<Done<E, R>>;

/**
 * Places for `concurrency` items at once, shared by all that is subscribed to, in turns. Of one
 * subscription the first item goes first whose key is free, so that the low-water mark moves. An item
 * that waits to be tried again gives its place up; its key waits with it.
 */
export function keyedWork(concurrency: number, scheduler: SchedulerLike): KeyedWork {
  /** How each subscription that has an item ready begins it. */
  const turns = new Set<() => void>();
  let free = concurrency;
  let serving = false;

  const serve = (): void => {
    if (serving) return; // the loop below sees it: work that is done at once does not pile up calls
    serving = true;
    // Who has more takes another turn, at the end of the set, which this loop comes to.
    for (const begin of turns) {
      if (free === 0) break;
      turns.delete(begin);
      free -= 1;
      begin();
    }
    serving = false;
  };

  return <E, R>({ items, keyOf, work, halt$ }: Work<E, R>) =>
    new Observable<Done<E, R>>((subscriber) => {
      const lines = linesOf(items.map(keyOf));
      const ready = [...lines.values()].map((line) => line[0]!);
      const tries = items.map(() => 0);
      const done = items.map(() => false);
      const pauses = new Subscription();
      const underWay = new Subscription();
      let doneBefore = 0;
      let active = 0;
      let halted = false;
      let failure: { readonly error: unknown } | undefined;

      const makeReady = (place: number): void => {
        if (halted) return;
        insert(ready, place);
        turns.add(begin);
      };
      const halt = (): void => {
        halted = true;
        turns.delete(begin);
        pauses.unsubscribe();
      };
      const endIfOver = (): void => {
        if (active > 0 || !(halted || doneBefore === items.length)) return;
        if (failure) subscriber.error(failure.error);
        else subscriber.complete();
      };
      const finish = (place: number, result: R | undefined): void => {
        done[place] = true;
        while (done[doneBefore]) doneBefore += 1;
        const item = items[place]!;
        const line = lines.get(keyOf(item))!;
        line.shift();
        const [next] = line;
        subscriber.next({ item, result, doneBefore });
        if (next !== undefined) makeReady(next);
      };
      const pause = (place: number, ms: number): void => {
        if (halted) return;
        const again = () => {
          makeReady(place);
          serve();
        };
        pauses.add(timer(ms, scheduler).subscribe(again));
      };
      const begin = (): void => {
        const place = ready.shift()!;
        if (ready.length > 0) turns.add(begin);
        active += 1;
        let outcome: Outcome<R> | undefined;
        const one = work(items[place]!, (tries[place]! += 1))
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
              if (outcome?.done) finish(place, outcome.result);
              else if (outcome) pause(place, outcome.againMs);
            },
          });
        underWay.add(one);
      };

      subscriber.add(() => {
        halt();
        underWay.unsubscribe();
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

/** The places of each key, in order. */
function linesOf(keys: readonly (string | null)[]): Map<string | null, number[]> {
  const lines = new Map<string | null, number[]>();
  keys.forEach((key, place) => {
    const line = lines.get(key);
    if (line) line.push(place);
    else lines.set(key, [place]);
  });
  return lines;
}

/** Into ascending numbers. */
function insert(sorted: number[], value: number): void {
  let [from, to] = [0, sorted.length];
  while (from < to) {
    const middle = (from + to) >>> 1;
    if (sorted[middle]! < value) from = middle + 1;
    else to = middle;
  }
  sorted.splice(from, 0, value);
}
