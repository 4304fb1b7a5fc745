import { CellarstreamError } from '../core/errors.ts';
import type { FaultSpec } from './faults.ts';
import { RESOURCES, type Resource } from './resources.ts';

/** A time zone: an offset from UTC, and optionally one moment at which daylight saving ends. */
export interface Zone {
  /** Offset of local time from UTC in minutes; negative west of it. */
  readonly minutes: number;
  /**
   * Moment, in epoch ms, at which daylight saving ends: before it, local time is one hour further ahead of UTC. Default: no daylight
   * saving.
   */
  readonly savingEndsAt?: number;
}

/**
 * Order in which lists are served. Records with the same `updated_at` are ordered by key: ascending in `updated-asc`, descending in
 * `updated-desc`. With `shuffleTies`, their order is random.
 */
export type Sort = 'key-asc' | 'key-desc' | 'updated-asc' | 'updated-desc';

/** Variants of behaviour that the API's description leaves open, or that differ from it. */
export interface Readings {
  /**
   * End of a window if only `modifiedFromDate` is given: the current time, or the last midnight in UTC, so that today's changes are
   * excluded. Default `now`.
   */
  readonly defaultEnd: 'now' | 'midnight';
  /** Whether a record modified exactly at a bound of the window is in the window. Default `inclusive`. */
  readonly bounds: 'inclusive' | 'exclusive';
  /**
   * Precision of date parameters. With `days` the time of day (UTC) is set to midnight. With `ignored` the parameters have no effect.
   * Default `exact`.
   */
  readonly dates: 'exact' | 'days' | 'ignored';
  /** Time zone of the date parameters: a time with `Z` or without a zone counts as local time in this zone. Default UTC. */
  readonly parameterZone: Zone;
  /** Time zone in which responses show `created_at` and `updated_at`, as text without a zone. Null, the default, means UTC, with a `Z`. */
  readonly stampZone: Zone | null;
  /** Whether a date parameter later than the server's clock is accepted, or refused with 400. Default `accept`. */
  readonly futureEnd: 'accept' | 'refuse';
  /** Maximum length of a date window in days; a longer one is refused with 400. Default Infinity. */
  readonly maxRangeDays: number;
  /** Whether responses have a `Date` header. Default true. */
  readonly dateHeader: boolean;
  /** Response to a request over the quota. Default: 429 with `Retry-After` and a JSON body. */
  readonly rateLimited: {
    readonly status: number;
    readonly retryAfter: boolean;
    readonly body: 'json' | 'html';
  };
  /** Whether a request that is refused because of the quota also counts in the quota. Default false. */
  readonly refusedCount: boolean;
  /**
   * Response to a request with a missing or refused token: a status code, `redirect` (302 to a login page), `json` (200 with an error in
   * JSON) or `html` (200 with a login page). Default 401.
   */
  readonly unauthorized: 400 | 401 | 403 | 419 | 440 | 498 | 500 | 'redirect' | 'json' | 'html';
  /** Unit of `expiresIn` in the login's response. Default `ms`: 1,800,000 is 30 minutes. */
  readonly expiresIn: 'ms' | 'us' | 's';
  /** Whether the token has the claim `exp`. The token expires with or without the claim. Default true. */
  readonly expClaim: boolean;
  /**
   * Where a page begins if `offset` is not a multiple of the page size: at `offset` (`exact`), at the multiple below (`rounded`) or at the
   * nearest multiple (`nearest`). With `multiples`, such a request is refused with 400. Default `exact`.
   */
  readonly offsets: 'exact' | 'rounded' | 'nearest' | 'multiples';
  /**
   * Smallest and largest page size that the server uses. A `pageSize` that is valid (1 to 1,000) but outside this range is replaced by the
   * nearest bound. Default [1, 1000].
   */
  readonly pageSizes: readonly [least: number, most: number];
  /**
   * Values of `current_offset` and `page_size`: those that the server used (`used`) or those of the request (`asked`). With `missing`,
   * there are no such fields. Default `used`.
   */
  readonly echo: 'used' | 'asked' | 'missing';
  /**
   * Response to a list offset at or beyond the end of the list: an empty page, or the first page with `has_next_page: true`. Default
   * `empty`.
   */
  readonly behindEnd: 'empty' | 'first-page';
  /** Whether `has_next_page` is correct (`right`) or always true. Default `right`. */
  readonly hasNextPage: 'right' | 'always';
  /**
   * Format of the pagination. `loose`: numbers are text, booleans are 0 or 1, and an empty list is `{"data":null,"pagination":[]}`.
   * `no-totals`: there is no `total_records`. Default `described`, the format in the API's description.
   */
  readonly envelope: 'described' | 'loose' | 'no-totals';
  /** Status of successful responses. `ok`: 200. `other`: 201 for the login, 203 for pages. Default `ok`. */
  readonly success: 'ok' | 'other';
  /** Encoding of list responses, as named in `Content-Type`. Characters that the encoding does not have become `?`. Default `utf-8`. */
  readonly charset: 'utf-8' | 'iso-8859-1';
  /** Whether requests without a `User-Agent` are refused with 403 and HTML. Default false. */
  readonly needsUserAgent: boolean;
}

/** Options of a sandbox; all are optional. */
export interface SandboxOptions {
  /** Address that the server listens on. Default `127.0.0.1`. */
  readonly host?: string;
  /** Port that the server listens on; 0 selects a free one. Default 0. */
  readonly port?: number;
  /** Number of accounts, up to 10,000, each with its own API key, records, changes, tokens, quotas and faults. Default 1. */
  readonly accounts?: number;
  /** Seed of the generated records, random changes and random faults: equal seeds produce equal data, changes and faults. Default 1. */
  readonly seed?: number;
  /**
   * API key that the login of the first account accepts. Further accounts have this key with `-2`, `-3` and so on appended. Default
   * `sandbox-key`.
   */
  readonly apiKey?: string;
  /** Initial number of records of each list, up to 16,000,000. Lists that the object does not name have their default number. */
  readonly records?: Partial<Readonly<Record<Resource, number>>>;
  /** Time before which all initial records were created and updated, in epoch ms. Default: the last midnight (UTC) before the start. */
  readonly historyEndsAt?: number;
  /** Number of random changes per second, in each account. Default 0: no random changes. */
  readonly changesPerSecond?: number;
  /**
   * Number of random changes in an account after which the next drift occurs. Default 0: no drifts.
   *
   * A drift changes the form of the data: a list gets a new field, numbers in a field become text, a record loses its key, or a page
   * repeats some records.
   */
  readonly driftEvery?: number;
  /** Order in which all lists are served. Default `key-asc`. */
  readonly sort?: Sort;
  /**
   * Whether records with the same `updated_at` are in a different order at every request, if lists are sorted by `updated_at`. Default
   * false.
   */
  readonly shuffleTies?: boolean;
  /**
   * Maximum number of records that a query returns, over all its pages; search engines have such limits. No larger `total_records` is
   * reported. Default: no limit.
   */
  readonly totalCap?: number;
  /** Step to which `total_records` is rounded, as if it were an estimate: with 100, to the nearest multiple of 100. Default 1. */
  readonly totalStep?: number;
  /**
   * How long, in ms, `total_records` of an unfiltered list remains the same count before the list is counted again. Default 0: counted at
   * each request.
   */
  readonly totalAgeMs?: number;
  /**
   * Length, in ms, of the periods in which lists omit a twentieth of their records. One begins a minute after the start, and one every ten
   * minutes after that. Default 0: lists omit nothing.
   */
  readonly wrongIndexMs?: number;
  /**
   * Maximum number of requests of an account to each list in any window of `windowMs`. With `quotaScope` `key`, it applies to all lists
   * together. Default 100.
   */
  readonly quotaPerMinute?: number;
  /** Maximum number of logins of an account in any window of `windowMs`. Default 10. */
  readonly loginQuotaPerMinute?: number;
  /** Length of the sliding window of the quotas for list requests and for logins, in ms. Default 60,000. */
  readonly windowMs?: number;
  /** Scope of the list quota: with `endpoint`, each list has a quota; with `key`, all lists share one quota. Default `endpoint`. */
  readonly quotaScope?: 'endpoint' | 'key';
  /** Lifetime of a token in ms. The time at which the token expires is rounded up to a whole second. Default 1,800,000. */
  readonly tokenLifeMs?: number;
  /** How long a new token is refused after its login, in ms, as by a replica that lags. Default 0. */
  readonly tokenLagMs?: number;
  /** Added latency of each response in ms. A pair is a range from which the latency is drawn with the seed. Default 0. */
  readonly latencyMs?: number | readonly [number, number];
  /** How far the server's clock is ahead of the real time, in ms; a negative number means behind. Default 0. */
  readonly clockSkewMs?: number;
  /** Resolution of `created_at` and `updated_at`. Default `ms`. */
  readonly updatedAtResolution?: 'ms' | 'second' | 'minute' | 'day';
  /** Delay in ms between the `updated_at` of a change and the moment when it becomes visible. Default 0. */
  readonly lateCommitMs?: number;
  /** Lag in ms of a replica that responds to every second list request. Default 0: there is no replica. */
  readonly replicaLagMs?: number;
  /** Whether successful responses are compressed with gzip if the client accepts it. Default false. */
  readonly gzip?: boolean;
  /** Maximum number of changes retained in `truth.changes`. Default 1,000,000. */
  readonly changeLogLimit?: number;
  /** Maximum number of requests retained for each endpoint in `truth.requests`. Default 100,000. */
  readonly requestLogLimit?: number;
  /** Certificate and private key for https, both PEM. Default: http. */
  readonly tls?: { readonly cert: string; readonly key: string };
  /**
   * Ways in which the server deviates from the API's description, or chooses what the description leaves open. Unset ones have their
   * default.
   */
  readonly readings?: Partial<Readings>;
  /** Faults that are active from the start, in every account. Default: none. */
  readonly faults?: readonly FaultSpec[];
  /** Clock of the sandbox, which returns epoch ms. Default: the machine's time at the process's start, advanced by a monotonic clock. */
  readonly now?: () => number;
}

export interface SandboxSettings extends Required<
  Omit<SandboxOptions, 'readings' | 'records' | 'tls'>
> {
  readonly tls?: { readonly cert: string; readonly key: string };
  readonly records: Readonly<Record<Resource, number>>;
  readonly readings: Readings;
}

/** Maximum number of records in a list. The id of a record has to fit into 24 bits. */
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
} as const satisfies Omit<SandboxSettings, 'historyEndsAt'>;

/**
 * Returns the settings of a sandbox: `options`, with defaults for those that are left out.
 *
 * @throws CellarstreamError `SETTINGS`, naming every option that is out of range.
 */
export function toSettings(options: SandboxOptions): SandboxSettings {
  const given = Object.fromEntries(
    Object.entries(options).filter(([, value]) => value !== undefined),
  ) as SandboxOptions;
  const now = given.now ?? DEFAULTS.now;
  const settings: SandboxSettings = {
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

/** Numeric options that have a minimum but no maximum, grouped by their minimum. */
const LEAST: Readonly<Record<number, readonly (keyof SandboxSettings)[]>> = {
  0: [
    ...(['changesPerSecond', 'totalAgeMs', 'wrongIndexMs', 'tokenLagMs'] as const),
    ...(['lateCommitMs', 'replicaLagMs', 'changeLogLimit'] as const),
  ],
  1: [
    ...(['totalCap', 'totalStep', 'quotaPerMinute', 'loginQuotaPerMinute'] as const),
    ...(['windowMs', 'tokenLifeMs', 'requestLogLimit'] as const),
  ],
};

function problems(settings: SandboxSettings): string[] {
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
