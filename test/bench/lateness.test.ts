import { expect, it } from 'vitest';
import { latenessOf } from '../../bench/support/lateness.mjs';

const change = (field: string, to: string, at: number) => ({ field, to, at });

it('is the time to the event of each change, field by field', () => {
  const made = [change('a', 'paid', 0), change('b', 'paid', 10), change('a', 'sent', 20)];
  const seen = [change('b', 'paid', 40), change('a', 'paid', 50), change('a', 'sent', 60)];
  const { delays, unseen } = latenessOf(made, seen);
  expect(delays.sort((a, b) => a - b)).toEqual([30, 40, 50]);
  expect(unseen).toBe(0);
});

it('of several that come as one event lasts until that', () => {
  const made = [change('a', 'paid', 0), change('a', 'sent', 20)];
  expect(latenessOf(made, [change('a', 'sent', 60)])).toEqual({ delays: [60, 40], unseen: 0 });
});

it('passes over events of changes made before, and counts what nothing came after', () => {
  const made = [change('a', 'paid', 10), change('a', 'open', 20)];
  const seen = [change('a', 'open', 5), change('a', 'paid', 30)];
  expect(latenessOf(made, seen)).toEqual({ delays: [20], unseen: 1 });
});

it('of one that was undone before anybody looked lasts until the next of its field', () => {
  const made = [change('a', 'paid', 0), change('a', 'open', 10), change('a', 'paid', 20)];
  const seen = [change('a', 'paid', 5), change('a', 'paid', 30)];
  expect(latenessOf(made, seen)).toEqual({ delays: [5, 20, 10], unseen: 0 });
});
