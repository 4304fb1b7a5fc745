import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { defer, map, mergeMap, NEVER, range, repeat, timer } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { WINE } from '../../src/description/wine/wine.ts';
import type { Config } from '../../src/config/config.ts';
import { WINDOW_MS } from '../../src/account/ledger/ledger-record.ts';
import { quotas } from '../../src/account/quotas.ts';
import type { RecentStarts } from '../../src/state/recent-starts.ts';
import { poll } from '../../src/streams/paging/poll.ts';
import { during } from '../../src/streams/quota/token-bucket.ts';
import type { Limit } from '../../src/streams/quota/token-bucket.ts';
import { scanPage } from '../support/scan-page.ts';
import { virtualTime } from '../support/virtual-time.ts';

const config = {
  description: WINE,
  account: 'default',
  quota: { perMinute: 100, loginsPerMinute: 10, scope: 'endpoint', firstReadPercent: 70 },
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
        const quota = quotas({ config, scheduler, stateDir });
        range(150)
          .pipe(quota.lanes('orders', seenBefore).poll)
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
      const quota = quotas({ config, scheduler });
      range(7).pipe(quota.lanes('products', false).poll).subscribe();
      range(2).pipe(quota.login).subscribe();
      expect(quota.usage()).toEqual([
        { name: 'orders', used: 0, limit: 100 },
        { name: 'products', used: 7, limit: 100 },
        { name: 'login', used: 2, limit: 10 },
      ]);
      const shared = quotas({
        config: { ...config, quota: { ...config.quota, scope: 'key' } },
        scheduler,
      });
      expect(shared.usage().map(({ name }) => name)).toEqual(['all', 'login']);
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
        expect(quota.lastRequestAt()).toBe(last);
        quota.waitFullWindow();
        range(150)
          .pipe(quota.lanes('products', true).poll)
          .subscribe(() => times.push(scheduler.now()));
      }, 200_000);
    });
    expect(times[0]).toBeGreaterThan(260_000);
  });

  it('does not believe a folder that has fewer requests than were declared, nor one of another process', () => {
    const freeOf = (kept: number, whose = 'p0') => {
      const scheduler = virtualTime();
      let free: number | undefined;
      scheduler.run(() => {
        scheduler.schedule(() => {
          const times = Array.from({ length: kept }, () => scheduler.now() - 20_000);
          const startsOf = (): RecentStarts => ({
            ...{ times, isReliable: true, close: () => undefined },
            add: () => () => undefined,
            addAll: () => undefined,
          });
          const writer = { get: () => whose, set: () => undefined };
          const part = () => ({
            gate: { opensAt: (now: number) => now, want: () => undefined, opened$: NEVER },
            ...{ onStart: () => () => undefined, count: () => undefined },
          });
          const quota = quotas({
            config,
            scheduler,
            storedStartsOf: startsOf,
            writer,
            ledger: { quota: part, guestDeclarations$: NEVER },
          });
          const orders = { used: [[19_000, 40]] as const, underWay: 0, more: 30 };
          const record = { instance: 'p0', writers: ['p0'], blockMs: 10_000, quotas: { orders } };
          const sentBefore = scheduler.now();
          quota.inherit({
            sent: { declaration: record, latestSentAt: sentBefore },
            isLeaseActive: true,
            guests: [],
            hasUnreadableEntry: false,
          });
          free = 100 - quota.usage()[0]!.used;
        }, 200_000);
      });
      return free;
    };
    expect(freeOf(40)).toBe(60); // what may still begin was this machine's: it is in the folder if it did
    expect(freeOf(39)).toBe(1); // what is free comes one by one
    expect(freeOf(40, 'another process')).toBe(1);
  });

  it('writes down a whole window of others at one go, however large the quota is', () => {
    const writes: number[] = [];
    const startsOf = (name: string): RecentStarts => ({
      ...{ times: [], isReliable: false, close: () => undefined },
      add: () => expect.fail('one by one'),
      addAll: (times) => {
        if (name === 'orders') writes.push(times.length);
      },
    });
    const large = { ...config, quota: { ...config.quota, perMinute: 100_000 } };
    quotas({ config: large, scheduler: virtualTime(), storedStartsOf: startsOf }).waitFullWindow();
    expect(writes).toEqual([100_000]);
  });

  it('lets the initial snapshot have its part and no more, so that a poll never waits for it', () => {
    const scheduler = virtualTime();
    const first: number[] = [];
    scheduler.run(() => {
      const lanes = quotas({ config, scheduler }).lanes('orders', false);
      range(150)
        .pipe(lanes.initialSnapshot)
        .subscribe(() => first.push(scheduler.now()));
      expect(first.length).toBeLessThan(100);
      const spacing = lanes.pollSpacingMs('first-read');
      expect(Math.floor(60_000 / spacing) + first.length).toBeLessThanOrEqual(100);
      expect(60_000 / lanes.pollSpacingMs('nothing')).toBeLessThanOrEqual(95); // five are for sweeps
    });
  });

  it('has more for single records while they are asked for, which polls then leave over', () => {
    const scheduler = virtualTime();
    let asked = 0;
    scheduler.run(() => {
      const lanes = quotas({ config, scheduler }).lanes('orders', false);
      range(150)
        .pipe(lanes.singleRecords)
        .subscribe(() => (asked += 1));
      expect(asked).toBe(35);
      expect(60_000 / lanes.pollSpacingMs('asking') + asked).toBeLessThanOrEqual(100);
    });
  });

  it('is one quota for all lists where the server counts by key', () => {
    const quota = quotas({
      config: { ...config, quota: { ...config.quota, scope: 'key' } },
      scheduler: virtualTime(),
    });
    expect(quota.lanes('orders', false)).toBe(quota.lanes('products', false));
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
        const quota = quotas({ config: options, scheduler });
        range(150)
          .pipe(quota.lanes('orders', false).sweep)
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

    it('do not keep polls waiting, nor the initial snapshot', () => {
      const scheduler = virtualTime();
      const started: string[] = [];
      scheduler.run(() => {
        const quota = quotas({ config: withQuota(WINDOW_MS), scheduler });
        const { poll, initialSnapshot, sweep } = quota.lanes('orders', false);
        range(100).pipe(poll).subscribe(); // the minute is used up
        range(3)
          .pipe(sweep)
          .subscribe(() => started.push('sweep'));
        range(3)
          .pipe(initialSnapshot)
          .subscribe(() => started.push('initial snapshot'));
        range(3)
          .pipe(poll)
          .subscribe(() => started.push('poll'));
      });
      const three = (lane: string) => Array<string>(3).fill(lane);
      expect(started).toEqual([...three('poll'), ...three('initial snapshot'), ...three('sweep')]);
    });

    it('leave the polls of all lists the pace that they go at', () => {
      for (const scope of ['endpoint', 'key'] as const) {
        const quota = quotas({
          config: withQuota(undefined, { scope }),
          scheduler: virtualTime(),
        });
        const lists = scope === 'key' ? config.resources.length : 1;
        for (const [beside, share] of [
          ['nothing', 95],
          ['first-read', 30],
        ] as const) {
          const pace = (lists * WINDOW_MS) / quota.lanes('orders', false).pollSpacingMs(beside);
          expect(pace).toBeCloseTo(share);
        }
      }
    });
  });

  describe('during an initial snapshot', () => {
    const MINUTE = 60_000;
    type Options = Parameters<typeof quotas>[0]['config'];

    /** Polls and initial snapshots of so many lists, with answers that take so long: when what was asked. */
    const reading = (tookMs: number, minutes: number, options: Options = config, lists = 1) => {
      const scheduler = virtualTime();
      const asked: { at: number; what: string }[] = [];
      scheduler.run(() => {
        const quota = quotas({ config: options, scheduler });
        const answer = (what: string) =>
          defer(() => {
            asked.push({ at: scheduler.now(), what });
            return timer(tookMs, scheduler);
          });
        for (const resource of options.resources.slice(0, lists)) {
          const {
            poll: first,
            lookback,
            initialSnapshot,
            pollSpacingMs,
          } = quota.lanes(resource, false);
          const scan = (what: string, limit: Limit) => () =>
            during(limit, answer(what)).pipe(map(() => scanPage(true, scheduler.now())));
          poll({
            scan: scan(`poll of ${resource}`, first),
            scanBack: scan(`look back of ${resource}`, lookback),
            since: 0,
            spacingMs: () => pollSpacingMs('first-read'),
            scheduler,
          }).subscribe();
          const one = defer(() => during(initialSnapshot, answer('initial snapshot'))).pipe(
            repeat(),
          );
          range(10)
            .pipe(mergeMap(() => one))
            .subscribe();
        }
        scheduler.maxFrames = minutes * MINUTE;
      });
      const times = (what: string) =>
        asked.filter((each) => each.what.startsWith(what)).map(({ at }) => at);
      return { all: asked.map(({ at }) => at), times };
    };
    /** The most in any minute that begins with a second, from the second one on; and on the average. */
    const minutesOf = (times: readonly number[], minutes: number) => {
      const from = (at: number) => times.filter((time) => time >= at && time < at + MINUTE).length;
      const all = Array.from({ length: (minutes - 2) * 60 }, (_, k) => from(MINUTE + k * 1_000));
      const average = all.reduce((sum, each) => sum + each, 0) / all.length;
      return { most: Math.max(...all), average };
    };
    const gaps = (times: readonly number[]) => times.slice(1).map((at, k) => at - times[k]!);

    it.each([50, 600, 2_000, 5_000])('uses the quota, with answers that take %i ms', (tookMs) => {
      const { all, times } = reading(tookMs, 10);
      const use = minutesOf(all, 10);
      expect(use.average).toBeGreaterThanOrEqual(97);
      expect(use.most).toBeLessThanOrEqual(100);
      expect(minutesOf(times('initial snapshot'), 10).average).toBeGreaterThanOrEqual(69.5);
      // A poll never waits for the initial snapshot.
      expect(Math.max(...gaps(times('poll')))).toBeLessThanOrEqual(Math.max(2_150, tookMs));
    });

    it('leaves polls their part in the first minute, whatever they need of it', () => {
      for (const tookMs of [50, 5_000]) {
        const first = reading(tookMs, 1).times('initial snapshot');
        expect(first.length).toBeLessThanOrEqual(70);
      }
    });

    it('has the part that is set', () => {
      const quota = { ...config.quota, firstReadPercent: 40 };
      const { all, times } = reading(50, 5, { ...config, quota });
      expect(minutesOf(times('initial snapshot'), 5).most).toBeLessThanOrEqual(41);
      expect(minutesOf(all, 5).average).toBeGreaterThanOrEqual(97);
      expect(Math.max(...gaps(times('poll')))).toBeLessThanOrEqual(1_050);
    });

    it('has what polls of a set interval can not need, from the beginning', () => {
      const first = reading(50, 1, { ...config, poll: { intervalMs: 30_000 } as Config['poll'] });
      expect(first.times('initial snapshot').length).toBe(85); // ten, and two each half a minute, are theirs
    });

    it('shares one quota with polls of all lists where the server counts by key', () => {
      const quota = { ...config.quota, scope: 'key' } as const;
      const resources = ['orders', 'customers', 'products'] as const;
      for (const tookMs of [50, 5_000]) {
        const { all, times } = reading(tookMs, 10, { ...config, quota, resources }, 3);
        const use = minutesOf(all, 10);
        expect(use.most).toBeLessThanOrEqual(100);
        for (const resource of resources) {
          expect(Math.max(...gaps(times(`poll of ${resource}`)))).toBeLessThan(9_000);
        }
      }
    });

    it('has its part too where other lists of the same quota are done with theirs', () => {
      const shared = { ...config.quota, scope: 'key' } as const;
      const quota = quotas({ config: { ...config, quota: shared }, scheduler: virtualTime() });
      const quiet = quota.lanes('products', false).pollSpacingMs('nothing');
      expect(quiet).toBeLessThan(quota.lanes('orders', false).pollSpacingMs('first-read'));
      expect(quota.lanes('products', false).pollSpacingMs('nothing')).toBeGreaterThan(2 * quiet);
    });
  });

  it('leaves looking back a third of what nobody but polls has', () => {
    const scheduler = virtualTime();
    const counts: number[] = [];
    scheduler.run(() => {
      for (const firstReads of [0, 150]) {
        const { lookback, initialSnapshot } = quotas({
          config,
          scheduler,
        }).lanes('orders', false);
        range(firstReads).pipe(initialSnapshot).subscribe();
        let count = 0;
        range(150)
          .pipe(lookback)
          .subscribe(() => (count += 1));
        counts.push(count);
      }
    });
    expect(counts).toEqual([33, 10]);
  });
});
