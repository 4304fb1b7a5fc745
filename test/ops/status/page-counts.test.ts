import { expect, it } from 'vitest';
import type { Lane } from '../../../src/observe/hooks.ts';
import { countPage } from '../../../src/ops/status/hook-figures.ts';
import type { Change, Operation } from '../../../src/streams/diff/change.ts';

it('a page counts what was read: no deletion, and no record twice that is published again', () => {
  const page = (lane: Lane) =>
    countPage({
      resource: 'orders',
      lane,
      changes: (['c', 'u', 'u', 'd', 'r'] as const).map(change),
      statusChanges: [],
      unchanged: 5,
      known: 9,
      at: 0,
      completes: false,
    });
  const events = { r: 1, c: 1, u: 2, d: 1 };
  expect(page('poll')).toEqual({ read: 9, events });
  expect(page('resync')).toEqual({ read: 8, events });
});

function change(op: Operation): Change {
  const images = { before: null, after: null };
  return { key: '1', op, before: null, after: null, images, changed: [], updatedAt: null };
}
