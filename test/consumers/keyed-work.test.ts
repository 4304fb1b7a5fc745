import { concat, map, NEVER, of, takeUntil, throwError, timer } from 'rxjs';
import type { Observable } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { keyedWork } from '../../src/consumers/keyed-work.ts';
import type { WorkOutcome } from '../../src/consumers/keyed-work.ts';
import { virtualTime } from '../support/virtual-time.ts';

/** An item: its key, and how long it takes in ms. `a` after `a` waits for it. */
type Item = readonly [key: string | null, ms: number];

const DONE: WorkOutcome<never> = { done: true };

/** As marbles: what is emitted is the low-water mark. */
const marks = (source: Observable<{ readonly lowWatermark: number }>) =>
  source.pipe(map(({ lowWatermark }) => String(lowWatermark)));

const work = {
  keyOf: ([key]: Item) => key,
  work: ([, ms]: Item) => timer(ms).pipe(map(() => DONE)),
  halt$: NEVER as Observable<unknown>,
};

describe('keyedWork', () => {
  it('works on different keys at once, on those of one key in order', () => {
    const scheduler = virtualTime();
    scheduler.run(({ expectObservable }) => {
      const items: Item[] = [
        ['a', 4],
        ['a', 1],
        ['b', 2],
      ];
      const done$ = keyedWork(16, scheduler)({ ...work, items });
      // b at 2, the first a at 4, the second at 5; the mark waits for the first a.
      expectObservable(marks(done$)).toBe('--0-1(3|)');
    });
  });

  it('takes events without a key for events of one key', () => {
    const scheduler = virtualTime();
    scheduler.run(({ expectObservable }) => {
      const items: Item[] = [
        [null, 5],
        [null, 5],
        ['', 5],
      ];
      const done$ = keyedWork(16, scheduler)({ ...work, items });
      expectObservable(marks(done$)).toBe('-----(11)-(3|)');
    });
  });

  it('has no more than `concurrency` under way, over all subscriptions, which take turns', () => {
    const scheduler = virtualTime();
    scheduler.run(({ expectObservable }) => {
      const shared = keyedWork(1, scheduler);
      const items: Item[] = [
        ['a', 2],
        ['b', 2],
        ['c', 2],
      ];
      expectObservable(marks(shared({ ...work, items }))).toBe('                 --1-2---(3|)');
      expectObservable(marks(shared({ ...work, items: items.slice(0, 2) }))).toBe('------1---(2|)');
    });
  });

  it('begins the first item whose key is free', () => {
    const scheduler = virtualTime();
    scheduler.run(({ expectObservable }) => {
      const items: Item[] = [
        ['a', 1],
        ['a', 1],
        ['b', 1],
        ['c', 1],
      ];
      const done$ = keyedWork(1, scheduler)({ ...work, items });
      expectObservable(marks(done$)).toBe('-123(4|)');
    });
  });

  it('gives its place up while it waits to try again, and holds its key back', () => {
    const scheduler = virtualTime();
    scheduler.run(({ expectObservable }) => {
      const items: Item[] = [
        ['a', 1],
        ['a', 1],
        ['b', 2],
      ];
      const done$ = keyedWork(
        1,
        scheduler,
      )({
        ...work,
        items,
        work: ([key, ms], tries) =>
          timer(ms).pipe(
            map(() => (key === 'a' && tries < 3 ? { done: false, retryAfterMs: 5 } : DONE)),
          ),
      });
      // a fails at 1 and 7, is done at 13; b meanwhile at 3; then the second a, three times.
      expectObservable(marks(done$)).toBe('---0---------1------------(3|)');
    });
  });

  it('after a halt begins nothing, tries nothing again, finishes what is under way', () => {
    const scheduler = virtualTime();
    scheduler.run(({ cold, expectObservable }) => {
      const items: Item[] = [
        ['a', 3],
        ['b', 1],
        ['c', 9],
      ];
      const done$ = keyedWork(
        2,
        scheduler,
      )({
        ...work,
        items,
        work: ([key, ms]) =>
          timer(ms).pipe(map(() => (key === 'b' ? { done: false, retryAfterMs: 500 } : DONE))),
        halt$: cold('--h'),
      });
      expectObservable(marks(done$)).toBe('---1------(1|)');
    });
    expect(scheduler.now()).toBeLessThan(500); // no timer is left
  });

  it('halted before it begins it completes', () => {
    const scheduler = virtualTime();
    scheduler.run(({ expectObservable }) => {
      const done$ = keyedWork(2, scheduler)({ ...work, items: [['a', 1]], halt$: of(1) });
      expectObservable(marks(done$)).toBe('|');
      const none$ = keyedWork(2, scheduler)({ ...work, items: [] });
      expectObservable(marks(none$)).toBe('|');
    });
  });

  it('after an error begins nothing, finishes what is under way, and then errors', () => {
    const scheduler = virtualTime();
    scheduler.run(({ expectObservable }) => {
      const items: Item[] = [
        ['a', 1],
        ['b', 4],
        ['c', 1],
      ];
      const done$ = keyedWork(
        2,
        scheduler,
      )({
        ...work,
        items,
        work: ([key, ms]) =>
          key === 'a'
            ? concat(
                timer(ms).pipe(map(() => DONE)),
                throwError(() => 'odd'),
              )
            : timer(ms).pipe(map(() => DONE)),
      });
      expectObservable(marks(done$)).toBe('----(0#)', undefined, 'odd');
    });
  });

  it('leaves undone what was cut short', () => {
    const scheduler = virtualTime();
    scheduler.run(({ cold, expectObservable }) => {
      const halt$ = cold('--h');
      const items: Item[] = [
        ['a', 1],
        ['a', 1],
      ];
      const done$ = keyedWork(
        2,
        scheduler,
      )({ ...work, items, halt$, work: () => NEVER.pipe(takeUntil(halt$)) });
      expectObservable(marks(done$)).toBe('--|');
    });
  });

  it('gives places and work under way up when unsubscribed', () => {
    const scheduler = virtualTime();
    scheduler.run(({ cold, expectObservable, expectSubscriptions }) => {
      const shared = keyedWork(1, scheduler);
      const long = cold('---------x');
      const first$ = shared({ ...work, items: [['a', 9]], work: () => long.pipe(map(() => DONE)) });
      const second$ = shared({ ...work, items: [['a', 2]] });
      expectObservable(marks(first$), '^--!').toBe('-');
      expectObservable(marks(second$)).toBe('-----(1|)');
      expectSubscriptions(long.subscriptions).toBe('^--!');
    });
  });

  it('does not pile up calls for work that is done at once', () => {
    let count = 0;
    const items = Array.from({ length: 50_000 }, (_, n) => [`k${n % 7}`, n] as const);
    keyedWork(
      2,
      virtualTime(),
    )({ ...work, items, work: () => of(DONE) }).subscribe(() => (count += 1));
    expect(count).toBe(50_000);
  });
});
