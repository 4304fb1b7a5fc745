import { describe, expect, it } from 'vitest';
import {
  AnswerAges,
  isStale,
  MAX_LAG_MS,
  oldestOf,
} from '../../../src/streams/http/response-age.ts';

const LATENCY_MS = 200;
/** The server's clock ahead of the local one, ms. */
const AHEAD_MS = 3_600_000;
const FIVE_MINUTES = 300_000;

/** Answers to requests that are sent at a local time, ms. */
function answers() {
  const ages = new AnswerAges();
  return {
    /** `behind`: how far the answer's `Date` is behind the server's clock, ms. */
    asked: (askedAt: number, { behind = 0, ageMs }: { behind?: number; ageMs?: number } = {}) => {
      const date = Math.floor((askedAt + LATENCY_MS / 2 + AHEAD_MS - behind) / 1_000) * 1_000;
      return ages.of({ askedAt, elapsedMs: LATENCY_MS, date, ageMs });
    },
    undated: (askedAt: number, ageMs?: number) =>
      ages.of({ askedAt, elapsedMs: LATENCY_MS, date: undefined, ageMs }),
  };
}

describe('the age of an answer', () => {
  it('is none where it is of its own time, whatever the clocks say', () => {
    const { asked, undated } = answers();
    for (const askedAt of [0, 999, 1_000, 60_500]) {
      expect(asked(askedAt)).toEqual({ asOf: askedAt, staleMs: 0, dateLagMs: 0 });
    }
    expect(undated(5)).toMatchObject({ asOf: 5, staleMs: 0 });
  });

  it('is that of its Age header', () => {
    const { asked, undated } = answers();
    expect(asked(1_000_000, { ageMs: FIVE_MINUTES })).toMatchObject({ asOf: 700_000 });
    expect(undated(1_000_000, FIVE_MINUTES)).toMatchObject({ asOf: 700_000 });
  });

  it('shows where a cache sends no Age, and passes on the Date of the origin', () => {
    const { asked } = answers();
    asked(0);
    const { staleMs, asOf } = asked(400_000, { behind: FIVE_MINUTES });
    expect(staleMs).toBeGreaterThan(FIVE_MINUTES - 3_000);
    expect(staleMs).toBeLessThanOrEqual(FIVE_MINUTES);
    expect(asOf).toBe(400_000 - staleMs);
    expect(asked(401_000).staleMs).toBe(0);
    // The same page from the cache, again and again, is older each time.
    for (let later = 0; later < FIVE_MINUTES; later += 10_000) {
      expect(isStale(asked(401_000 + later, { behind: FIVE_MINUTES + later }))).toBe(true);
    }
  });

  it('is the larger of both', () => {
    const { asked } = answers();
    asked(0);
    expect(asked(60_000, { behind: 40_000, ageMs: 20_000 }).staleMs).toBeGreaterThan(35_000);
    expect(asked(60_000, { behind: 20_000, ageMs: 40_000 }).staleMs).toBe(40_000);
  });

  it('is not taken from a Date that is behind by less than a replica may lag', () => {
    const { asked } = answers();
    asked(0);
    expect(asked(60_000, { behind: MAX_LAG_MS - 1_000 }).staleMs).toBe(0);
  });

  it('is none once the clock has been set back for a while', () => {
    const { asked } = answers();
    asked(0);
    const stale = [1, 2, 3, 20, 29, 32, 40].map((second) =>
      isStale(asked(second * 1_000, { behind: 60_000 })),
    );
    expect(stale).toEqual([true, true, true, true, true, false, false]);
    expect(isStale(asked(41_000, { behind: 120_000 }))).toBe(true);
  });

  it('is none of backends that answer in turn, once their clocks are known', () => {
    const { asked } = answers();
    for (let second = 0; second < 120; second += 1) {
      const behind = (second % 3) * 30_000;
      const stale = isStale(asked(second * 1_000, { behind }));
      if (behind === 0 || second > 40) expect([second, stale]).toEqual([second, false]);
    }
  });
});

describe('an answer with the Date of an earlier one', () => {
  const SECOND = 1_000;
  const asking = () => {
    const ages = new AnswerAges();
    return (address: string, askedAt: number, madeAt: number) =>
      ages.of({
        askedAt,
        elapsedMs: LATENCY_MS,
        date: Math.floor(madeAt / SECOND) * SECOND,
        ageMs: undefined,
        address,
      }).staleMs;
  };

  it('to the same request is that one, as old as its request', () => {
    const staleOf = asking();
    expect(staleOf('/a', 50_100, 50_200)).toBe(0);
    expect(staleOf('/a', 54_100, 50_200)).toBe(4_000);
    expect(staleOf('/a', 70_100, 50_200)).toBe(20_000);
    expect(staleOf('/a', 95_100, 95_200)).toBe(0);
  });

  it('within the second of that Date is another one', () => {
    const staleOf = asking();
    expect(staleOf('/a', 50_000, 50_000)).toBe(0);
    expect(staleOf('/a', 50_900, 50_900)).toBe(0);
  });

  it('to another request is of its own time', () => {
    const staleOf = asking();
    expect(staleOf('/a', 50_000, 50_000)).toBe(0);
    expect(staleOf('/b', 54_000, 50_000)).toBe(0);
  });

  it('is as much older as it was behind when it was seen first', () => {
    const staleOf = asking();
    staleOf('/b', 100_000, 100_000);
    expect(staleOf('/a', 100_100, 50_000)).toBeGreaterThan(48_000);
    expect(staleOf('/a', 105_100, 50_000)).toBeGreaterThan(53_000);
  });

  it('is never taken for one of a slow clock, however regularly it is as old', () => {
    const staleOf = asking();
    for (let filledAt = 0; filledAt < 10 * 60_000; filledAt += 40_000) {
      expect(staleOf('/a', filledAt, filledAt)).toBe(0);
      expect(staleOf('/a', filledAt + 20_000, filledAt)).toBe(20_000);
    }
  });
});

describe('an answer that is made of several', () => {
  it('is as old as the oldest of them', () => {
    const ages = [{ asOf: 5, staleMs: 7 }, undefined, { asOf: 3, staleMs: 2 }];
    expect(oldestOf(ages)).toEqual({ asOf: 3, staleMs: 7 });
    expect(oldestOf([undefined])).toBeUndefined();
  });
});
