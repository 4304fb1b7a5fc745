import {
  defer,
  first,
  firstValueFrom,
  ignoreElements,
  map,
  merge,
  NEVER,
  Subject,
  startWith,
  switchMap,
  tap,
  timer,
} from 'rxjs';
import type { Observable } from 'rxjs';
import { openApi } from '../account/api.ts';
import type { Api } from '../account/api.ts';
import { LOGIN_QUOTA, SHARED_QUOTA } from '../account/ledger/ledger-record.ts';
import { openGuest } from '../account/permits/open-guest.ts';
import type { Guest } from '../account/permits/open-guest.ts';
import { namedFields } from '../account/personal-fields-of.ts';
import { quotas } from '../account/quotas.ts';
import type { Quotas } from '../account/quotas.ts';
import type { Config, ConfigWith, Resource } from '../config/config.ts';
import { steadyScheduler } from '../core/clock.ts';
import { CellarstreamError, describeError, isRetryableAtApi } from '../core/errors.ts';
import type { Retrying } from '../observe/hooks.ts';
import { createLogger, kafkaLogCreator } from '../observe/log.ts';
import { keyFieldsSetting } from '../config/settings.ts';
import { keyFieldsOf } from '../pipeline/choose-key.ts';
import { credentialWords, hasLogin } from '../description/credentials.ts';
import { listNamed, listsNamed, totalName } from '../description/description.ts';
import type { ListDescription } from '../description/description.ts';
import { levelsInWords } from '../description/levels.ts';
import { describedQuota } from '../description/quota-limits.ts';
import { asker } from '../measure/ask.ts';
import { MAX_REQUESTS, measureList } from '../measure/measure-list.ts';
import type { Measurement } from '../measure/replies.ts';
import { openKafka } from '../sinks/open-kafka.ts';
import { parsingDecoder } from '../streams/decode/decoder.ts';
import type { PagePlace } from '../streams/http/page-plan.ts';
import type { ProbeDates } from '../streams/paging/date-probe.ts';
import { during } from '../streams/quota/token-bucket.ts';
import type { Limit } from '../streams/quota/token-bucket.ts';
import { keyOfFields } from '../streams/records/key-of.ts';
import { Stamps } from '../streams/records/stamps.ts';
import type { TimeFormat } from '../description/time-format.ts';
import { checkDates } from './check-dates.ts';
import { checkPaging } from './check-paging.ts';
import { checkTotal } from './check-total.ts';
import { tryCheck } from './findings.ts';
import type { Finding } from './findings.ts';
import { hasKafka } from './one-account.ts';

/** How long a request of `cellarstream check` to the API may take, retries included, once the quota has allowed it, in ms. */
const CHECK_TIMEOUT_MS = 10_000;
/** How long the login may wait for the quota, in ms. */
const LOGIN_PATIENCE_MS = 10_000;
/** How long to try to acquire permits while other processes use up the quota, in ms. */
const QUOTA_PATIENCE_MS = 20_000;
/**
 * How long a request for a list may wait for the quota, in ms. After that the check of the list fails. Longer than {@link
 * QUOTA_PATIENCE_MS}, so that the more precise error `NO_PERMITS` comes first.
 */
const LIST_PATIENCE_MS = 30_000;
/**
 * How long a request of a measurement may wait for the quota, in ms. Longer than a minute, after which requests of other processes no
 * longer count.
 */
const MEASURE_PATIENCE_MS = 90_000;
/** How long to try to reach Kafka before the first requests are sent without it, in ms: the API can be checked without Kafka. */
const KAFKA_TIMEOUT_MS = 2_000;
/** Number of failed logins after which a check gives up: more would use up the quota of logins, and the next check could not log in. */
const MAX_FAILED_LOGINS = 5;
/** Page size of the check's requests for lists: enough records to determine the key fields. */
const PAGE_SIZE = 100;
const A_DAY_MS = 86_400_000;

/**
 * Checks the quota, a login, and for each list its pages, its date parameters and its total. The requests count against the account's
 * quota.
 */
export async function checkApi(config: ConfigWith<'api' | 'kafka'>): Promise<Finding[]> {
  // The usual numbers. Both kinds of lists: the first page, a page at another list offset, the last records. With dates: three more to
  // measure them, and two to count the records of two windows. Without dates: a record beyond the end.
  const requestsFor = ({ dates }: ListDescription) => (dates !== undefined ? 8 : 4);
  return withQuota(config, requestsFor, (check) => check.run());
}

/**
 * Sends requests to test whether the API behaves as its description says (`check --measure`). Returns the measurements of each list
 * (`lists`), and the findings about the quota, the login and lists that could not be measured (`findings`).
 */
export async function measureApi(config: ConfigWith<'api'>, pause: (ms: number) => Promise<void>) {
  const lists = new Map<Resource, readonly Measurement[]>();
  const findings = await withQuota(
    config,
    () => MAX_REQUESTS,
    (check) => check.measure(lists, pause),
  );
  const measured = config.resources.filter((resource) => lists.has(resource));
  return { findings, lists: new Map(measured.map((resource) => [resource, lists.get(resource)!])) };
}

/**
 * Runs `work` with an `ApiCheck`, whose requests count against the account's quota, and returns the findings of `work`. If Kafka is
 * configured, permits (each the right to send one request) are acquired first. Without permits, the result is only a finding about that.
 *
 * @param requestsFor Returns how many permits to acquire at a time for a list's quota.
 */
async function withQuota(
  config: ConfigWith<'api'>,
  requestsFor: (list: ListDescription) => number,
  work: (check: ApiCheck) => Promise<Finding[]>,
): Promise<Finding[]> {
  const scheduler = steadyScheduler;
  if (!hasKafka(config))
    return work(new ApiCheck(config, undefined, quotas({ config, scheduler })));
  const log = kafkaLogCreator(await createLogger({ level: 'silent' }));
  const lists = listsNamed(config.description, config.resources);
  const sizes = lists.map((list) => [list.name, requestsFor(list)] as const);
  const all = sizes.reduce((sum, [, size]) => sum + size, 0);
  let uncounted: unknown;
  const guest = openGuest({
    kafka: openKafka(config, { log, kafkaRetries: 2 }),
    config,
    // Quotas that do not exist are ignored: the shared one, or those of the lists.
    batchSizes: { [LOGIN_QUOTA]: 1, [SHARED_QUOTA]: all, ...Object.fromEntries(sizes) },
    patienceMs: QUOTA_PATIENCE_MS,
    kafkaPatienceMs: KAFKA_TIMEOUT_MS,
    onUndeclared: (error) => (uncounted = error),
  });
  const quota = quotas({ config, scheduler, ledger: guest.permits });
  try {
    const counted = await tryCheck('quota', async () => {
      const firstBatch = firstValueFrom(guest.permits.batches$);
      guest.permits.start();
      await firstBatch;
      const isRefused =
        uncounted instanceof CellarstreamError && uncounted.code === 'KAFKA_REFUSED';
      return isRefused
        ? `${describeError(uncounted)}. A running service does not count the requests of this check`
        : '';
    });
    if (!counted.fine) return [counted];
    const findings = await work(new ApiCheck(config, guest, quota));
    return counted.detail === '' ? findings : [...findings, { ...counted, isUnwise: true }];
  } finally {
    await guest.close();
  }
}

/** Checks the login, then all lists at once. Failed requests are retried; if a request takes too long, its newest error is reported. */
class ApiCheck {
  readonly #config: ConfigWith<'api'>;
  /** Source of permits (rights to send one request each) for the requests of this check. Undefined without Kafka: none are needed then. */
  readonly #guest: Guest | undefined;
  readonly #quota: Quotas;
  readonly #api: Api;
  readonly #lastErrors = new Map<string, unknown>();
  /**
   * Errors when the check gives up although `run` would retry: after a failed TLS handshake, or after {@link MAX_FAILED_LOGINS} failed
   * logins.
   */
  readonly #lasting$ = new Subject<never>();
  /** Emits the name of a request (`login` or a list's name) each time the quota lets it start. */
  readonly #granted$ = new Subject<string>();
  #failedLogins = 0;

  constructor(config: ConfigWith<'api'>, guest: Guest | undefined, quota: Quotas) {
    this.#config = config;
    this.#guest = guest;
    this.#quota = quota;
    this.#api = openApi({
      config: config.api,
      description: config.description,
      stateDir: config.stateDir,
      loginLimit: this.#announced('login', quota.login),
      reportsOf: (resource) => quota.reportsOf(resource),
      ...(guest && { maySend: () => guest.permits.isBatchValid() }),
      scheduler: steadyScheduler,
      hooks: { onRetry: (retrying) => this.#failed(retrying) },
    });
  }

  run(): Promise<Finding[]> {
    return this.#afterLogin((resource) => this.#checkList(resource));
  }

  /**
   * Measures how the API behaves for each list, and adds the results to `lists`. Returns findings about the login, and about lists
   * that could not be measured.
   */
  async measure(
    lists: Map<Resource, readonly Measurement[]>,
    pause: (ms: number) => Promise<void>,
  ): Promise<Finding[]> {
    const findings = await this.#afterLogin((resource) =>
      tryCheck(resource, async () => {
        lists.set(resource, await this.#measureList(resource, pause));
        return '';
      }),
    );
    return findings.filter(({ detail }) => detail !== '');
  }

  #measureList(
    resource: Resource,
    pause: (ms: number) => Promise<void>,
  ): Promise<readonly Measurement[]> {
    const list = listNamed(this.#config.description, resource);
    const { times } = this.#config.description;
    const ask$ = asker({
      ...{ request: this.#api.request, list, times, scheduler: steadyScheduler },
      limit: this.#announced(resource, this.#quota.lanes(resource, false).poll),
      keyOfFirst: (records) => keyOfFields(keyFieldsOf(list, this.#config, records) ?? []),
    });
    return measureList({
      ...{ list, times, pause },
      unitMs: unitOf(times),
      ask: (question) => this.#first(resource, ask$(question), MEASURE_PATIENCE_MS),
      now: () => steadyScheduler.now(),
    });
  }

  async #afterLogin(checkList: (resource: Resource) => Promise<Finding>): Promise<Finding[]> {
    const { auth } = this.#config.description;
    const { settings } = credentialWords(auth);
    try {
      const login = await tryCheck('login', async () => {
        const { lifeMs } = await this.#first('login', this.#api.tokens.token$);
        if (!hasLogin({ auth }))
          return auth === 'none' ? 'none' : `none: requests carry ${settings}`;
        return `a token valid for ${lifeText(lifeMs)}`;
      });
      if (!login.fine) return [login];
      const lists = this.#config.resources.map((resource) => checkList(resource));
      return [login, ...(await Promise.all(lists))];
    } finally {
      await this.#api.close();
    }
  }

  async #checkList(resource: Resource): Promise<Finding> {
    let isUnwise = false as boolean;
    const finding = await tryCheck(resource, async () => {
      const limit = this.#announced(resource, this.#quota.lanes(resource, false).poll);
      const list = listNamed(this.#config.description, resource);
      const { plan, pages } = this.#api.list(list);
      const { times } = this.#config.description;
      const request = pages({ decode: parsingDecoder(undefined, new Stamps(list, times)) });
      const ask = (query: ProbeDates & Partial<PagePlace>) =>
        this.#first(resource, request({ offset: 0, pageSize: PAGE_SIZE, ...query }, limit));
      const answer = await ask({});
      const data = answer.data.map(({ json }) => json);
      const { pageSize } = this.#config.poll;
      const keyFields = keyFieldsOf(list, this.#config, data);
      const checked = { pageSize, keyFields: keyFields ?? [] };
      if (keyFields && data.length > 0 && !data.some(keyOfFields(keyFields))) {
        throw new CellarstreamError(
          'API_ANSWER',
          `none of the ${data.length} records of the first page has the key ${keyFields.join('+')}: correct \`key\` in the description, or ${keyFieldsSetting(resource)}`,
        );
      }

      const isByOffset = list.paging === 'offset'; // the checks of pages and total request odd list offsets
      const paging = isByOffset ? await checkPaging(answer, ask, { ...checked, plan }) : [];
      const dates =
        list.dates &&
        (await checkDates(answer, ask, {
          parameters: list.dates,
          localTime: () => steadyScheduler.now(),
          stamp: list.updated.join(' or '),
          times,
        }));
      let notes: readonly string[] = [];
      const takesDates = dates?.isUnusual === false;
      const now = steadyScheduler.now();
      const toCheck = { ...checked, totalName: totalName(list), takesDates, times, now };
      const cut =
        isByOffset &&
        (await checkTotal(answer, ask, toCheck).catch((error: unknown) => {
          // The list is readable, but with a running service that uses its whole quota the last requests may time out.
          if (!isRetryableAtApi(error)) throw error;
          notes = ['could not check whether the API serves the whole list'];
          return undefined;
        }));
      const warnings = [...paging, ...(cut ? [cut] : [])];
      isUnwise = dates?.isUnusual === true || warnings.length > 0;

      const { total = 'an unknown number of' } = answer;
      const key = keyFields
        ? `key ${keyFields.join('+')}`
        : 'no record yet to determine the key from';
      const hides = namedFields(this.#config.pii, resource, data).map(
        ({ name, isSeen }) => (isSeen ? name : `${name} (not seen)`), // a misspelled field hides nothing
      );
      return [
        `${total} records, ${key}`,
        levelsInWords(list).join(', or '),
        ...(hides.length > 0 ? [`hides ${hides.join(', ')}`] : []),
        ...warnings,
        ...notes,
        ...(dates ? [dates.text] : []),
      ].join('; ');
    });
    return { ...finding, ...(isUnwise && { isUnwise }) };
  }

  /**
   * Subscribes to `source`, which sends the request named `what` (`login` or a list), and resolves to the first value. Rejects if the quota
   * does not allow the request within `patienceMs`, if no value follows within {@link CHECK_TIMEOUT_MS}, or if the check gives up or gets
   * no permits.
   */
  #first<T>(
    what: string,
    source: Observable<T>,
    patienceMs = what === 'login' ? LOGIN_PATIENCE_MS : LIST_PATIENCE_MS,
  ): Promise<T> {
    const late$ = this.#granted$.pipe(
      first((granted) => granted === what),
      map(() => true),
      startWith(false),
      switchMap((isGranted) =>
        timer(isGranted ? CHECK_TIMEOUT_MS : patienceMs).pipe(map(() => isGranted)),
      ),
      map((isGranted): never => {
        throw this.#timeoutError(what, isGranted);
      }),
    );
    const noPermits$ = (this.#guest?.permits.batches$ ?? NEVER).pipe(ignoreElements());
    return firstValueFrom(merge(late$, source, this.#lasting$, noPermits$));
  }

  #timeoutError(what: string, isGranted: boolean): unknown {
    const last = this.#lastErrors.get(what) ?? this.#lastErrors.get('login');
    if (last !== undefined) return last;
    if (isGranted) {
      const message = `the API did not respond within ${CHECK_TIMEOUT_MS / 1_000} s`;
      return new CellarstreamError('API_UNREACHABLE', message);
    }
    const message = `${usedUpQuota(what, this.#config)} are used or reserved. Run check again in a minute`;
    return new CellarstreamError('QUOTA_EXCEEDED', message);
  }

  #failed({ what, error }: Pick<Retrying, 'what' | 'error'>): void {
    this.#lastErrors.set(what, error);
    if (what === 'login') this.#failedLogins += 1;
    // A failed TLS handshake does not succeed within seconds.
    const isPermanent = error instanceof CellarstreamError && error.context.tls !== undefined;
    if (isPermanent || this.#failedLogins >= MAX_FAILED_LOGINS) this.#lasting$.error(error);
  }

  /** Returns a limit that works like `limit`, and emits `what` in `#granted$` each time it lets a request start. */
  #announced(what: string, limit: Limit): Limit {
    const granted = () => this.#granted$.next(what);
    const announced = <T>(source: Observable<T>) => limit(source).pipe(tap(granted));
    return Object.assign(announced, {
      during: <T>(work: Observable<T>) =>
        during(
          limit,
          defer(() => {
            granted();
            return work;
          }),
        ),
    });
  }
}

/** Returns the beginning of the error text for a used-up quota (`what`: `login` or a list): its limits, and where they are set. */
export function usedUpQuota(
  what: string,
  { quota, description }: Pick<Config, 'quota' | 'description'>,
): string {
  const { loginsPerMinute, perMinute, scope } = quota;
  if (what === 'login') {
    return `the quota of logins is used up: all ${loginsPerMinute} logins a minute (LOGIN_QUOTA_PER_MINUTE)`;
  }
  const own = describedQuota(description).lists[what]!.perMinute;
  // A list's own limit replaces that of the setting; if the lists share a limit, both apply.
  const limits = [
    ...(own !== undefined ? [`${own} requests a minute (\`quota\` in the description)`] : []),
    ...(own === undefined || scope === 'key'
      ? [`${perMinute} requests a minute (QUOTA_PER_MINUTE)`]
      : []),
  ];
  return `the quota for ${what} is used up: all ${limits.join(', or all ')}`;
}

/** Formats a login token's lifetime in minutes, or in seconds if it is shorter than half a minute. */
function lifeText(lifeMs: number): string {
  const minutes = Math.round(lifeMs / 60_000);
  return minutes > 0 ? `${minutes} min` : `only ${Math.round(lifeMs / 1_000)} s`;
}

/** Returns the resolution of a date notation in ms: the smallest difference that it can express between two dates. */
function unitOf({ write }: TimeFormat): number {
  const start = Date.UTC(2020, 0, 1);
  return [1, 1_000, 60_000, 3_600_000].find((ms) => write(start) !== write(start + ms)) ?? A_DAY_MS;
}
