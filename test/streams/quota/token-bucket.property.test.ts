import {
  catchError,
  defer,
  EMPTY,
  mergeMap,
  NEVER,
  of,
  range,
  Subject,
  takeUntil,
  throwError,
  timer,
} from 'rxjs';
import type { Observable } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { during, tokenBucket } from '../../../src/streams/quota/token-bucket.ts';
import { mulberry32 } from '../../support/chance.ts';
import { scaled } from '../../support/scale.ts';
import { virtualTime } from '../../support/virtual-time.ts';
import { linearBucket } from './linear-bucket.ts';

const SEEDS = Array.from({ length: scaled(30, 300) }, (_, k) => k + 1);

describe('tokenBucket', () => {
  it.each(SEEDS)('starts when a walk through all starts says so: seed %i', (seed) => {
    const capacity = 1 + Math.floor(mulberry32(seed)() * 12);
    const windowMs = 1_000;

    /** All that happens, with a bucket or the other; no answer, which would count from before its end. */
    const run = (isLinear: boolean) => {
      const random = mulberry32(seed);
      const below = (most: number) => Math.floor(random() * most);
      const scheduler = virtualTime();
      const told: string[] = [];
      scheduler.run(() => {
        const starts = Array.from({ length: below(capacity + 1) }, () => below(3_000) - 2_000);
        const shares = [capacity, 1 + below(capacity), 1 + below(capacity)];
        const options = { capacity, windowMs, scheduler, starts };
        const bucket = isLinear ? linearBucket(options) : tokenBucket(options);
        const lanes = shares.map((share, rank) =>
          'during' in bucket ? bucket.lane({ rank, share }) : bucket.lane(rank, share),
        );
        for (let k = 0; k < 200; k++) {
          const at = below(20_000);
          const lane = below(3);
          const tookMs = random() < 0.3 ? 0 : below(random() < 0.1 ? 3_000 : 200);
          const isGivenUp = random() < 0.3;
          const gone$ = new Subject<void>();
          const work = defer((): Observable<never> => {
            told.push(`${k} at ${scheduler.now()}`);
            if (isGivenUp) {
              scheduler.schedule(() => gone$.next(), tookMs);
              return NEVER;
            }
            return timer(tookMs, scheduler).pipe(mergeMap(() => throwError(() => 'failed')));
          });
          scheduler.schedule(() => {
            lanes[lane]!.during!(work)
              .pipe(
                takeUntil(gone$),
                catchError(() => EMPTY),
              )
              .subscribe();
          }, at);
        }
        if (random() < 0.5) {
          // Where all that counts is under way the walk forgets one of them.
          // A window full of starts of somebody else, as the service counts its predecessor's.
          const others = () => {
            if (bucket.used() === capacity) return;
            if ('count' in bucket) bucket.count(Array<number>(capacity).fill(scheduler.now()));
            else bucket.exhaust();
          };
          scheduler.schedule(others, below(20_000) + 0.5);
        }
        for (let k = 0; k < 100; k++) {
          scheduler.schedule(() => told.push(`used ${bucket.used()}`), below(30_000) + 0.5);
        }
      });
      return told;
    };
    expect(run(false)).toEqual(run(true));
  });

  it('costs no more a start where many are allowed', { timeout: 120_000 }, () => {
    const capacity = 16_000;
    const scheduler = virtualTime();
    let started = 0;
    const beganAt = performance.now();
    scheduler.run(() => {
      const bucket = tokenBucket({ capacity, windowMs: 1_000, scheduler });
      bucket.count(Array<number>(capacity).fill(scheduler.now()));
      const lane = bucket.lane({ rank: 1, share: capacity - 1 });
      const work = defer(() => {
        started += 1;
        return of(1);
      });
      range(2 * capacity)
        .pipe(mergeMap(() => during(lane, work), 10))
        .subscribe();
    });
    expect(started).toBe(2 * capacity);
    // Less than a second on a machine at rest. By walking through all that are allowed the time would grow with the square of their number.
    expect(performance.now() - beganAt).toBeLessThan(5_000);
  });
});
