// The options of a sandbox, their defaults and their checks.

import { CellarstreamError } from '../core/errors.ts';
import type { FaultSpec } from './faults.ts';
import { RESOURCES } from './resources.ts';
import type { Resource } from './resources.ts';

/** A time zone: minutes ahead of UTC, and daylight saving that ends once. */
export interface Zone {
  /** Minutes that local time is ahead of UTC; below 0 west of it. */
  readonly minutes: number;
  /** Until this time (epoch ms) local time is an hour further ahead. The hour before it comes twice. Default: no daylight saving. */
  readonly savingEndsAt?: number;
}

/** The order in which a list is served. Every one is a total order. */
export type Sort = 'key-asc' | 'key-desc' | 'updated-asc' | 'updated-desc';

/** What the API's description leaves open, one way or the other. */
export interface Readings {
  /**
   * Where a window ends that has a `modifiedFromDate` only ("the current date"): now, or at the
   * last midnight (UTC), so that nothing of today is in it. Default `now`.
   */
  readonly defaultEnd: 'now' | 'midnight';
  /** Whether a record modified at exactly a bound is in the window. Default `inclusive`. */
  readonly bounds: 'inclusive' | 'exclusive';
  /** `days`: the time of day of both bounds is cut off (UTC). `ignored`: the list is shown whole. Default `exact`. */
  readonly dates: 'exact' | 'days' | 'ignored';
  /** The zone that bounds are read in, whatever zone they name. Default UTC. */
  readonly parameterZone: Zone;
  /** The zone of `created_at` and `updated_at`, which then name none; `truth` keeps UTC. Null, the default: UTC, with a `Z`. */
  readonly stampZone: Zone | null;
  /** Whether a bound later than the server's time is answered with 400. Default `accept`. */
  readonly futureEnd: 'accept' | 'refuse';
  /** Days that a window may be long; a longer one is answered with 400. Default Infinity. */
  readonly maxRangeDays: number;
  /** Whether answers carry a `Date` header. Default true. */
  readonly dateHeader: boolean;
  /** What an answer over the quota looks like. Default 429 with `Retry-After` and a JSON body. */
  readonly rateLimited: {
    readonly status: number;
    readonly retryAfter: boolean;
    readonly body: 'json' | 'html';
  };
  /** Whether a request that was answered 429 uses up quota too. Default false. */
  readonly refusedCount: boolean;
  /**
   * The answer to a missing, invalid, expired or revoked token: a status, `redirect` (302 to a login page), `json` (200 with an error
   * in JSON) or `html` (200 with a login page). Default 401.
   */
  readonly unauthorized: 400 | 401 | 403 | 419 | 440 | 498 | 500 | 'redirect' | 'json' | 'html';
  /** Unit of `expiresIn` in the login's answer. Default `ms`: 1,800,000 is 30 minutes. */
  readonly expiresIn: 'ms' | 'us' | 's';
  /** Whether the token carries the claim `exp`. It expires either way. Default true. */
  readonly expClaim: boolean;
  /**
   * Where a page begins for an `offset` that is no multiple of the page size: there, at the multiple
   * below, at the nearest multiple, or nowhere (400). Default `exact`.
   */
  readonly offsets: 'exact' | 'rounded' | 'nearest' | 'multiples';
  /** Page sizes that the server uses, least and most; a `pageSize` outside is clamped. Default [1, 1000]. */
  readonly pageSizes: readonly [least: number, most: number];
  /**
   * Values of `current_offset` and `page_size` when the server did not use the request's: those it used, those of the request, or none
   * (the fields are missing). Default `used`.
   */
  readonly echo: 'used' | 'asked' | 'missing';
  /** Answer to an offset behind the end: no records, or the first page with `has_next_page: true`. Default `empty`. */
  readonly behindEnd: 'empty' | 'first-page';
  /** Whether `has_next_page` is right, or true on every page. Default `right`. */
  readonly hasNextPage: 'right' | 'always';
  /**
   * How the pagination is written: as described; `loose`, numbers as text, `has_next_page` as 0 or 1, and an empty list as
   * `{"data":null,"pagination":[]}`; or `no-totals`, without `total_records`. Default `described`.
   */
  readonly envelope: 'described' | 'loose' | 'no-totals';
  /** Statuses of success: 200, or 201 for the login and 203 for pages. Default `ok`. */
  readonly success: 'ok' | 'other';
  /** Encoding of list answers, which their `Content-Type` names; characters that it lacks become `?`. Default `utf-8`. */
  readonly charset: 'utf-8' | 'iso-8859-1';
  /** Whether requests without a `User-Agent` are answered 403 with HTML. Default false. */
  readonly needsUserAgent: boolean;
}

/** What a sandbox is like; all of it optional. */
export interface SandboxOptions {
  /** Address to listen on. Default `127.0.0.1`. */
  readonly host?: string;
  /** Port to listen on; 0 takes a free one. Default 0. */
  readonly port?: number;
  /**
   * Accounts, up to 10,000: each with an API key, records, changes, tokens, quotas and faults of its
   * own. Every other option that concerns these is for each account by itself. Default 1.
   */
  readonly accounts?: number;
  /** The same seed gives the same records, changes and random faults. Default 1. */
  readonly seed?: number;
  /**
   * The API key that the login accepts: of the first account; the second has `sandbox-key-2`, and
   * so on. Default `sandbox-key`.
   */
  readonly apiKey?: string;
  /** Records of each list at the start, up to 16,000,000; the default for those not named. */
  readonly records?: Partial<Readonly<Record<Resource, number>>>;
  /** Epoch ms before which all history lies. Default: the last midnight (UTC) before the start. */
  readonly historyEndsAt?: number;
  /** Random changes per second, by the clock. Default 0: nothing changes by itself. */
  readonly changesPerSecond?: number;
  /**
   * After every so many random changes something drifts, for people who try things by hand: a list
   * comes by a new field, numbers in it become texts, a record loses its key, or a page holds some
   * records twice. Seeded; what drifts again goes back first. Default 0: never.
   */
  readonly driftEvery?: number;
  /** Order of all lists. Default `key-asc`. */
  readonly sort?: Sort;
  /**
   * Orders records of one `updated_at` anew at every request. Concerns the two `updated` sorts;
   * keys have no ties. Default false.
   */
  readonly shuffleTies?: boolean;
  /**
   * Most records that a query shows and counts, as search engines do: `total_records` and `has_next_page` tell of no more.
   * Default: no limit.
   */
  readonly totalCap?: number;
  /** `total_records` is an estimate: rounded to a multiple of this. Default 1. */
  readonly totalStep?: number;
  /** `total_records` of a whole list is counted anew only once the count is this old, in ms. Default 0: with each request. */
  readonly totalAgeMs?: number;
  /**
   * How long lists leave out a twentieth of their records, in ms, as a search index that lags: a minute after the start, and every
   * ten minutes from then on. Default 0: never.
   */
  readonly wrongIndexMs?: number;
  /** List requests in any window. Default 100. */
  readonly quotaPerMinute?: number;
  /** Logins in any window. Default 10. */
  readonly loginQuotaPerMinute?: number;
  /** Length of the window both quotas count in, in ms. Default 60,000. */
  readonly windowMs?: number;
  /** Whether each list has a quota of its own, or all share one. Default `endpoint`. */
  readonly quotaScope?: 'endpoint' | 'key';
  /** How long a token is good, in ms; rounded up to a whole second. Default 1,800,000. */
  readonly tokenLifeMs?: number;
  /** How long after its login a token is still refused, as by a replica that lags, in ms. Default 0. */
  readonly tokenLagMs?: number;
  /** How long an answer takes beside its making, in ms; a pair is a seeded range. Default 0. */
  readonly latencyMs?: number | readonly [number, number];
  /** How far the server's clock is ahead (below 0: behind), in ms. Default 0. */
  readonly clockSkewMs?: number;
  /** How fine `created_at` and `updated_at` of a record are. Default `ms`. */
  readonly updatedAtResolution?: 'ms' | 'second' | 'minute' | 'day';
  /** A change is seen this long after its `updated_at`, in ms. Default 0. */
  readonly lateCommitMs?: number;
  /** Every second list request is answered by a replica that shows the list as it was so long ago, in ms. Default 0: there is none. */
  readonly replicaLagMs?: number;
  /** Answers with gzip where the client accepts it. Default false. */
  readonly gzip?: boolean;
  /** Newest changes kept in the log. Default 1,000,000. */
  readonly changeLogLimit?: number;
  /** Newest arrivals kept, per endpoint. Default 100,000. */
  readonly requestLogLimit?: number;
  /** Serves https with this certificate and key, both PEM. Default: http. */
  readonly tls?: { readonly cert: string; readonly key: string };
  /** What the API's description leaves open. */
  readonly readings?: Partial<Readings>;
  /** Faults in force from the start, in every account. Default none. */
  readonly faults?: readonly FaultSpec[];
  /** The clock, in epoch ms. Default: the machine's, which never goes back. */
  readonly now?: () => number;
}

/** Options with all defaults filled in. */
export interface Settings extends Required<Omit<SandboxOptions, 'readings' | 'records' | 'tls'>> {
  readonly tls?: { readonly cert: string; readonly key: string };
  readonly records: Readonly<Record<Resource, number>>;
  readonly readings: Readings;
}

/** The most records of one list; what `SortedIds` and the packed sort can hold. */
export const MAX_RECORDS = 16_000_000;

const MAX_ACCOUNTS = 10_000;

const DAY_MS = 86_400_000;

const DEFAULTS = {
  host: '127.0.0.1',
  port: 0,
  accounts: 1,
  seed: 1,
  apiKey: 'sandbox-key',
  records: {
    orders: 1_000,
    customers: 500,
    inventory: 200,
    'wine-clubs': 8,
    'wine-club-members': 300,
    products: 120,
  },
  changesPerSecond: 0,
  driftEvery: 0,
  sort: 'key-asc',
  shuffleTies: false,
  totalCap: Infinity,
  totalStep: 1,
  totalAgeMs: 0,
  wrongIndexMs: 0,
  quotaPerMinute: 100,
  loginQuotaPerMinute: 10,
  windowMs: 60_000,
  quotaScope: 'endpoint',
  tokenLifeMs: 1_800_000,
  tokenLagMs: 0,
  latencyMs: 0,
  clockSkewMs: 0,
  updatedAtResolution: 'ms',
  lateCommitMs: 0,
  replicaLagMs: 0,
  gzip: false,
  changeLogLimit: 1_000_000,
  requestLogLimit: 100_000,
  readings: {
    defaultEnd: 'now',
    bounds: 'inclusive',
    dates: 'exact',
    parameterZone: { minutes: 0 },
    stampZone: null,
    futureEnd: 'accept',
    maxRangeDays: Infinity,
    dateHeader: true,
    rateLimited: { status: 429, retryAfter: true, body: 'json' },
    refusedCount: false,
    unauthorized: 401,
    expiresIn: 'ms',
    expClaim: true,
    offsets: 'exact',
    pageSizes: [1, 1_000],
    echo: 'used',
    behindEnd: 'empty',
    hasNextPage: 'right',
    envelope: 'described',
    success: 'ok',
    charset: 'utf-8',
    needsUserAgent: false,
  },
  faults: [],
  now: () => performance.timeOrigin + performance.now(),
} as const satisfies Omit<Settings, 'historyEndsAt'>;

/** @throws CellarstreamError `SETTINGS`, naming every option that is out of range. */
export function toSettings(options: SandboxOptions): Settings {
  const given = Object.fromEntries(
    Object.entries(options).filter(([, value]) => value !== undefined),
  ) as SandboxOptions;
  const now = given.now ?? DEFAULTS.now;
  const settings: Settings = {
    ...DEFAULTS,
    historyEndsAt: Math.floor((now() + (given.clockSkewMs ?? 0)) / DAY_MS) * DAY_MS,
    ...given,
    records: { ...DEFAULTS.records, ...given.records },
    readings: { ...DEFAULTS.readings, ...given.readings },
  };
  const wrong = problems(settings);
  if (wrong.length > 0) {
    throw new CellarstreamError('SETTINGS', `sandbox options: ${wrong.join('; ')}`);
  }
  return settings;
}

/** Options that are numbers without an upper limit, by the least that they may be. */
const LEAST: Readonly<Record<number, readonly (keyof Settings)[]>> = {
  0: [
    ...(['changesPerSecond', 'totalAgeMs', 'wrongIndexMs', 'tokenLagMs'] as const),
    ...(['lateCommitMs', 'replicaLagMs', 'changeLogLimit'] as const),
  ],
  1: [
    ...(['totalCap', 'totalStep', 'quotaPerMinute', 'loginQuotaPerMinute'] as const),
    ...(['windowMs', 'tokenLifeMs', 'requestLogLimit'] as const),
  ],
};

function problems(settings: Settings): string[] {
  const wrong: string[] = [];
  const expect = (name: string, fine: boolean, rule: string) => {
    if (!fine) wrong.push(`${name} must be ${rule}`);
  };
  for (const [low, names] of Object.entries(LEAST)) {
    for (const name of names)
      expect(name, Number(settings[name]) >= Number(low), `a number >= ${low}`);
  }
  for (const name of Object.keys(settings.records)) {
    expect(`records.${name}`, (RESOURCES as readonly string[]).includes(name), 'a list of the API');
  }
  for (const name of RESOURCES) {
    const count = settings.records[name];
    const fine = Number.isInteger(count) && count >= 0 && count <= MAX_RECORDS;
    expect(`records.${name}`, fine, `an integer from 0 to ${MAX_RECORDS}`);
  }
  const { accounts } = settings;
  const some = Number.isInteger(accounts) && accounts >= 1 && accounts <= MAX_ACCOUNTS;
  expect('accounts', some, `an integer from 1 to ${MAX_ACCOUNTS}`);
  expect('seed', Number.isInteger(settings.seed), 'an integer');
  expect('apiKey', settings.apiKey !== '', 'a text that is not empty');
  expect('clockSkewMs', Number.isFinite(settings.clockSkewMs), 'a finite number');
  expect('historyEndsAt', settings.historyEndsAt > 4 * 365 * DAY_MS, 'epoch ms after 1974');
  const { driftEvery } = settings;
  expect('driftEvery', Number.isInteger(driftEvery) && driftEvery >= 0, 'an integer >= 0');
  const [least, most] = settings.readings.pageSizes;
  const sizes = 1 <= least && least <= most && most <= 1_000;
  expect('readings.pageSizes', sizes, 'two numbers from 1 to 1000, the smaller first');
  const latency = [settings.latencyMs].flat();
  expect('latencyMs', Math.min(...latency) >= 0, 'ms >= 0, or a pair of them');
  return wrong;
}
