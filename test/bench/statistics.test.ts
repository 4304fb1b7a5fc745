import { describe, expect, it } from 'vitest';
import {
  logSlope,
  median,
  mostInAnyWindow,
  percentile,
  summary,
} from '../../bench/support/statistics.mjs';

it('the median is the middle one, or between the middle two', () => {
  expect(median([30, 10, 20])).toBe(20);
  expect(median([4, 1, 3, 2])).toBe(2.5);
  expect(median([])).toBeNaN();
});

it('a percentile is a value that was measured: so many percent are not above it', () => {
  const hundred = Array.from({ length: 100 }, (_, nth) => 100 - nth);
  expect(percentile(hundred, 50)).toBe(50);
  expect(percentile(hundred, 99)).toBe(99);
  expect(percentile([7], 99)).toBe(7);
  expect(percentile([1, 2, 3], 100)).toBe(3);
});

it('a summary has the range; of nothing it is no number', () => {
  expect(summary([3, 1, 2])).toEqual({ median: 2, least: 1, most: 3, spread: 2 });
  expect(summary([]).spread).toBeNaN();
});

describe('the slope of logarithms', () => {
  const over = (of: (x: number) => number) =>
    logSlope([10, 100, 1_000].map((x) => [x, of(x)] as const));

  it('is 1 of what is linear, less of what has a fixed part, 2 of squares', () => {
    expect(over((x) => 3 * x)).toBeCloseTo(1);
    expect(over((x) => 50 + 3 * x)).toBeLessThan(0.9);
    expect(over((x) => x * x)).toBeCloseTo(2);
  });
});

it('a window is half open: of two arrivals a minute apart one is in it', () => {
  expect(mostInAnyWindow([0, 59, 60, 61], 60)).toBe(3);
  expect(mostInAnyWindow([0, 60, 120], 60)).toBe(1);
  expect(mostInAnyWindow([], 60)).toBe(0);
});
