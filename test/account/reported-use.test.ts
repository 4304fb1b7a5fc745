import { defer, mergeMap, range, repeat, timer } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { Config } from '../../src/config/config.ts';
import { quotas } from '../../src/account/quotas.ts';
import { WINE } from '../../src/description/wine/wine.ts';
import { during } from '../../src/streams/quota/token-bucket.ts';
import { Chance } from '../support/chance.ts';
import { virtualTime } from '../support/virtual-time.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const PER_HOUR = 1_200; // 20 a minute

const config = {
  description: {
    ...WINE,
    quota: {
      limits: [`${PER_HOUR}/h per key`],
      remaining: { header: 'X-Left' },
      reset: { header: 'X-Reset', unit: 's' },
      free: [304],
    },
  },
  account: 'main',
  quota: { perMinute: PER_HOUR / 60, loginsPerMinute: 10, scope: 'key', firstReadPercent: 73 },
  resources: ['orders', 'products'],
  poll: { intervalMs: undefined } as Config['poll'],
} satisfies Pick<Config, 'description' | 'quota' | 'account' | 'poll' | 'resources'>;

/** A server with a quota an hour, which begins anew at each full hour, this process, and others with the same API key. */
function world(seed: number, forMs: number, othersPerMinute: (at: number) => number) {
  const chance = new Chance(seed);
  const scheduler = virtualTime();
  let left = PER_HOUR;
  let begun = 0;
  const asked = { own: [] as number[], others: [] as number[], refused: [] as number[], free: 0 };
  const said: { readonly quota: string; readonly requests: number }[] = [];
  const used: number[] = [];
  const arrive = (times: number[]): boolean => {
    const now = scheduler.now();
    if (Math.floor(now / HOUR) > begun) [begun, left] = [Math.floor(now / HOUR), PER_HOUR];
    (left > 0 ? times : asked.refused).push(now);
    if (left === 0) return false;
    left -= 1;
    return true;
  };
  scheduler.run(() => {
    const hooks = { onQuotaShared: (shared: (typeof said)[number]) => said.push(shared) };
    const quota = quotas({ config, scheduler, hooks });
    for (const list of config.resources) {
      const onSend = quota.reportsOf(list);
      const request = defer(() => {
        const onEnd = onSend();
        const isFree = chance.is(0.2);
        return timer(5 + chance.below(400), scheduler).pipe(
          mergeMap(() => {
            const isTaken = isFree || arrive(asked.own);
            if (isFree) asked.free += 1;
            const headers = {
              'x-left': String(left),
              'x-reset': String((HOUR - (scheduler.now() % HOUR)) / 1_000),
            };
            const status = isFree ? 304 : isTaken ? 200 : 403;
            return timer(5 + chance.below(400), scheduler).pipe(
              mergeMap(() => {
                onEnd({ status, headers, date: undefined, retryAfterMs: undefined } as never);
                return [];
              }),
            );
          }),
        );
      });
      const lanes = quota.lanes(list, false);
      for (const lane of [lanes.poll, lanes.sweep, lanes.initialSnapshot]) {
        const one = defer(() => during(lane, request));
        range(2)
          .pipe(mergeMap(() => one.pipe(repeat({ delay: () => timer(1, scheduler) }))))
          .subscribe();
      }
    }
    timer(0, 1_000, scheduler).subscribe(() => {
      if (chance.is(othersPerMinute(scheduler.now()) / 60)) arrive(asked.others);
      used.push(quota.usage()[0]!.used);
    });
    scheduler.maxFrames = forMs;
  });
  return { asked, said, used };
}

const within = (times: readonly number[], from: number, to: number) =>
  times.filter((at) => at >= from && at < to).length;

describe('the remaining requests that an API reports', () => {
  it.each([1, 2, 3])(
    'say nothing of others where there are none, free answers among them: seed %i',
    (seed) => {
      const { asked, said } = world(seed, 100 * MINUTE, () => 0);
      expect(said).toEqual([]);
      expect(asked.refused).toEqual([]);
      expect(asked.free).toBeGreaterThan(100);
      expect(asked.own.length + asked.free).toBeGreaterThan(0.95 * 20 * 100);
    },
  );

  it.each([1, 2, 3])('make room for others who use the key, and are said once: seed %i', (seed) => {
    const { asked, said } = world(seed, 119 * MINUTE, () => 8);
    expect(said).toHaveLength(1);
    expect(said[0]!.quota).toBe('all');
    expect(asked.refused).toEqual([]);
    for (const hour of [0, 1]) {
      const [from, to] = [hour * HOUR, (hour + 1) * HOUR];
      const [own, others] = [within(asked.own, from, to), within(asked.others, from, to)];
      expect(others).toBeGreaterThan(400);
      expect(own + others).toBeLessThanOrEqual(PER_HOUR);
      expect(own).toBeGreaterThan(450); // what others leave is used
    }
  });

  it('of which there are none are waited for until the quota begins anew', () => {
    // Others use all that is left, within minutes.
    const { asked } = world(5, 90 * MINUTE, (at) => (at > 20 * MINUTE && at < HOUR ? 60 : 0));
    const usedUpAt = asked.others.filter((at) => at < HOUR).at(-1)!;
    expect(usedUpAt).toBeLessThan(40 * MINUTE);
    const own = asked.refused.length - within(asked.refused, HOUR, Infinity);
    expect(own).toBeGreaterThan(0);
    // A reset is believed for 10 minutes: then some requests ask again.
    expect(within(asked.own, usedUpAt + 2 * MINUTE, HOUR)).toBe(0);
    expect(within(asked.own, HOUR, HOUR + 10 * MINUTE)).toBeGreaterThan(0);
    expect(within(asked.own, HOUR + 11 * MINUTE, 90 * MINUTE)).toBeGreaterThan(12 * 19);
  });
});
