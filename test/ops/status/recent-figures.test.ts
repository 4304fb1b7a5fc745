import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Durations, quantile, TimeSlots } from '../../../src/ops/status/recent-figures.ts';

describe('TimeSlots', () => {
  const slots = () => {
    let at = 10_000;
    const now = () => at;
    const made = new TimeSlots(now, 1_000, 3, () => ({ n: 0 }));
    const past = () => made.past().map(({ n }) => n);
    return {
      endsAt: () => made.endsAt(),
      past,
      add: (n: number) => (made.current().n += n),
      pass: (ms: number) => (at += ms),
    };
  };

  it('keeps the newest complete slots, and the one that runs apart from them', () => {
    const { add, pass, past, endsAt } = slots();
    add(1);
    pass(999);
    add(2);
    expect(past()).toEqual([0, 0, 0]);
    pass(1);
    expect(past()).toEqual([0, 0, 3]);
    expect(endsAt()).toBe(11_000);
    add(4);
    pass(2_000);
    expect(past()).toEqual([3, 4, 0]);
    pass(1_000);
    expect(past()).toEqual([4, 0, 0]);
  });

  it('is empty after a pause that is longer than all of it, however long', () => {
    const { add, pass, past, endsAt } = slots();
    add(1);
    pass(1e12);
    expect(past()).toEqual([0, 0, 0]);
    expect(endsAt()).toBe(10_000 + 1e12);
    add(2);
    pass(1_000);
    expect(past()).toEqual([0, 0, 2]);
  });
});

function of(...lengths: number[]) {
  const all = new Durations();
  lengths.forEach((ms) => all.add(ms));
  return all;
}

describe('durations', () => {
  it('tell any quantile to a tenth, of several together too', () => {
    const length = fc.double({ min: 1, max: 1e12, noNaN: true });
    fc.assert(
      fc.property(
        fc.array(fc.array(length), { minLength: 1, maxLength: 4 }),
        fc.constantFrom(0.5, 0.95, 1),
        (groups, share) => {
          const sorted = groups.flat().sort((a, b) => a - b);
          const exact = sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
          const told = quantile(
            groups.map((group) => of(...group)),
            share,
          );
          const ratio = exact === undefined ? told : told! / exact;
          if (exact === undefined) expect(told).toBeNull();
          else expect(Math.abs(ratio! - 1)).toBeLessThan(0.1);
        },
      ),
    );
  });

  it('know what is shorter than a millisecond, and longer than a life', () => {
    expect(quantile([of(0, 0, 0.4)], 0.5)).toBe(0);
    expect(quantile([of(1e18)], 0.5)).toBeGreaterThan(4e12);
    expect(quantile([of(1e18)], 0.5)).toBeLessThan(5e12);
  });

  it('take no more room for a million than for the buckets', () => {
    const all = new Durations();
    for (let n = 0; n < 1_000_000; n++) all.add((n * 7_919) ** 2);
    expect(all.buckets.size).toBeLessThanOrEqual(161);
  });
});
