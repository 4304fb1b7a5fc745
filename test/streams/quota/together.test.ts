import { concat, delay, EMPTY, of, throwError, timer } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { CellarstreamError } from '../../../src/core/errors.ts';
import { COSTS_NOTHING, during, sharedBucket } from '../../../src/streams/quota/token-bucket.ts';
import { virtualTime } from '../../support/virtual-time.ts';

describe('lanes of several buckets together', () => {
  it('start a request when all of them allow it, and take no token before', () => {
    const scheduler = virtualTime();
    scheduler.run(({ cold, expectObservable }) => {
      const wide = sharedBucket({ capacity: 5, windowMs: 100, scheduler });
      const narrow = sharedBucket({ capacity: 1, windowMs: 10, scheduler });
      const both = wide.together([narrow]);
      expectObservable(during(both, cold('(a|)'))).toBe('(a|)');
      expectObservable(during(both, cold('(b|)'))).toBe('10ms (b|)');
      expectObservable(during(both, cold('(c|)'))).toBe('20ms (c|)');
      scheduler.schedule(() => expect([wide.used(), narrow.used()]).toEqual([1, 1]), 9);
      scheduler.schedule(() => expect([wide.used(), narrow.used()]).toEqual([3, 1]), 21);
    });
  });

  it('lose no token to a request that is given up while it waits', () => {
    const scheduler = virtualTime();
    scheduler.run(({ cold, expectObservable }) => {
      const wide = sharedBucket({ capacity: 2, windowMs: 1_000, scheduler });
      const narrow = sharedBucket({ capacity: 1, windowMs: 10, scheduler });
      const both = wide.together([narrow]);
      expectObservable(during(both, cold('(a|)'))).toBe('(a|)');
      expectObservable(during(both, cold('(b|)')), '^----!').toBe('-');
      scheduler.schedule(() => expect(wide.used()).toBe(1), 6);
      expectObservable(timer(8).pipe(() => during(both, cold('(c|)')))).toBe('10ms (c|)');
    });
  });

  it('do not hold up a request of the same lane that waits for another bucket', () => {
    const scheduler = virtualTime();
    scheduler.run(({ cold, expectObservable }) => {
      const all = sharedBucket({ capacity: 5, windowMs: 100, scheduler });
      const lane = all.lane({ rank: 1 });
      const [one, other] = [1, 2].map(() => sharedBucket({ capacity: 1, windowMs: 10, scheduler }));
      expectObservable(during(lane.together([one!]), cold('(a|)'))).toBe('(a|)');
      expectObservable(during(lane.together([one!]), cold('(b|)'))).toBe('10ms (b|)');
      expectObservable(during(lane.together([other!]), cold('(c|)'))).toBe('(c|)');
    });
  });

  it('serve the lane with the lowest rank first, whichever list it belongs to', () => {
    const scheduler = virtualTime();
    scheduler.run(({ cold, expectObservable }) => {
      const all = sharedBucket({ capacity: 1, windowMs: 10, scheduler });
      const [sweep, poll] = [all.lane({ rank: 3 }), all.lane({ rank: 0 })];
      const [orders, products] = [1, 2].map(() =>
        sharedBucket({ capacity: 5, windowMs: 100, scheduler }),
      );
      expectObservable(during(sweep.together([orders!]), cold('(a|)'))).toBe('(a|)');
      expectObservable(during(sweep.together([orders!]), cold('(b|)'))).toBe('20ms (b|)');
      expectObservable(during(poll.together([products!]), cold('(c|)'))).toBe('10ms (c|)');
    });
  });

  it('keep the share of each lane', () => {
    const scheduler = virtualTime();
    scheduler.run(({ cold, expectObservable }) => {
      const all = sharedBucket({ capacity: 9, windowMs: 50, scheduler });
      const own = sharedBucket({ capacity: 9, windowMs: 100, scheduler });
      const both = all.lane({ rank: 1, share: 3 }).together([own.lane({ rank: 1, share: 1 })]);
      expectObservable(during(both, cold('(a|)'))).toBe('(a|)');
      expectObservable(during(both, cold('(b|)'))).toBe('100ms (b|)');
      expectObservable(during(own, cold('(c|)'))).toBe('(c|)');
    });
  });

  it('wake up a gate of another bucket that is closed', () => {
    const scheduler = virtualTime();
    scheduler.run(() => {
      let isWanted = false;
      const opened$ = EMPTY;
      const gate = { opensAt: () => Infinity, want: () => (isWanted = true), opened$ };
      const closed = sharedBucket({ capacity: 1, windowMs: 10, scheduler, gate });
      const open = sharedBucket({ capacity: 1, windowMs: 10, scheduler });
      during(open.together([closed]), of(1)).subscribe(() => expect.unreachable());
      expect(isWanted).toBe(true);
    });
  });

  it('go on soon after a request of another bucket has ended whose answer took longer than the window', () => {
    const scheduler = virtualTime();
    const starts: number[] = [];
    scheduler.run(() => {
      const [one, other] = [1, 2].map(() =>
        sharedBucket({ capacity: 9, windowMs: 100, scheduler }),
      );
      const shared = sharedBucket({ capacity: 1, windowMs: 10, scheduler });
      const slow$ = of(1).pipe(delay(40, scheduler));
      const requests = Array.from({ length: 60 }, (_, k) =>
        during((k % 2 ? one! : other!).together([shared]), slow$),
      );
      concat(...requests).subscribe(() => starts.push(scheduler.now()));
      during(other!.together([shared]), slow$).subscribe();
    });
    expect(starts).toHaveLength(60);
    expect(starts.at(-1)! - starts.at(-11)!).toBeLessThanOrEqual(10 * (40 + 10 + 1));
  });
});

describe('a request that cost nothing', () => {
  it('gives its token back when it ends', () => {
    const scheduler = virtualTime();
    scheduler.run(({ expectObservable }) => {
      const bucket = sharedBucket({ capacity: 1, windowMs: 100, lateMs: 50, scheduler });
      const context = { [COSTS_NOTHING]: true };
      const free = new CellarstreamError('API_STATUS', 'not modified', { context });
      const failing = concat(
        timer(5, scheduler),
        throwError(() => free),
      );
      expectObservable(during(bucket, failing)).toBe('5ms (0#)', { 0: 0 }, free);
      expectObservable(during(bucket, of('a'))).toBe('5ms (a|)');
    });
  });
});
