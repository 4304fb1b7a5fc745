import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { range } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Config } from '../src/config.ts';
import { quotas, WINDOW_MS } from '../src/quotas.ts';
import { virtualTime } from './support/virtual-time.ts';

const config = {
  account: 'default',
  quota: { perMinute: 100, loginsPerMinute: 10, scope: 'endpoint' },
  resources: ['orders', 'products'],
  poll: { intervalMs: undefined } as Config['poll'],
} as const;

describe('quotas', () => {
  let folder: string;
  beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'cellarstream-quotas-'))));
  afterEach(() => rmSync(folder, { recursive: true }));

  /** Times at which a new process with this folder can poll, if it wants to 150 times at once. */
  const starts = (stateDir: string, seenBefore: boolean, wait = 0): number[] => {
    const times: number[] = [];
    const scheduler = virtualTime();
    scheduler.run(() => {
      scheduler.schedule(() => {
        const { lanes } = quotas({ config, scheduler, stateDir });
        range(150)
          .pipe(lanes('orders', seenBefore).poll)
          .subscribe(() => times.push(scheduler.now()));
      }, wait);
    });
    return times;
  };
  const inTheFirstMinute = (times: readonly number[]) => times.filter((at) => at < 60_000).length;

  it('keeps to the quota across a restart: what a killed process asked for counts', () => {
    expect(inTheFirstMinute(starts(folder, false, 1))).toBe(100);
    const copy = join(folder, 'copy');
    cpSync(join(folder, 'quota'), join(copy, 'quota'), { recursive: true });
    const next = starts(copy, true, 1_000); // virtual time begins anew: as if a second had passed
    expect(inTheFirstMinute(next)).toBe(0);
  });

  it('tells how much of each quota is in use', () => {
    const scheduler = virtualTime();
    scheduler.run(() => {
      const { login, lanes, use } = quotas({ config, scheduler });
      range(7).pipe(lanes('products', false).poll).subscribe();
      range(2).pipe(login).subscribe();
      expect(use()).toEqual([
        { name: 'products', used: 7, limit: 100 },
        { name: 'orders', used: 0, limit: 100 },
        { name: 'login', used: 2, limit: 10 },
      ]);
      const shared = quotas({ config: { ...config, quota: { ...config.quota, scope: 'key' } }, scheduler }); // prettier-ignore
      expect(shared.use().map(({ name }) => name)).toEqual(['all', 'login']);
    });
  });

  it('waits a whole window when the request times of an earlier process are lost', () => {
    expect(starts(folder, true, 1)[0]).toBeGreaterThan(60_000);
  });

  it('waits for it too after a process that was killed while it waited', () => {
    const scheduler = virtualTime();
    scheduler.run(() => {
      scheduler.schedule(() => {
        quotas({ config, scheduler, stateDir: folder }).lanes('orders', true);
      }, 30_000);
    });
    expect(inTheFirstMinute(starts(folder, true, 31_000))).toBe(0);
  });

  it('knows when it was asked last, and waits a whole window when others have asked since', () => {
    const last = starts(folder, false, 1).at(-1)!;
    const scheduler = virtualTime();
    const times: number[] = [];
    scheduler.run(() => {
      scheduler.schedule(() => {
        const quota = quotas({ config, scheduler, stateDir: folder });
        expect(quota.lastAsked()).toBe(last);
        quota.distrust();
        range(150)
          .pipe(quota.lanes('products', true).poll)
          .subscribe(() => times.push(scheduler.now()));
      }, 200_000);
    });
    expect(times[0]).toBeGreaterThan(260_000);
  });

  it('lets the first read have its part and no more, so that a poll never waits for it', () => {
    const scheduler = virtualTime();
    const first: number[] = [];
    scheduler.run(() => {
      const lanes = quotas({ config, scheduler }).lanes('orders', false);
      range(150)
        .pipe(lanes.firstRead)
        .subscribe(() => first.push(scheduler.now()));
      expect(first.length).toBeLessThan(100);
      const spacing = lanes.spacingMs('first-read');
      expect(Math.floor(60_000 / spacing) + first.length).toBeLessThanOrEqual(100);
      expect(60_000 / lanes.spacingMs('nothing')).toBeLessThanOrEqual(95); // five are for sweeps
    });
  });

  it('has more for single records while they are asked for, which polls then leave over', () => {
    const scheduler = virtualTime();
    let asked = 0;
    scheduler.run(() => {
      const lanes = quotas({ config, scheduler }).lanes('orders', false);
      range(150)
        .pipe(lanes.ask)
        .subscribe(() => (asked += 1));
      expect(asked).toBe(35);
      expect(60_000 / lanes.spacingMs('asking') + asked).toBeLessThanOrEqual(100);
    });
  });

  it('is one quota for all lists where the server counts by key', () => {
    const { lanes } = quotas({
      config: { ...config, quota: { ...config.quota, scope: 'key' } },
      scheduler: virtualTime(),
    });
    expect(lanes('orders', false)).toBe(lanes('products', false));
  });

  describe('sweeps', () => {
    const withQuota = (intervalMs: number | undefined, more: Partial<Config['quota']> = {}) => ({
      ...config,
      quota: { ...config.quota, ...more },
      poll: { intervalMs } as Config['poll'],
    });
    /** Requests of a minute that the lane of sweeps starts when it alone has work. */
    const spare = (options: ReturnType<typeof withQuota>): number => {
      const scheduler = virtualTime();
      const times: number[] = [];
      scheduler.run(() => {
        const { lanes } = quotas({ config: options, scheduler });
        range(150)
          .pipe(lanes('orders', false).sweep)
          .subscribe(() => times.push(scheduler.now()));
        scheduler.maxFrames = 60_000;
      });
      return times.length;
    };

    it.each([
      ['endpoint', undefined, 5], // polls take whatever they can
      ['endpoint', 1_000, 5],
      ['endpoint', 10_000, 77], // 10 and two each 10 s are left to polls
      ['endpoint', WINDOW_MS, 88],
      ['key', undefined, 5],
      ['key', 10_000, 55], // polls of two lists
      ['key', WINDOW_MS, 76],
    ] as const)(
      'have what polls leave over: scope %s, every %s ms',
      (scope, interval, expected) => {
        expect(spare(withQuota(interval, { scope }))).toBe(expected);
      },
    );

    it('have a request a minute of the smallest quota', () => {
      expect(spare(withQuota(undefined, { perMinute: 1 }))).toBe(1);
    });

    it('do not keep polls waiting, nor the first read', () => {
      const scheduler = virtualTime();
      const started: string[] = [];
      scheduler.run(() => {
        const { lanes } = quotas({ config: withQuota(WINDOW_MS), scheduler });
        const { poll, firstRead, sweep } = lanes('orders', false);
        range(100).pipe(poll).subscribe(); // the minute is used up
        range(3)
          .pipe(sweep)
          .subscribe(() => started.push('sweep'));
        range(3)
          .pipe(firstRead)
          .subscribe(() => started.push('first read'));
        range(3)
          .pipe(poll)
          .subscribe(() => started.push('poll'));
      });
      const three = (lane: string) => Array<string>(3).fill(lane);
      expect(started).toEqual([...three('poll'), ...three('first read'), ...three('sweep')]);
    });

    it('leave the polls of all lists the pace that they go at', () => {
      for (const scope of ['endpoint', 'key'] as const) {
        const { lanes } = quotas({ config: withQuota(undefined, { scope }), scheduler: virtualTime() }); // prettier-ignore
        const lists = scope === 'key' ? config.resources.length : 1;
        for (const [beside, share] of [
          ['first-read', 38],
          ['nothing', 95],
        ] as const) {
          const pace = (lists * WINDOW_MS) / lanes('orders', false).spacingMs(beside);
          expect(pace).toBeCloseTo(share);
        }
      }
    });
  });
});
