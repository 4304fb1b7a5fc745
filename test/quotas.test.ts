import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { range } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Config } from '../src/config.ts';
import { quotas } from '../src/quotas.ts';
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

  it('is one quota for all lists where the server counts by key', () => {
    const { lanes } = quotas({
      config: { ...config, quota: { ...config.quota, scope: 'key' } },
      scheduler: virtualTime(),
    });
    expect(lanes('orders', false)).toBe(lanes('products', false));
  });
});
