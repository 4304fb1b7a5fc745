import { catchError, defer, delay, EMPTY, mergeMap, range, throwError, timer } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { during, tokenBucket } from '../../src/streams/token-bucket.ts';
import { mulberry32 } from '../support/mulberry32.ts';
import { virtualTime } from '../support/virtual-time.ts';

const CAPACITY = 10;
const WINDOW = 1_000;

/** Most of these times within any window that is open at its end. */
function mostInAnyWindow(times: readonly number[]): number {
  const sorted = [...times].sort((a, b) => a - b);
  let first = 0;
  return sorted.reduce((most, at, k) => {
    while (sorted[first]! <= at - WINDOW) first++;
    return Math.max(most, k - first + 1);
  }, 0);
}

describe('during', () => {
  it.each([1, 2, 3, 4, 5])(
    'keeps the quota as arrivals are counted, whenever between start and end they arrive: seed %i',
    (seed) => {
      const random = mulberry32(seed);
      const scheduler = virtualTime();
      const arrivals: number[] = [];
      scheduler.run(() => {
        const bucket = tokenBucket({ capacity: CAPACITY, windowMs: WINDOW, scheduler });
        const lane = bucket.lane({ rank: 1, share: 5 });
        /** Arrives at any time before it ends; some fail. */
        const request = defer(() => {
          const took = Math.ceil(random() < 0.2 ? random() * 3_000 : random() * 50);
          arrivals.push(scheduler.now() + Math.floor(random() * took));
          const end = timer(took, scheduler);
          return random() < 0.1 ? end.pipe(mergeMap(() => throwError(() => 'failed'))) : end;
        });
        const all = mergeMap((k: number) =>
          during(k % 3 ? bucket : lane, request).pipe(catchError(() => EMPTY)),
        );
        range(200).pipe(all).subscribe();
        range(200).pipe(delay(10_000, scheduler), all).subscribe();
      });
      expect(arrivals).toHaveLength(400); // all have their turn
      expect(mostInAnyWindow(arrivals)).toBeLessThanOrEqual(CAPACITY);
    },
  );

  it('gives a token back a window after the end, be it an error or given up', () => {
    const scheduler = virtualTime();
    scheduler.run(({ cold, expectObservable }) => {
      const limit = tokenBucket({ capacity: 1, windowMs: 10, scheduler });
      const failing = cold('----#');
      const next = cold('   x|');
      expectObservable(during(limit, failing)).toBe('   ----#');
      expectObservable(during(limit, cold('--------')), '^----------------!').toBe('-'); // begins at 14
      expectObservable(during(limit, next)).toBe('       27ms x|'); // given up at 17
    });
  });

  it('takes a plain operator for a limit too', () => {
    const scheduler = virtualTime();
    scheduler.run(({ cold, expectObservable }) => {
      expectObservable(during((source) => source, cold('--a|'))).toBe('--a|');
    });
  });

  it('tells the end to who was told the start', () => {
    const scheduler = virtualTime();
    const told: string[] = [];
    scheduler.run(({ cold }) => {
      const onStart = (at: number) => {
        told.push(`start ${at}`);
        return (end: number) => void told.push(`end ${end}`);
      };
      const limit = tokenBucket({ capacity: 1, windowMs: 10, scheduler, onStart });
      during(limit, cold('---(a|)')).subscribe();
    });
    expect(told).toEqual(['start 0', 'end 3']);
  });
});
