import { describe, expect, it } from 'vitest';
import { WINE } from '../../../src/description/wine/wine.ts';
import { STATIONS } from '../../../src/ops/page/stations.ts';
import { StatusModel } from '../../../src/ops/status/status.ts';
import type { Published } from '../../../src/observe/hooks.ts';

/** A service of orders and inventory at a clock that stands still for all but the pages. */
function service() {
  let at = Date.parse('2026-01-01T12:00:00Z');
  const { hooks, status } = new StatusModel({
    description: WINE,
    pollIntervalMs: 0,
    account: 'cellar',
    prefix: 'wine',
    resources: ['orders', 'inventory'],
    now: () => at,
    readiness: () => ({ ready: true, reasons: [], causes: [] }),
  });
  return {
    hooks,
    pass: (ms: number) => (at += ms),
    page: (resource: string, known: number) =>
      hooks.onPublished!({
        resource,
        lane: 'poll',
        changes: [],
        statusChanges: [],
        unchanged: 10,
        known,
        at,
        completes: true,
      } satisfies Published),
    ask: (...statuses: (number | undefined)[]) =>
      statuses.forEach((status) =>
        hooks.onRequest!({ what: 'orders', status, elapsedMs: 1, waitedMs: 0 }),
      ),
    at: (name: string) => STATIONS[name]!(status()),
  };
}

describe('the stations of the flow', () => {
  it('say of nothing that it is not known, or that there was none', () => {
    const { at } = service();
    expect(at('token')).toMatchObject({ figure: 'none', share: 0, shareText: 'no login yet' });
    expect(at('quota')).toMatchObject({ share: 0, shareText: 'none known yet' });
    expect(at('pages')).toMatchObject({ share: 0, shareText: 'no requests', note: '' });
    expect(at('diff')).toMatchObject({ share: 0, shareText: 'no records to compare' });
    expect(at('topics')).toMatchObject({
      share: 1,
      shareText: 'no initial snapshot runs',
      note: 'the number of published records is not known yet',
    });
  });

  it('say in words what each bar is a share of', () => {
    const { hooks, at, ask, pass } = service();
    hooks.onStart!({
      quotas: () => [
        { name: 'login', used: 5, limit: 10 },
        { name: 'orders', used: 30, limit: 100 },
        { name: 'inventory', used: 62, limit: 100 },
      ],
    });
    hooks.onLogin!({ lifeMs: 600_000, aheadMs: 0 });
    pass(150_000);
    expect(at('token')).toMatchObject({ share: 0.75, shareText: '75 % of its 10 min' });
    expect(at('quota')).toMatchObject({ share: 0.62, shareText: 'inventory: 62 of 100' });

    ask(200, 200);
    expect(at('pages')).toMatchObject({ share: 1, shareText: 'all succeeded', note: '' });
    ask(200, 200, 200, 429, 500, undefined);
    expect(at('pages')).toMatchObject({
      share: 5 / 8,
      shareText: '62 % succeeded',
      note: '1 over the quota, 1 failed, 1 unanswered',
    });

    hooks.onProgress!({ resource: 'orders', read: 30, total: 100, done: false });
    expect(at('topics')).toMatchObject({ share: 0.3, shareText: 'initial snapshots: 30 % done' });
    hooks.onProgress!({ resource: 'orders', read: 100, total: 100, done: true });
    expect(at('topics')).toMatchObject({ share: 1, shareText: 'initial snapshots are done' });
  });

  it('count no more records as published than are known', () => {
    const { page, at, pass } = service();
    page('orders', 1_200);
    expect(at('topics').note).toBe('at least 1,200 records published');
    page('inventory', 34);
    pass(1_000);
    expect(at('topics').note).toBe('1,234 records published');
    expect(at('diff')).toMatchObject({ share: 0, shareText: '0 % of them new or changed' });
  });
});
