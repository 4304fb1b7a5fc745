import fc from 'fast-check';
import { map, NEVER, timer } from 'rxjs';
import { expect, it } from 'vitest';
import { keyedWork } from '../../src/consumers/keyed-work.ts';
import { virtualTime } from '../support/virtual-time.ts';
import { scaled } from '../support/scale.ts';

/** A message as it will go: its key, how long each try takes, how many fail, the pause after each. */
interface Message {
  readonly key: string | null;
  readonly ms: number;
  readonly failures: number;
  readonly retryAfterMs: number;
}

const message: fc.Arbitrary<Message> = fc.record({
  key: fc.constantFrom(null, 'a', 'b', 'c', 'd', 'e'),
  ms: fc.nat(20),
  failures: fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, fc.nat(4)),
  retryAfterMs: fc.nat(30),
});

const run = fc.record({
  batches: fc.array(fc.array(message, { maxLength: 30 }), { minLength: 1, maxLength: 4 }),
  concurrency: fc.integer({ min: 1, max: 8 }),
  /** Of each batch; undefined: it isn't halted. */
  haltAt: fc.option(fc.nat(200), { nil: undefined }),
});

/** One batch, watched from outside: what is begun and what is done, as its work sees it. */
interface Watched {
  readonly begun: number[][];
  readonly done: Set<number>;
  readonly marks: number[];
  completed: boolean;
}

it('keeps the order of every key, its places, and the low-water mark, whatever fails', () => {
  fc.assert(
    fc.property(run, ({ batches, concurrency, haltAt }) => {
      const scheduler = virtualTime();
      const watched: Watched[] = [];
      let active = 0;
      let most = 0;
      scheduler.run(() => {
        const work = keyedWork(concurrency, scheduler);
        for (const batch of batches) {
          const seen: Watched = { begun: [], done: new Set(), marks: [], completed: false };
          watched.push(seen);
          const items = batch.map((message, place) => ({ ...message, place }));
          work({
            items,
            keyOf: ({ key }) => key,
            halt$: haltAt === undefined ? NEVER : timer(haltAt),
            work: ({ place, key, ms, failures, retryAfterMs }, tries) => {
              // Everything before it of its key is done: the order, and nothing left out.
              const before = items.slice(0, place).filter((other) => other.key === key);
              expect(before.filter((other) => !seen.done.has(other.place))).toEqual([]);
              expect(seen.done.has(place)).toBe(false);
              expect(tries).toBe((seen.begun[place] ?? []).length + 1);
              (seen.begun[place] ??= []).push(scheduler.now());
              active += 1;
              most = Math.max(most, active);
              return timer(ms).pipe(
                map(() => {
                  active -= 1;
                  if (tries <= failures) return { done: false, retryAfterMs } as const;
                  seen.done.add(place);
                  return { done: true, result: place } as const;
                }),
              );
            },
          }).subscribe({
            next: ({ item, result, lowWatermark }) => {
              expect(result).toBe(item.place);
              expect(seen.done.has(item.place)).toBe(true);
              // The mark never passes an item that is not done, and stands at the first such one.
              const first = items.findIndex(({ place }) => !seen.done.has(place));
              expect(lowWatermark).toBe(first < 0 ? items.length : first);
              seen.marks.push(lowWatermark);
            },
            complete: () => (seen.completed = true),
          });
        }
      });
      expect(most).toBeLessThanOrEqual(concurrency);
      watched.forEach(({ done, marks, completed, begun }, at) => {
        const size = batches[at]!.length;
        expect(completed).toBe(true);
        expect(marks).toHaveLength(done.size);
        expect(marks).toEqual([...marks].sort((a, b) => a - b));
        if (haltAt === undefined) expect(done.size).toBe(size);
        // After the halt nothing is begun.
        for (const at of begun.flat()) expect(at).toBeLessThanOrEqual(haltAt ?? Infinity);
      });
      // Places are used: as many at once as there are keys to begin with.
      const keys = batches.flatMap((batch) => [...new Set(batch.map(({ key }) => key))]);
      if (haltAt !== 0) expect(most).toBe(Math.min(concurrency, keys.length));
    }),
    { numRuns: scaled(100, 500) },
  );
});
