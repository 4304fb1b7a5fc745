import { expect, it } from 'vitest';
import { guarded } from '../../src/ops/operations.ts';

it('keeps what a hook throws from who calls it, and tells of it once', () => {
  const failure = new Error('out of order');
  const seen: unknown[] = [];
  const told: unknown[] = [];
  const hooks = guarded(
    {
      onReady: ({ resource }) => {
        seen.push(resource);
        throw failure;
      },
      onEmpty: ({ resource }) => seen.push(resource),
    },
    (error) => told.push(error),
  );
  for (const resource of ['orders', 'products']) hooks.onReady!({ resource });
  hooks.onEmpty!({ resource: 'inventory' });
  expect(seen).toEqual(['orders', 'products', 'inventory']);
  expect(told).toEqual([failure]);
  expect(hooks.onHeld).toBeUndefined();
});
