import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { atMostOncePer } from '../../../src/ops/http/http-server.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it('does the work once for a key in so long, for each key by itself', () => {
  const asked: string[] = [];
  const answer = atMostOncePer(1_000, 10, (key) => `${key} ${asked.push(key)}`);
  expect([answer('a'), answer('b'), answer('a')]).toEqual(['a 1', 'b 2', 'a 1']);
  vi.advanceTimersByTime(1_000);
  expect(answer('a')).toBe('a 3');
});

it('keeps no more answers than it may, and none for longer', () => {
  const work = vi.fn((key: string) => key);
  const answer = atMostOncePer(1_000, 2, work);
  for (const key of ['a', 'b', 'c', 'c']) answer(key);
  expect(work).toHaveBeenCalledTimes(4);
  expect(vi.getTimerCount()).toBe(2);
  vi.advanceTimersByTime(1_000);
  expect(vi.getTimerCount()).toBe(0);
});
