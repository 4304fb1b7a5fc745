import { describe, expect, it } from 'vitest';
import { timeSlots } from '../../../src/ops/status/recent-figures.ts';

describe('timeSlots', () => {
  const slots = () => {
    let at = 10_000;
    const made = timeSlots({ everyMs: 1_000, count: 3, now: () => at, empty: () => ({ n: 0 }) });
    const past = () => made.past().map(({ n }) => n);
    return {
      ...made,
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
