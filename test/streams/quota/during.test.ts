import { catchError, defer, delay, EMPTY, mergeMap, range, repeat, throwError, timer } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { during, tokenBucket } from '../../../src/streams/quota/token-bucket.ts';
import { mulberry32 } from '../../support/chance.ts';
import { virtualTime } from '../../support/virtual-time.ts';

const CAPACITY = 10;
const WINDOW = 1_000;

/** Most of these times within any window that is open at its end. */
function mostInAnyWindow(times: readonly number[], windowMs = WINDOW): number {
  const sorted = [...times].sort((a, b) => a - b);
  let first = 0;
  return sorted.reduce((most, at, k) => {
    while (sorted[first]! <= at - windowMs) first++;
    return Math.max(most, k - first + 1);
  }, 0);
}

/** Requests of two lanes to a server, for so long: when they arrived, and how many were answered. */
function asked(
  forMs: number,
  options: {
    readonly capacity: number;
    readonly windowMs: number;
    readonly waiters: number;
    /** From the start to the arrival, and from there to the answer, at a time, ms. */
    readonly thereMs: (at: number) => number;
    readonly backMs: (at: number) => number;
    readonly isFailure?: () => boolean;
    /** Default as late as an answer would be there. */
    readonly failsAfterMs?: number;
  },
): number[] {
  const { capacity, windowMs, waiters, thereMs, backMs, isFailure = () => false } = options;
  const scheduler = virtualTime();
  const arrivals: number[] = [];
  scheduler.run(() => {
    const bucket = tokenBucket({ capacity, windowMs, scheduler });
    const lanes = [bucket, bucket.lane({ rank: 1, share: Math.ceil(capacity / 2) })];
    const request = defer(() => {
      const there = Math.round(thereMs(scheduler.now()));
      const arrival = scheduler.now() + there;
      arrivals.push(arrival);
      const took = there + Math.round(backMs(arrival));
      if (!isFailure()) return timer(took, scheduler);
      const failed$ = timer(options.failsAfterMs ?? took, scheduler);
      return failed$.pipe(mergeMap(() => throwError(() => 'failed')));
    });
    for (const lane of lanes) {
      const one = defer(() => during(lane, request)).pipe(catchError(() => EMPTY));
      range(waiters)
        .pipe(mergeMap(() => one.pipe(repeat())))
        .subscribe();
    }
    scheduler.maxFrames = forMs;
  });
  return arrivals.filter((at) => at < forMs);
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

  it('gives it back later by what such a request may still be on its way', () => {
    const scheduler = virtualTime();
    scheduler.run(({ cold, expectObservable }) => {
      const limit = tokenBucket({ capacity: 1, windowMs: 10, lateMs: 5, scheduler });
      expectObservable(during(limit, cold('----#'))).toBe('            ----#');
      expectObservable(during(limit, cold('--------')), '^----------------------!').toBe('-'); // begins at 19
      expectObservable(during(limit, cold('(x|)'))).toBe('38ms (x|)'); // given up at 23
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

  describe('where answers take long', () => {
    const MINUTE = 60_000;
    const windowMs = MINUTE + 200;

    it.each([50, 600, 2_000, 5_000])('costs next to nothing of the quota: %i ms', (tookMs) => {
      const arrivals = asked(20 * MINUTE, {
        capacity: 100,
        windowMs,
        waiters: 10,
        thereMs: () => 20,
        backMs: () => tookMs - 20,
      });
      expect(mostInAnyWindow(arrivals, MINUTE)).toBeLessThanOrEqual(100);
      expect(arrivals.filter((at) => at >= MINUTE).length / 19).toBeGreaterThanOrEqual(97);
    });

    it('costs no more where requests fail at once now and then', () => {
      const random = mulberry32(1);
      const arrivals = asked(20 * MINUTE, {
        capacity: 100,
        windowMs,
        waiters: 10,
        thereMs: () => 0,
        backMs: () => 5_000,
        isFailure: () => random() < 0.03,
        failsAfterMs: 1,
      });
      expect(mostInAnyWindow(arrivals, MINUTE)).toBeLessThanOrEqual(100);
      expect(arrivals.filter((at) => at >= MINUTE).length / 19).toBeGreaterThanOrEqual(97);
    });

    it('counts a burst in full that a stall has held up as a whole', () => {
      const arrivals = asked(3 * MINUTE, {
        capacity: 20,
        windowMs,
        waiters: 30,
        thereMs: (at) => Math.max(10, 10_000 - at),
        backMs: () => 50,
      });
      expect(arrivals.length).toBeGreaterThan(40);
      expect(mostInAnyWindow(arrivals, MINUTE)).toBeLessThanOrEqual(20);
    });

    it.each(Array.from({ length: 60 }, (_, k) => k + 1))(
      'keeps the quota, however the server and the network behave: seed %i',
      (seed) => {
        const random = mulberry32(seed);
        const pick = <T>(...all: T[]) => all[Math.floor(random() * all.length)]!;
        const capacity = pick(5, 20, 60);
        const [way, jitter] = [pick(5, 50, 400, 2_000), pick(0, 50, 200)];
        const failures = pick(0, 0.05);
        /** Either the server changes from one moment to the next, or the network stands still at times. */
        const isServer = random() < 0.5;
        const stalls = isServer ? 0 : pick(0, 0.03, 0.2);
        const server = { backMs: pick(20, 600, 5_000, 15_000), varies: pick(0, 0.2, 3) };
        const phases = Array.from({ length: 40 }, () => ({
          lengthMs: 5_000 + random() * pick(20_000, 120_000),
          ...server,
          ...(isServer && { backMs: pick(20, 600, 5_000, 15_000), varies: pick(0, 0.2, 3) }),
          standsStillMs: !isServer && random() < 0.3 ? random() * 20_000 : 0,
        }));
        const phaseAt = (at: number) => {
          let beganAt = 0;
          for (const phase of phases) {
            if (at < beganAt + phase.lengthMs) return { ...phase, beganAt };
            beganAt += phase.lengthMs;
          }
          return { ...phases[0]!, beganAt };
        };
        const arrivals = asked(20 * MINUTE, {
          capacity,
          windowMs,
          waiters: pick(1, 3, 10),
          thereMs: (at) => {
            const { beganAt, standsStillMs } = phaseAt(at);
            const still = Math.max(0, beganAt + standsStillMs - at);
            return way + random() * jitter + still + (random() < stalls ? random() * 10_000 : 0);
          },
          backMs: (at) => {
            const { backMs, varies } = phaseAt(at);
            return backMs * (1 + random() * varies);
          },
          isFailure: () => random() < failures,
        });
        expect(arrivals.length).toBeGreaterThan(50);
        expect(mostInAnyWindow(arrivals, MINUTE)).toBeLessThanOrEqual(capacity);
      },
    );

    it('counts what began before from later as soon as one answer is quicker', () => {
      const arrivals = asked(4 * MINUTE, {
        capacity: 30,
        windowMs,
        waiters: 30,
        thereMs: (at) => (at < 1.5 * MINUTE ? 3_000 : 10), // a way there that was long for a minute
        backMs: () => 50,
      });
      expect(mostInAnyWindow(arrivals, MINUTE)).toBeLessThanOrEqual(31); // the one that shows it
    });
  });
});
