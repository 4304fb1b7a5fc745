import { join } from 'node:path';
import type { SchedulerLike } from 'rxjs';
import type { Config, Resource } from '../config/config.ts';
import { hasLogin } from '../description/credentials.ts';
import type { Hooks, QuotaUse } from '../observe/hooks.ts';
import { lanesOf, lanesTogether } from './lanes.ts';
import type { BucketLanes, Lanes } from './lanes.ts';
import { describedQuota } from '../description/quota-limits.ts';
import type { DescribedQuota } from '../description/quota-limits.ts';
import type { InheritedLedger, Ledger } from './ledger/ledger.ts';
import {
  SHARED_QUOTA,
  latestArrivalsIn,
  LOGIN_QUOTA,
  MAX_REQUEST_DELAY_MS,
  SECOND_WINDOW_MS,
  WINDOW_MS,
} from './ledger/ledger-record.ts';
import type { DatedDeclaration } from './ledger/ledger-record.ts';
import { recentStarts, type LedgerWriter, type RecentStarts } from '../state/recent-starts.ts';
import { sharedBucket } from '../streams/quota/token-bucket.ts';
import type { Limit, SharedBucket } from '../streams/quota/token-bucket.ts';
import { MAX_FUTURE_START_MS, Quota } from './quota.ts';
import { ReportedUse } from './reported-use.ts';
import { AnswerRules } from '../streams/http/answer-rules.ts';
import type { HttpResponse } from '../streams/http/http.ts';

export type { Lanes } from './lanes.ts';

export interface QuotasOptions {
  readonly config: Pick<Config, 'description' | 'quota' | 'account' | 'poll' | 'resources'>;
  readonly scheduler: SchedulerLike;
  /** Folder in which request times are stored for the next process. Default: they are not stored. */
  readonly stateDir?: string;
  /** Opens the stored request times of a quota. Default: a file in `stateDir` for each quota. */
  readonly storedStartsOf?: (name: string, capacity: number) => RecentStarts;
  /** Ledger in which requests are declared before they are sent. Default: requests are not declared. */
  readonly ledger?: Pick<Ledger, 'quota'> & Partial<Pick<Ledger, 'guestDeclarations$'>>;
  /**
   * Reads and writes the id of the process that wrote the stored request times. If that process also wrote the newest declaration in the
   * ledger, its stored times may be counted instead of the declaration. Default: the declaration is always counted.
   */
  readonly writer?: LedgerWriter;
  /**
   * Id of this process. It is stored with the request times of the account, so that a later process can tell which process wrote them.
   * Default: no id is stored.
   */
  readonly instance?: string;
  /** `onQuotaShared` is called once for each quota, when the API's responses show that others use it, too. Default: not called. */
  readonly hooks?: Pick<Hooks, 'onQuotaShared'>;
}

/** An open quota of one or several lists, with its lanes and a counter of the requests that other processes send against it. */
interface OpenQuota {
  readonly quota: Quota;
  readonly lanes: BucketLanes;
  readonly reported: ReportedUse;
}

/** The quotas of one list: first the one that it shares with other lists, if any, then its own, if any. */
interface ListQuotas {
  readonly quotas: readonly OpenQuota[];
  readonly lanes: Lanes;
}

/** Opens the quotas of one account at the API. With `stateDir`, request times are stored, so that the next process counts them. */
export function quotas(options: QuotasOptions): Quotas {
  return new Quotas(options);
}

/**
 * Quotas of one account at the API. Per minute: one for logins, and for lists either one each, one for all together, or both. Per second:
 * further limits, if the API has any.
 */
export class Quotas {
  readonly #options: QuotasOptions;
  /** Limits how often login requests may start. */
  readonly login: Limit;
  readonly #login: Quota;
  readonly #described: DescribedQuota;
  readonly #rules: AnswerRules;
  /** The quotas of lists that were created so far, by name: a list's name, or `all` for one that all lists share. */
  readonly #opened = new Map<string, OpenQuota>();
  readonly #lists = new Map<Resource, ListQuotas>();
  /**
   * The limits of requests per second. Their use is neither stored nor declared: a process that claims the account counts them as used up.
   */
  readonly #secondLimits: { readonly bucket: SharedBucket; readonly capacity: number }[] = [];
  readonly #keySecond: readonly SharedBucket[];
  /** Lists for which {@link lanes} was called. */
  readonly #requested = new Set<Resource>();
  /** Recent declarations of other processes, as read from the ledger. A quota that is opened later counts their requests, too. */
  #others: readonly DatedDeclaration[] = [];

  constructor(options: QuotasOptions) {
    const { config, ledger } = options;
    this.#options = options;
    this.#described = describedQuota(config.description);
    this.#rules = new AnswerRules(config.description);
    this.#keySecond = this.#secondLimit(this.#described.keyPerSecond);
    this.#login = this.#open(LOGIN_QUOTA, config.quota.loginsPerMinute, 1);
    const loginsPerSecond = this.#secondLimit(this.#described.login.perSecond);
    this.login = this.#login.bucket.together(loginsPerSecond);
    ledger?.guestDeclarations$?.subscribe((guests) => this.#countGuests(guests));
    if (ledger) this.#listQuotas();
  }

  /**
   * Returns the lanes of a list: a limit for each kind of its requests (polls, sweeps, ...).
   *
   * @param seenBefore Whether an earlier process has read this list. If true, and requests of that process may be unknown, the first
   * request waits for a full quota window.
   */
  lanes(resource: Resource, seenBefore: boolean): Lanes {
    const { quotas: ofList, lanes } = this.#listOf(resource);
    // Only for the first call: later on, the earlier requests are those of this process, which are counted.
    if (!this.#requested.has(resource) && seenBefore) {
      for (const { quota } of ofList) if (!quota.isComplete) quota.waitFullWindow();
    }
    this.#requested.add(resource);
    return lanes;
  }

  /**
   * Returns a function to call for each request of the list that is sent. That function returns another one, to call when the request ends:
   * with the response, or with undefined if there is none. The responses may state the remaining quota, which reveals requests of other
   * processes.
   */
  reportsOf(resource: Resource): () => (answer: HttpResponse | undefined) => void {
    // If the list has two quotas, the responses are taken to state what remains of the shared one.
    return () => this.#listOf(resource).quotas[0]!.reported.begin();
  }

  /**
   * Returns when earlier processes sent their newest request for any list, in epoch ms, as stored in the state folder; 0 if no time is
   * stored.
   */
  lastRequestAt(): number {
    return maxOf(this.#listQuotas().map(({ storedStarts }) => maxOf(storedStarts?.times ?? [])));
  }

  /** Makes each list wait for a full quota window (a minute), because another process may have sent an unknown number of requests. */
  waitFullWindow(): void {
    for (const quota of this.#listQuotas()) quota.waitFullWindow();
  }

  /**
   * Counts the requests that other processes had declared in the ledger when this process claimed it. With a ledger, it must be called
   * once, before the first request. Returns whether an instance that uses another state folder may still be sending requests.
   */
  inherit(inherited: InheritedLedger): boolean {
    const { sent, isLeaseActive, guests, hasUnreadableEntry } = inherited;
    const { writer, instance } = this.#options;
    const isOurs = sent !== undefined && sent.declaration.instance === writer?.get();
    for (const quota of [this.#login, ...this.#listQuotas()]) {
      quota.inherit(sent, guests, isOurs);
      if (hasUnreadableEntry) quota.waitFullWindow();
    }
    this.#remember([...(sent ? [sent] : []), ...guests]);
    if (sent) {
      const endsAt = sent.latestSentAt + sent.declaration.blockMs;
      this.#waitSecond(isOurs ? Math.min(endsAt, this.#options.scheduler.now()) : endsAt);
    }
    if (instance !== undefined) writer?.set(instance);
    return isLeaseActive && !isOurs;
  }

  /**
   * Returns the quota from which guests are granted permits under this name: `login`, `all`, or a list's name. For a list without its own
   * quota this is the quota that lists share. Undefined if there is no such quota.
   */
  guestQuota(name: string): Quota | undefined {
    if (name === LOGIN_QUOTA) return this.#login;
    const { description, quota, resources } = this.#options.config;
    if (name === SHARED_QUOTA && quota.scope === 'key')
      return this.#listOf(resources[0]!).quotas[0]!.quota;
    const list = description.lists.find((each) => each.name === name);
    return list && this.#listOf(list.name).quotas.at(-1)!.quota;
  }

  /**
   * Returns for each quota how many requests count against it now, and how many it allows in a minute. The quota of logins is left out if
   * the API has no login.
   */
  usage(): readonly QuotaUse[] {
    const logins = hasLogin(this.#options.config.description) ? [this.#login] : [];
    return [...this.#listQuotas(), ...logins].map(({ name, bucket, capacity }) => ({
      name,
      used: bucket.used(),
      limit: capacity,
    }));
  }

  close(): void {
    for (const { storedStarts } of this.#openQuotas()) storedStarts?.close();
  }

  #open(name: string, capacity: number, lists: number): Quota {
    const { config, scheduler, stateDir, storedStartsOf, ledger } = this.#options;
    const inFolder = (folder: string) =>
      recentStarts(join(folder, 'quota', config.account, name), capacity);
    const storedStarts =
      storedStartsOf?.(name, capacity) ?? (stateDir === undefined ? undefined : inFolder(stateDir));
    return new Quota({ name, capacity, lists, scheduler, storedStarts, ledger });
  }

  #listOf(resource: Resource): ListQuotas {
    const known = this.#lists.get(resource);
    if (known) return known;
    const { quota, resources } = this.#options.config;
    const { perMinute: own, perSecond } = this.#described.lists[resource]!;
    const quotas =
      quota.scope === 'endpoint'
        ? [this.#opening(resource, own ?? quota.perMinute, 1)]
        : [
            this.#opening(SHARED_QUOTA, quota.perMinute, resources.length),
            ...(own === undefined ? [] : [this.#opening(resource, own, 1)]),
          ];
    const further = [...this.#keySecond, ...this.#secondLimit(perSecond)];
    const lanes = lanesTogether(quotas[0]!.lanes, quotas[1]?.lanes, further);
    const opened = { quotas, lanes };
    this.#lists.set(resource, opened);
    return opened;
  }

  /** Returns the quota with this name, which is opened by the first call. `lists` is the number of lists that share it. */
  #opening(name: string, perMinute: number, lists: number): OpenQuota {
    const known = this.#opened.get(name);
    if (known) return known;
    const { config, scheduler, hooks } = this.#options;
    const quota = this.#open(name, perMinute, lists);
    for (const sent of this.#others) quota.countOthers(latestArrivalsIn(name, sent));
    const lanes = lanesOf({
      ...{ bucket: quota.bucket, quota: { ...config.quota, perMinute }, lists, scheduler },
      intervalMs: config.poll.intervalMs,
      windowMs: WINDOW_MS,
    });
    let isSaid = false;
    const reported = new ReportedUse({
      ...{ rules: this.#rules, scheduler },
      onOthers: (count) => {
        quota.countOthers([{ at: scheduler.now(), count }]);
        if (!isSaid) hooks?.onQuotaShared?.({ quota: name, requests: count });
        isSaid = true;
      },
      onUsedUp: (until) => quota.waitUntil(until),
    });
    const opened = { quota, lanes, reported };
    this.#opened.set(name, opened);
    return opened;
  }

  /** Creates a limit of `capacity` requests a second. Returns an array with its bucket; an empty array if `capacity` is undefined. */
  #secondLimit(capacity: number | undefined): SharedBucket[] {
    if (capacity === undefined) return [];
    const { scheduler } = this.#options;
    const windowMs = SECOND_WINDOW_MS;
    const bucket = sharedBucket({ capacity, windowMs, lateMs: MAX_REQUEST_DELAY_MS, scheduler });
    this.#secondLimits.push({ bucket, capacity });
    return [bucket];
  }

  /**
   * Counts the limits per second as used up, because the predecessor may have sent a request just before.
   *
   * @param sentUntil Latest time at which the predecessor may have sent a request, in ms.
   */
  #waitSecond(sentUntil: number): void {
    const at = sentUntil + MAX_REQUEST_DELAY_MS;
    for (const { bucket, capacity } of this.#secondLimits) {
      bucket.count(Array.from({ length: capacity }, () => at));
    }
  }

  #openQuotas(): Quota[] {
    return [this.#login, ...[...this.#opened.values()].map(({ quota }) => quota)];
  }

  /** Returns the quotas of the lists that this process reads, each quota once. Opens quotas that are not open yet. */
  #listQuotas(): Quota[] {
    const { resources } = this.#options.config;
    const open = resources.flatMap((resource) => this.#listOf(resource).quotas);
    return [...new Set(open.map(({ quota }) => quota))];
  }

  #countGuests(guests: readonly DatedDeclaration[]): void {
    for (const quota of this.#openQuotas()) {
      for (const sent of guests) quota.countOthers(latestArrivalsIn(quota.name, sent));
    }
    this.#remember(guests);
  }

  #remember(more: readonly DatedDeclaration[]): void {
    const from = this.#options.scheduler.now() - WINDOW_MS - MAX_FUTURE_START_MS;
    this.#others = [...this.#others, ...more].filter(({ latestSentAt }) => latestSentAt > from);
  }
}

/** Returns the maximum of `times`; 0 if there are none. `Math.max(...times)` would fail for very long arrays. */
function maxOf(times: readonly number[]): number {
  return times.reduce((newest, at) => Math.max(newest, at), 0);
}
