import { expect, it } from 'vitest';
import { accountFigures } from '../../../src/ops/status/account-figures.ts';
import { statusModel } from '../../../src/ops/status/status.ts';
import type { ResourceStatus } from '../../../src/ops/status/status.ts';

const AT = 1_700_000_000_000;
const READY = { ready: true, reasons: [], causes: [] };

/** Two lists, of which a service has told nothing yet. */
function lists(): readonly [ResourceStatus, ResourceStatus] {
  const { status } = statusModel({
    version: '1.0.0',
    account: 'east',
    prefix: 'wine.east',
    resources: ['orders', 'inventory'],
    now: () => AT,
    readiness: () => READY,
  });
  const [orders, inventory] = status().resources;
  return [orders!, inventory!];
}

it('are of whichever list is worst', () => {
  const [orders, inventory] = lists();
  const figures = accountFigures({
    at: AT,
    readiness: READY,
    quotas: [
      { name: 'login', used: 9, limit: 10 },
      { name: 'inventory', used: 30, limit: 100 },
      { name: 'orders', used: 40, limit: 100 },
    ],
    resources: [
      { ...orders, lookedAt: AT - 1, freshness: { lastMs: 5, p50Ms: 800, p95Ms: 5 } },
      {
        ...inventory,
        lookedAt: AT - 9_000,
        freshness: { lastMs: 5, p50Ms: 2_000, p95Ms: 5 },
        firstRead: { read: 30, total: 90, done: false, perSecond: 1, leftMs: 60 },
        perSecond: { records: 5, events: 2 },
      },
    ],
  });
  expect(figures).toEqual({
    ...READY,
    at: AT,
    lagMs: 2_000,
    lookedAt: AT - 9_000,
    quota: { name: 'orders', used: 40, limit: 100 },
    eventsPerSecond: 2,
    firstRead: { read: 30, total: 90 },
  });
});

it('say that a list was not looked at yet, whatever the others were', () => {
  const [orders, inventory] = lists();
  const options = { at: AT, readiness: READY, quotas: [] };
  const figures = accountFigures({
    ...options,
    resources: [{ ...orders, lookedAt: AT }, inventory],
  });
  expect(figures).toMatchObject({ lookedAt: null, lagMs: null, quota: null, firstRead: null });
});

it('are small, however much there is to say', () => {
  const reasons = Array.from({ length: 100 }, () => 'x'.repeat(2_000));
  const readiness = { ready: false, reasons, causes: ['kafka'] as const };
  const figures = accountFigures({ at: AT, readiness, quotas: [], resources: lists() });
  expect(JSON.stringify(figures).length).toBeLessThan(4_000);
});
