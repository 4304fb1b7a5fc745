import { concatMap, from, repeat, timer } from 'rxjs';
import type { SchedulerLike } from 'rxjs';
import { TestScheduler } from 'rxjs/testing';
import { describe, expect, it, vi } from 'vitest';
import { during, tokenBucket } from '../../../src/streams/quota/token-bucket.ts';

const virtualTime = () => new TestScheduler((actual, expected) => expect(actual).toEqual(expected));

describe('tokenBucket', () => {
  it('starts `capacity` values at once, the next when a token is `windowMs` old', () => {
    const scheduler = virtualTime();
    scheduler.run(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('(abcde|)               ');
      const subs = '       (^!)                   ';
      const expected = '   (ab) 6ms (cd) 6ms (e|) '; // a group is 4 frames wide: 4 + 6 = 10
      const limit = tokenBucket({ capacity: 2, windowMs: 10, scheduler });

      expectObservable(source.pipe(limit)).toBe(expected);
      expectSubscriptions(source.subscriptions).toBe(subs);
    });
  });

  it('slides: a burst across the edge of a window gains nothing', () => {
    const scheduler = virtualTime();
    scheduler.run(({ cold, expectObservable }) => {
      const source = cold('a--------(bcd|)      ');
      const expected = '   a--------bc--------(d|)'; // a fixed window would give b, c, d in 2 ms
      const limit = tokenBucket({ capacity: 2, windowMs: 10, scheduler });

      expectObservable(source.pipe(limit)).toBe(expected);
    });
  });

  it('is one quota for all its pipes, which take turns', () => {
    const scheduler = virtualTime();
    scheduler.run(({ cold, expectObservable }) => {
      const limit = tokenBucket({ capacity: 1, windowMs: 10, scheduler });
      const orders = cold('  (abc|)').pipe(limit);
      const products = cold('(p|)').pipe(limit);

      expectObservable(orders).toBe('  a 9ms b 19ms (c|)');
      expectObservable(products).toBe('20ms (p|)        ');
    });
  });

  it('tells how many starts count: of the last window, and under way', () => {
    const scheduler = virtualTime();
    const used: number[] = [];
    scheduler.run(({ cold, hot }) => {
      const limit = tokenBucket({ capacity: 3, windowMs: 10, scheduler });
      cold('ab|').pipe(limit).subscribe();
      during(limit, timer(15, scheduler)).subscribe();
      hot('--x--------y---z-----------z', {}).subscribe(() => used.push(limit.used()));
    });
    // Three began; the first two are old after 10 ms, the third counts until 10 ms after its end at 15.
    expect(used).toEqual([3, 1, 1, 0]);
  });

  it('is not refilled by a resubscription', () => {
    const scheduler = virtualTime();
    scheduler.run(({ cold, expectObservable }) => {
      const limit = tokenBucket({ capacity: 1, windowMs: 10, scheduler });
      const source = cold('(a|)').pipe(limit, repeat(2));

      expectObservable(source).toBe('a 9ms (a|)');
    });
  });

  it('gives up its place and its timer when unsubscribed', () => {
    const scheduler = virtualTime();
    const clock = hasty(scheduler, 0);
    const timers = vi.spyOn(clock, 'schedule');
    scheduler.run(({ cold, expectObservable }) => {
      const limit = tokenBucket({ capacity: 1, windowMs: 10, scheduler: clock });
      const source = cold('(ab|)').pipe(limit);

      expectObservable(source, '    ^---!').toBe('a               ');
      expectObservable(source, '6ms ^    ').toBe('10ms a 9ms (b|) ');
    });
    expect(timers.mock.results[0]?.value).toHaveProperty('closed', true);
    expect(timers).toHaveBeenCalledTimes(3); // for the b that left, then for a and b
  });

  it('keeps no timer when nobody waits any more, and keeps it while somebody does', () => {
    const scheduler = virtualTime();
    const clock = hasty(scheduler, 0);
    const timers = vi.spyOn(clock, 'schedule');
    scheduler.run(({ cold, expectObservable }) => {
      const limit = tokenBucket({ capacity: 1, windowMs: 10, scheduler: clock });
      const timer = () => timers.mock.results[0]?.value as unknown;

      expectObservable(cold('(ab|)').pipe(limit), '^---!').toBe('a               ');
      expectObservable(cold('(c|) ').pipe(limit), '^----!').toBe('               ');
      scheduler.schedule(() => expect(timer()).toHaveProperty('closed', false), 4);
      scheduler.schedule(() => expect(timer()).toHaveProperty('closed', true), 6);
    });
    expect(timers).toHaveBeenCalledTimes(1);
  });

  it('serves who is left when another gives up its place', () => {
    const scheduler = virtualTime();
    scheduler.run(({ cold, expectObservable }) => {
      const limit = tokenBucket({ capacity: 1, windowMs: 10, scheduler });
      limit.lane({ rank: 1 }); // in which nobody waits

      expectObservable(cold('(ab|)').pipe(limit), '^---!').toBe('a               ');
      expectObservable(cold('-(c|)').pipe(limit)).toBe('         10ms (c|)        ');
    });
  });

  it('sets one timer per wait, however many wait', () => {
    const scheduler = virtualTime();
    const clock = hasty(scheduler, 0);
    const timers = vi.spyOn(clock, 'schedule');
    scheduler.run(({ cold }) => {
      const limit = tokenBucket({ capacity: 2, windowMs: 10, scheduler: clock });
      cold('(abc|)').pipe(limit).subscribe();
      cold('(de|)').pipe(limit).subscribe();
    });
    expect(timers).toHaveBeenCalledTimes(2); // at 0 ms and at 10 ms; at 20 ms nobody waits
  });

  it('mirrors never, empty and error', () => {
    const scheduler = virtualTime();
    scheduler.run(({ cold, expectObservable }) => {
      const limit = tokenBucket({ capacity: 1, windowMs: 10, scheduler });

      expectObservable(cold('-').pipe(limit)).toBe('-');
      expectObservable(cold('--|').pipe(limit)).toBe('--|');
      expectObservable(cold('(ab)-#').pipe(limit)).toBe('a----#'); // b still waited, and is lost
    });
  });

  it.each([
    ['exact timers', 0],
    ['timers that fire 1 ms early', 1],
  ])('starts each value as early as the limit allows, with %s', (_, earlyMs) => {
    const [capacity, windowMs] = [100, 60_000];
    const arrivals = bursts(5_000);
    const starts: number[] = [];
    const scheduler = virtualTime();
    scheduler.run(() => {
      const limit = tokenBucket({ capacity, windowMs, scheduler: hasty(scheduler, earlyMs) });
      const source = from(arrivals).pipe(concatMap((at) => timer(at - scheduler.now())));
      source.pipe(limit).subscribe(() => starts.push(scheduler.now()));
    });

    const earliest: number[] = []; // the promise itself, worked out without a bucket
    arrivals.forEach((at, k) => {
      earliest.push(
        Math.max(at, earliest[k - 1] ?? 0, (earliest[k - capacity] ?? -windowMs) + windowMs),
      );
    });
    expect(starts).toEqual(earliest);
  });

  it('goes on from the starts of an earlier bucket, and tells of its own', () => {
    const scheduler = virtualTime();
    scheduler.run(({ cold, expectObservable }) => {
      const told: number[] = [];
      const starts = [5, -8, 99]; // the clock has gone back since: 5 and 99 count as now
      const limit = tokenBucket({
        capacity: 3,
        windowMs: 10,
        scheduler,
        starts,
        onStart: (at) => void told.push(at),
      });

      expectObservable(cold('(abc|)').pipe(limit)).toBe('--a 7ms (bc|)');
      scheduler.schedule(() => expect(told).toEqual([2, 10, 10]), 11);
    });
  });

  it('counts the starts of an earlier bucket from the oldest, in whatever order they come', () => {
    const scheduler = virtualTime();
    scheduler.run(({ cold, expectObservable }) => {
      const starts = [-2, -8, -5];
      const limit = tokenBucket({ capacity: 3, windowMs: 10, scheduler, starts });

      expectObservable(cold('(abc|)').pipe(limit)).toBe('--a--b--(c|)');
    });
  });

  it('starts nothing for a window once somebody else has used it up', () => {
    const scheduler = virtualTime();
    scheduler.run(({ cold, expectObservable }) => {
      const limit = tokenBucket({ capacity: 2, windowMs: 10, scheduler });
      scheduler.schedule(() => limit.count([3, 3]), 3);
      expectObservable(cold('-----(abc|)').pipe(limit)).toBe('13ms (ab) 6ms (c|)');
      const silent = tokenBucket({ capacity: 1, windowMs: 10, scheduler });
      silent.count([0]);
      expectObservable(cold('(a|)').pipe(silent)).toBe('10ms (a|)');
    });
  });

  describe('lane', () => {
    it('has the next token before the lanes of higher rank, whoever came first', () => {
      const scheduler = virtualTime();
      scheduler.run(({ cold, expectObservable }) => {
        const limit = tokenBucket({ capacity: 1, windowMs: 10, scheduler });
        const backfill = cold('(abc|)  ').pipe(limit.lane({ rank: 1 }));
        const poll = cold('    --p----q|').pipe(limit);

        expectObservable(backfill).toBe('a 29ms b 9ms (c|)');
        expectObservable(poll).toBe('    10ms p 9ms (q|)');
      });
    });

    it('never takes more than its share of any window, though tokens are left', () => {
      const scheduler = virtualTime();
      scheduler.run(({ cold, expectObservable }) => {
        const limit = tokenBucket({ capacity: 3, windowMs: 10, scheduler });
        const backfill = cold('(abcde|)').pipe(limit.lane({ rank: 1, share: 2 }));
        const poll = cold('    ---p----(qr|)').pipe(limit);

        expectObservable(backfill).toBe('(ab) 9ms c 6ms d 2ms (e|)'); // e waits for c's, not p's
        expectObservable(poll).toBe('    ---p 6ms (qr|)');
      });
    });

    it('leaves the lanes of higher rank what its own share keeps it from', () => {
      const scheduler = virtualTime();
      scheduler.run(({ cold, expectObservable }) => {
        const limit = tokenBucket({ capacity: 2, windowMs: 10, scheduler });
        const poll = cold(' (pq|)').pipe(limit.lane({ rank: 0, share: 1 }));
        const sweep = cold('---(abc|)').pipe(limit.lane({ rank: 1 }));

        expectObservable(poll).toBe(' p 9ms (q|)');
        expectObservable(sweep).toBe('---a 9ms b 6ms (c|)'); // at 3, 13 and 20 ms
      });
    });

    it('goes by rank, not by when it was made', () => {
      const scheduler = virtualTime();
      scheduler.run(({ cold, expectObservable }) => {
        const limit = tokenBucket({ capacity: 1, windowMs: 10, scheduler, starts: [0] });
        const last = limit.lane({ rank: 2 });
        const first = limit.lane({ rank: -1 });
        const middle = limit.lane({ rank: 1 });

        expectObservable(cold('(a|)').pipe(last)).toBe('40ms (a|)');
        expectObservable(cold('(b|)').pipe(middle)).toBe('30ms (b|)');
        expectObservable(cold('(c|)').pipe(limit)).toBe('20ms (c|)');
        expectObservable(cold('(d|)').pipe(first)).toBe('10ms (d|)');
      });
    });

    it('is woken for whoever can start first', () => {
      const scheduler = virtualTime();
      scheduler.run(({ cold, expectObservable }) => {
        const limit = tokenBucket({ capacity: 2, windowMs: 10, scheduler });
        const sweep = cold('-----(ab|)').pipe(limit.lane({ rank: 1, share: 1 }));
        const poll = cold(' p-----(q|)').pipe(limit);

        expectObservable(sweep).toBe('-----a 9ms (b|)'); // at 5 and 15 ms
        expectObservable(poll).toBe(' p 9ms (q|)     ');
      });
    });

    it.each([0, 1.5, 4])('rejects a share of %s', (share) => {
      expect(() => tokenBucket({ capacity: 3, windowMs: 1 }).lane({ share })).toThrow(
        new RangeError(`share must be an integer from 1 to 3, got ${share}`),
      );
    });

    it.each([NaN, Infinity])('rejects a rank of %s', (rank) => {
      expect(() => tokenBucket({ capacity: 3, windowMs: 1 }).lane({ rank })).toThrow(
        new RangeError(`the rank of a lane of a token bucket must be a finite number, got ${rank}`),
      );
    });
  });

  it.each([0, -1, 1.5, NaN])('rejects a capacity of %s', (capacity) => {
    expect(() => tokenBucket({ capacity, windowMs: 1 })).toThrow(
      new RangeError(`capacity must be an integer >= 1, got ${capacity}`),
    );
  });

  it.each([0, -1, NaN, Infinity])('rejects a window of %s ms', (windowMs) => {
    expect(() => tokenBucket({ capacity: 1, windowMs })).toThrow(
      new RangeError(`windowMs must be a finite number > 0, got ${windowMs}`),
    );
  });
});

/** Arrival times in ms, ascending: bursts of 1-70, gaps of 0-2 s or 0-90 s; the same each run. */
function bursts(count: number): number[] {
  let seed = 1;
  const random = (below: number) => (seed = (seed * 48_271) % 0x7fffffff) % below;
  const times: number[] = [];
  for (let at = 0; times.length < count; at += random(2) ? random(2_000) : random(90_000)) {
    for (let n = random(70); n >= 0 && times.length < count; n--) times.push(at);
  }
  return times;
}

/** The same clock, with timers that fire `earlyMs` too soon (never at once: time must pass). */
function hasty(scheduler: TestScheduler, earlyMs: number): SchedulerLike {
  return {
    now: () => scheduler.now(),
    schedule: (work: () => void, delayMs = 0) =>
      scheduler.schedule(work, delayMs > earlyMs ? delayMs - earlyMs : delayMs),
  } as SchedulerLike;
}
