import { expect, it } from 'vitest';
import { pace } from '../../bench/support/requests.mjs';

/** 100 in five seconds, and that every 60 s. */
const BURSTS = Array.from({ length: 500 }, (_, nth) => ({
  at: 60_000 * Math.floor(nth / 100) + 50 * (nth % 100),
}));

it('a pace is the same wherever it begins, in a burst or behind it', () => {
  for (const from of [0, 1_000, 4_950, 5_000, 30_000, 62_000]) {
    expect(pace(BURSTS, from, 200)).toBeCloseTo(100);
  }
});

it('there is none where too little came', () => {
  expect(pace(BURSTS, 200_000, 200)).toBeNaN();
  expect(pace([], 0, 1)).toBeNaN();
});
