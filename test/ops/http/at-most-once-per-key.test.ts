import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { atMostOncePerKey } from '../../../src/ops/http/at-most-once-per-key.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it('does the work once for a key in so long, for each key by itself', () => {
  const asked: string[] = [];
  const answer = atMostOncePerKey({
    everyMs: 1_000,
    most: 10,
    work: (key) => `${key} ${asked.push(key)}`,
  });
  expect([answer('a'), answer('b'), answer('a')]).toEqual(['a 1', 'b 2', 'a 1']);
  vi.advanceTimersByTime(1_000);
  expect(answer('a')).toBe('a 3');
});

it('keeps no more answers than it may, and none for longer', () => {
  const work = vi.fn((key: string) => key);
  const answer = atMostOncePerKey({ everyMs: 1_000, most: 2, work });
  for (const key of ['a', 'b', 'c', 'c']) answer(key);
  expect(work).toHaveBeenCalledTimes(4);
  expect(vi.getTimerCount()).toBe(2);
  vi.advanceTimersByTime(1_000);
  expect(vi.getTimerCount()).toBe(0);
});
