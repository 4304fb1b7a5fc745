import { describe, expect, it } from 'vitest';
import { accountReport, isReportable } from '../../src/fleet/report.ts';
import type { AccountConfig } from '../../src/config/accounts.ts';
import type { AccountFigures } from '../../src/observe/fleet-view.ts';

const FIGURES: AccountFigures = {
  ...{ at: 1_000_000, ready: true, reasons: [], causes: [], lagMs: 1_200, lookedAt: 990_000 },
  ...{ quota: { name: 'orders', used: 40, limit: 100 }, eventsPerSecond: 0.333, firstRead: null },
};
const config = (prefix: string) => ({
  account: 'east',
  topics: { prefix, sharedPrefix: 'wine' } as AccountConfig['topics'],
});
const USUAL = { weight: 1, config: config('wine.east'), error: undefined, figures: undefined };
const report = (some: Partial<AccountFigures> = {}) =>
  accountReport({ ...USUAL, figures: { ...FIGURES, ...some } });

describe('what an account is reported with', () => {
  it('is its figures, or why it can not go on', () => {
    expect(report()).toEqual({ weight: 1, figures: { ...FIGURES, eventsPerSecond: 0.33 } });
    const error = new Error('refused', { cause: new Error('401') });
    expect(accountReport({ ...USUAL, error })).toEqual({ weight: 1, failed: 'refused: 401' });
  });

  it('has its prefix where its file says so', () => {
    const own = accountReport({ ...USUAL, config: config('east') });
    expect(own).toEqual({ weight: 1, prefix: 'east' });
    expect(isReportable({ east: own }, { east: accountReport(USUAL) })).toBe(true);
  });

  it('is short, however much is wrong', () => {
    const long = 'a list does not answer '.repeat(40);
    const { figures } = report({ ready: false, reasons: [long, long], causes: ['api'] });
    expect(figures?.reasons.map(({ length }) => length)).toEqual([200]);
    const error = new Error(long);
    expect(accountReport({ ...USUAL, error }).failed).toHaveLength(200);
    // A thousand of them are one message, which takes a megabyte.
    expect(JSON.stringify([figures]).length).toBeLessThan(500);
  });
});

describe('a report', () => {
  const first = { east: report(), west: report() };
  const isNewsWith = (some: Partial<AccountFigures>) =>
    isReportable({ ...first, west: report(some) }, first);

  it('is news where an account comes, goes, fails, or has another weight', () => {
    const failed = (error: string) => accountReport({ ...USUAL, error });
    expect(isReportable({})).toBe(false);
    expect(isReportable(first)).toBe(true);
    expect(isReportable(first, first)).toBe(false);
    expect(isReportable({ east: report() }, first)).toBe(true);
    expect(isReportable({ east: report(), north: report() }, first)).toBe(true);
    expect(isReportable({ ...first, west: { ...first.west, weight: 1.5 } }, first)).toBe(true);
    expect(isReportable({ ...first, west: failed('why') }, first)).toBe(true);
    const before = { ...first, west: failed('why') };
    expect(isReportable(before, before)).toBe(false);
    expect(isReportable({ ...first, west: failed('why else') }, before)).toBe(true);
  });

  it('is news where figures differ so much that it shows', () => {
    const news: Partial<AccountFigures>[] = [
      { ready: false },
      { causes: ['api'] },
      { reasons: ['waiting for the API'] },
      { lagMs: null },
      { lagMs: 2_500 },
      { lookedAt: null },
      { quota: null },
      { quota: { name: 'orders', used: 51, limit: 100 } },
      { quota: { name: 'customers', used: 40, limit: 100 } },
      { eventsPerSecond: 5 },
      { firstRead: { read: 0, total: 100 } },
    ];
    for (const some of news) expect([some, isNewsWith(some)]).toEqual([some, true]);
  });

  it('is none where they move as they always do', () => {
    const same: Partial<AccountFigures>[] = [
      { at: FIGURES.at + 60_000, lookedAt: 1_055_000 },
      { lagMs: 1_900 },
      { quota: { name: 'orders', used: 49, limit: 100 } },
      { eventsPerSecond: 1.2 },
    ];
    for (const some of same) expect([some, isNewsWith(some)]).toEqual([some, false]);
  });
});
