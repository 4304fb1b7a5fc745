import { expect, it } from 'vitest';
import { WINE } from '../../../src/description/wine/wine.ts';
import type { Hooks, Published } from '../../../src/observe/hooks.ts';
import { accountFigures, StatusModel } from '../../../src/ops/status/status.ts';

const AT = 1_700_000_000_000;
const READY = { ready: true, reasons: [], causes: [] };

/** Of a list of which a service has told nothing yet. */
const NOTHING = { lagMs: null, lookedAt: null, firstRead: null, eventsPerSecond: 0 };

it('are of whichever list is worst', () => {
  const figures = accountFigures(
    AT,
    READY,
    [
      { name: 'login', used: 9, limit: 10 },
      { name: 'inventory', used: 30, limit: 100 },
      { name: 'orders', used: 40, limit: 100 },
    ],
    [
      { ...NOTHING, lookedAt: AT - 1, lagMs: 800 },
      {
        lookedAt: AT - 9_000,
        lagMs: 2_000,
        firstRead: { read: 30, total: 90, done: false, perSecond: 1, leftMs: 60 },
        eventsPerSecond: 2,
      },
    ],
  );
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
  const figures = accountFigures(AT, READY, [], [{ ...NOTHING, lookedAt: AT }, NOTHING]);
  expect(figures).toMatchObject({ lookedAt: null, lagMs: null, quota: null, firstRead: null });
});

it('are small, however much there is to say', () => {
  const reasons = Array.from({ length: 100 }, () => 'x'.repeat(2_000));
  const readiness = { ready: false, reasons, causes: ['kafka'] as const };
  const figures = accountFigures(AT, readiness, [], [NOTHING]);
  expect(JSON.stringify(figures).length).toBeLessThan(4_000);
});

it('are what the whole status says', () => {
  let at = AT;
  const { hooks, status, figures } = new StatusModel({
    description: WINE,
    pollIntervalMs: 0,
    account: 'east',
    prefix: 'wine.east',
    resources: ['orders'],
    now: () => at,
    readiness: () => READY,
  });
  const { onStart, onProgress, onPublished } = hooks as Required<Hooks>;
  onStart({ quotas: () => [{ name: 'orders', used: 7, limit: 100 }] });
  onProgress({ resource: 'orders', read: 10, total: 50, done: false });
  const change = { key: '1', op: 'u', before: null, after: null, changed: [] } as const;
  for (const lagMs of [100, 900, 5_000]) {
    const page: Published = {
      ...{ resource: 'orders', lane: 'poll', at, statusChanges: [], unchanged: 4, known: 9 },
      changes: [{ ...change, images: { before: null, after: null }, updatedAt: at - lagMs }],
      completes: true,
    };
    onPublished(page);
    at += 1_500;
  }
  const { quotas, resources } = status();
  const [orders] = resources;
  expect(figures()).toEqual({
    ...READY,
    at,
    lagMs: orders!.freshness.p50Ms,
    lookedAt: orders!.lookedAt,
    quota: quotas[0],
    eventsPerSecond: orders!.perSecond.events,
    firstRead: { read: 10, total: 50 },
  });
  expect(figures().eventsPerSecond).toBeGreaterThan(0);
});
