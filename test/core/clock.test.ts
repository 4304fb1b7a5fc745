import { expect, it } from 'vitest';
import { wallClock } from '../../src/core/clock.ts';

it("tells the machine's time, through its steps, and by how much it was set back", () => {
  const times = [1_000, 1_000, 61_000, 31_000, 31_001];
  const told: number[] = [];
  const clock = wallClock(
    (backMs) => void told.push(backMs),
    () => times.shift()!,
  );
  const read = () => Array.from({ length: 3 }, clock);
  expect([read(), told]).toEqual([[1_000, 1_000, 61_000], []]);
  expect([clock(), clock(), told]).toEqual([31_000, 31_001, [30_000]]);
});
