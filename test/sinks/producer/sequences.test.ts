import { expect, it } from 'vitest';
import { Sequences } from '../../../src/sinks/producer/delivery.ts';

it('counts each partition by itself, from 0', () => {
  const counts = new Sequences();
  const calls = [
    ['a', 0, 3],
    ['a', 1, 5],
    ['b', 0, 7],
    ['a', 0, 1],
    ['a', 0, 2],
    ['a 0', 1, 1],
  ] as const;
  expect(calls.map(([topic, partition, count]) => counts.next(topic, partition, count))).toEqual([
    0, 0, 0, 3, 4, 0,
  ]);
});

it('begins again at 0 behind the greatest number of 31 bits, as brokers do', () => {
  const counts = new Sequences();
  counts.next('t', 0, 2 ** 31 - 2);
  expect(counts.next('t', 0, 1)).toBe(2 ** 31 - 2);
  expect(counts.next('t', 0, 1)).toBe(2 ** 31 - 1);
  expect(counts.next('t', 0, 5)).toBe(0);
});

it('counts on where the end lies within a batch', () => {
  const counts = new Sequences();
  counts.next('t', 0, 2 ** 31 - 2);
  expect(counts.next('t', 0, 5)).toBe(2 ** 31 - 2);
  expect(counts.next('t', 0, 1)).toBe(3);
});
