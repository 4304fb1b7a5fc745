import {
  catchError,
  defer,
  EMPTY,
  finalize,
  mergeMap,
  range,
  repeat,
  takeUntil,
  throwError,
  timer,
} from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { Config } from '../../src/config/config.ts';
import { quotas } from '../../src/account/quotas.ts';
import type { Lanes } from '../../src/account/quotas.ts';
import { describedQuota } from '../../src/description/quota-limits.ts';
import type { ApiDescription } from '../../src/description/description.ts';
import { WINE } from '../../src/description/wine/wine.ts';
import { during } from '../../src/streams/quota/token-bucket.ts';
import { Chance } from '../support/chance.ts';
import { virtualTime } from '../support/virtual-time.ts';
import { overruns } from './ledger/overruns.ts';

const LISTS = ['orders', 'customers', 'products'];
const SECOND = 1_000;
const MINUTE = 60_000;
/** A request that is given up arrives no later than that, ms. */
const LATE_MS = 900;
/** The units of limits, ms, as a server counts: any window of this length. */
const UNIT_MS = { s: SECOND, min: MINUTE, h: 60 * MINUTE, d: 1_440 * MINUTE } as const;

interface Arrival {
  readonly at: number;
  readonly list: string;
}

function described(limits: readonly string[], own: Readonly<Record<string, string>>) {
  const lists = WINE.lists.map((list) => ({ ...list, quota: own[list.name] }));
  return { ...WINE, quota: { limits: [...limits] }, lists } satisfies ApiDescription;
}

type Settings = Pick<Config, 'description' | 'quota' | 'account' | 'poll' | 'resources'>;

function configOf(description: ApiDescription, resources = LISTS): Settings {
  const { scope, perMinute } = describedQuota(description);
  return {
    ...{ description, account: 'main', resources },
    quota: { perMinute, loginsPerMinute: 10, scope, firstReadPercent: 73 },
    poll: { intervalMs: undefined } as Config['poll'],
  };
}

/** Windows in which a server that counts by these limits would have refused a request. */
function refusals(
  arrivals: readonly Arrival[],
  limits: readonly string[],
  own: Readonly<Record<string, string>>,
): string[] {
  const of = (limit: string, list: string | undefined) => {
    const [, count, unit] = /^(\d+)\/(\w+)/.exec(limit)!;
    const counted = arrivals.filter((one) => list === undefined || one.list === list);
    const windowMs = UNIT_MS[unit as keyof typeof UNIT_MS];
    return overruns(counted, `${limit} of ${list ?? 'all'}`, Number(count), windowMs);
  };
  const perList = limits.filter((limit) => limit.endsWith('per list'));
  return [
    ...limits.filter((limit) => !perList.includes(limit)).flatMap((limit) => of(limit, undefined)),
    ...LISTS.flatMap((list) =>
      (own[list] === undefined ? perList : [own[list]]).flatMap((limit) => of(limit, list)),
    ),
  ];
}

const LANES = ['poll', 'lookback', 'initialSnapshot', 'sweep', 'singleRecords'] as const;

/** Requests of all lanes of all lists that go on for so long, and how many were given up or failed meanwhile. */
function asked(
  seed: number,
  description: ApiDescription,
  forMs: number,
  isWild: boolean,
): Arrival[] {
  const chance = new Chance(seed);
  const scheduler = virtualTime();
  const arrivals: Arrival[] = [];
  scheduler.run(() => {
    const quota = quotas({ config: configOf(description), scheduler });
    for (const list of LISTS) {
      const lanes: Lanes = quota.lanes(list, false);
      const request = defer(() => {
        const tookMs = 5 + chance.below(isWild && chance.is(0.1) ? 4_000 : 100);
        const arrival = { at: scheduler.now() + chance.below(tookMs), list };
        arrivals.push(arrival);
        const end$ = timer(tookMs, scheduler);
        const sent$ =
          isWild && chance.is(0.1) ? end$.pipe(mergeMap(() => throwError(() => 'failed'))) : end$;
        // A request that is given up arrives soon or never.
        const lost = finalize(() => {
          if (arrival.at > scheduler.now() + LATE_MS) arrivals.splice(arrivals.indexOf(arrival), 1);
        });
        return sent$.pipe(lost);
      });
      for (const lane of LANES) {
        const one = defer(() => {
          const sent$ = during(lanes[lane], request).pipe(catchError(() => EMPTY));
          // Some requests are given up while they wait or are in flight.
          return isWild && chance.is(0.2)
            ? sent$.pipe(takeUntil(timer(chance.below(3_000), scheduler)))
            : sent$;
        });
        range(lane === 'poll' ? 1 : 3)
          .pipe(mergeMap(() => one.pipe(repeat({ delay: () => timer(1, scheduler) }))))
          .subscribe();
      }
    }
    scheduler.maxFrames = forMs;
  });
  return arrivals.filter(({ at }) => at < forMs);
}

const CASES: readonly [limits: string[], own: Record<string, string>][] = [
  [['2/s per key'], {}],
  [['4/s per key', '100/min per key'], {}],
  [['100/min per list', '3/s per list'], {}],
  [['5000/h per key'], {}],
  [['60/min per list', '90/min per key', '3/s per key'], { orders: '12/min' }],
  [['60/min per list'], { orders: '12/min', products: '1/s' }],
  [['2/s per list', '5/s per key', '5000/h per key'], { customers: '1440/d' }],
  [['50000/d per key'], { orders: '2/s' }],
];

describe('limits of several units and scopes', () => {
  it.each(
    CASES.map(
      ([limits, own], k) =>
        [[...limits, ...Object.values(own)].join(', '), limits, own, k] as const,
    ),
  )('are kept at once, as any window counts: %s', (_, limits, own, k) => {
    const description = described(limits, own);
    for (const seed of [1, 2, 3]) {
      const arrivals = asked(100 * k + seed, description, 4 * MINUTE, true);
      expect(refusals(arrivals, limits, own).slice(0, 3), `seed ${seed}`).toEqual([]);
      for (const list of LISTS) {
        expect(arrivals.filter((one) => one.list === list).length, list).toBeGreaterThan(2);
      }
    }
  });

  it('an hour too', () => {
    const limits = ['600/h per key', '1/s per key'];
    const arrivals = asked(7, described(limits, {}), 130 * MINUTE, false);
    expect(refusals(arrivals, limits, {})).toEqual([]);
    expect(arrivals.length).toBeGreaterThan(0.95 * 10 * 130);
  });

  it.each(
    CASES.map(
      ([limits, own]) => [[...limits, ...Object.values(own)].join(', '), limits, own] as const,
    ),
  )('leave little of the narrowest one unused: %s', (_, limits, own) => {
    const description = described(limits, own);
    const { scope, perMinute, keyPerSecond = Infinity, lists } = describedQuota(description);
    const most = (list: string) => {
      const { perMinute: ofList = scope === 'key' ? Infinity : perMinute, perSecond = Infinity } =
        lists[list]!;
      return Math.min(ofList, (perSecond * MINUTE) / 1_200);
    };
    const together = LISTS.reduce((sum, list) => sum + most(list), 0);
    const all = scope === 'key' ? Math.min(perMinute, (keyPerSecond * MINUTE) / 1_200) : Infinity;
    const arrivals = asked(3, description, 6 * MINUTE, false).filter(({ at }) => at >= MINUTE);
    expect(arrivals.length / 5).toBeGreaterThan(0.8 * Math.min(together, all));
  });
});
