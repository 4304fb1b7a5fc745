import { expect, it } from 'vitest';
import { loadConfig } from '../../src/config/load-config.ts';
import { CellarstreamError } from '../../src/core/errors.ts';
import { guarded, observedAccount } from '../../src/ops/operations.ts';

it('shows that an account of a fleet has failed, and why', () => {
  const config = loadConfig({ env: { RESOURCES: 'orders' }, cwd: import.meta.dirname });
  const onError = () => undefined;
  const { onFailed, status, figures } = observedAccount(config, { ofProcess: false, onError });
  onFailed(new CellarstreamError('API_KEY_REJECTED', 'wrong key'), 60_000);
  const { causes, reasons, resources } = status();
  expect(causes).toEqual(['failed']);
  expect(reasons).toEqual([expect.stringMatching(/^can't go on since .*: wrong key$/)]);
  expect(resources.map(({ state }) => state)).toEqual(['failed']);
  expect(figures()).toMatchObject({ ready: false, causes: ['failed'] });
});

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
