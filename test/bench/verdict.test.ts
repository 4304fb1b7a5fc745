import { describe, expect, it } from 'vitest';
import type { Measure } from '../../bench/support/measure.mjs';
import { misses, resultsOf } from '../../bench/support/result.mjs';
import { verdict } from '../../bench/support/verdict.mjs';

describe('a figure', () => {
  it('meets a target that its median is within, on either side', () => {
    expect(verdict([1.2, 1.25, 9], { atMost: 1.25 })).toBe('met');
    expect(verdict([80, 81, 10], { atLeast: 80 })).toBe('met');
  });

  it('is near where it misses by no more than its runs differ, and has missed beyond', () => {
    expect(verdict([1.2, 1.35, 1.4], { atMost: 1.25 })).toBe('near');
    expect(verdict([1.5, 1.52, 1.55], { atMost: 1.25 })).toBe('missed');
    expect(verdict([70, 78, 79], { atLeast: 80 })).toBe('near');
    expect(verdict([70, 71, 72], { atLeast: 80 })).toBe('missed');
  });

  it('of one run has no noise to hide behind; one of no run has missed', () => {
    expect(verdict([1.26], { atMost: 1.25 })).toBe('missed');
    expect(verdict([], { atMost: 1.25 })).toBe('missed');
  });

  it('that is a promise is met by each run or not at all', () => {
    expect(verdict([100, 99, 100], { atMost: 100 }, true)).toBe('met');
    expect(verdict([100, 99, 101], { atMost: 100 }, true)).toBe('missed');
    expect(verdict([80, 85, 79], { atLeast: 80 }, true)).toBe('missed');
    expect(verdict([], { atMost: 0 }, true)).toBe('missed');
  });

  it('without a target is only told', () => {
    expect(verdict([5], undefined)).toBe('told');
  });
});

describe('a check', () => {
  const row = (name: string): Measure => ({
    name,
    what: '',
    limit: '',
    form: 'short',
    figures: [
      { name: 'ratio', what: 'ratio', unit: 'x', target: { atMost: 1 } },
      { name: 'cpu', what: 'CPU', unit: 's' },
    ],
    run: () => Promise.resolve({}),
  });
  const run = (ratio: number) => ({
    figures: { fast: { ratio: 0.5, cpu: 1 }, slow: { ratio, cpu: 2 } },
    details: {},
    failures: {},
    seconds: 1,
  });

  it('fails for figures that miss by more than the noise', () => {
    const rows = resultsOf([row('fast'), row('slow')], [run(1.5), run(1.6), run(1.7)]);
    expect(misses(rows, {})).toEqual(['slow: ratio by more than the noise']);
    expect(misses(resultsOf([row('slow')], [run(0.9), run(1.1), run(1.2)]), {})).toEqual([]);
  });

  it('holds what has a bound against that, and not against its target', () => {
    const rows = resultsOf([row('fast'), row('slow')], [run(1.5), run(1.6), run(1.7)]);
    const bound = (atMost: number) => ({ slow: { ratio: { atMost } }, fast: { cpu: { atMost } } });
    expect(misses(rows, bound(1.6))).toEqual([]);
    expect(misses(rows, bound(1.45))).toEqual([]);
    expect(misses(rows, bound(1.3))).toEqual(['slow: ratio by more than the noise']);
  });

  it('fails for a row that could not be measured, with a bound or without', () => {
    const failed = { ...run(1), figures: {}, failures: { slow: 'no broker' } };
    const rows = resultsOf([row('slow')], [run(1), failed]);
    expect(rows[0]!.failures).toEqual(['no broker']);
    expect(misses(rows, { slow: { ratio: { atMost: 9 } } })).toEqual([
      'slow could not be measured',
    ]);
  });
});
