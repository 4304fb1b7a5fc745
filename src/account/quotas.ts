import { join } from 'node:path';
import type { SchedulerLike } from 'rxjs';
import type { Config, Resource } from '../config/config.ts';
import { hasLogin } from '../description/credentials.ts';
import type { QuotaUse } from '../observe/hooks.ts';
import { lanesOf } from './lanes.ts';
import type { Lanes } from './lanes.ts';
import type { InheritedLedger, Ledger } from './ledger/ledger.ts';
import { SHARED_QUOTA, latestArrivalsIn, LOGIN_QUOTA, WINDOW_MS } from './ledger/ledger-record.ts';
import type { DatedDeclaration } from './ledger/ledger-record.ts';
import type { LedgerWriter } from '../state/ledger-writer.ts';
import { recentStarts } from '../state/recent-starts.ts';
import type { RecentStarts } from '../state/recent-starts.ts';
import type { Limit } from '../streams/quota/token-bucket.ts';
import { MAX_FUTURE_START_MS, Quota } from './quota.ts';

export type { Lanes } from './lanes.ts';

/** The part of a quota that concerns guests. */
export type GuestQuota = Pick<Quota, 'guests' | 'countOthers' | 'storeForSuccessor'>;

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
   * Remembers which process wrote the stored request times. Default: the writer is unknown, and stored times never replace a declaration in
   * the ledger.
   */
  readonly writer?: LedgerWriter;
  /**
   * Id of this process. {@link Quotas.inherit} stores it with `writer`, as the process that writes the request times from then on. Default:
   * no id is stored.
   */
  readonly instance?: string;
}

/** Opens the quotas of one account at the API. Request times are stored, so that the next process counts this one's requests. */
export function quotas(options: QuotasOptions): Quotas {
  return new Quotas(options);
}

/** Request quotas of one account at the API: one for logins, and either one for each list or one for all lists together. */
export class Quotas {
  readonly #options: QuotasOptions;
  readonly #login: Quota;
  /** Open quotas of lists by name, with their lanes. */
  readonly #opened = new Map<string, { readonly quota: Quota; readonly lanes: Lanes }>();
  /** Lists whose lanes were requested. */
  readonly #requested = new Set<Resource>();
  /** Declarations in the ledger that other processes have written so far. A quota that is opened later counts their requests. */
  #others: readonly DatedDeclaration[] = [];

  constructor(options: QuotasOptions) {
    const { config, ledger } = options;
    this.#options = options;
    this.#login = this.#open(LOGIN_QUOTA, config.quota.loginsPerMinute);
    ledger?.guestDeclarations$?.subscribe((guests) => this.#countGuests(guests));
    if (ledger) this.#listQuotas();
  }

  get login(): Limit {
    return this.#login.bucket;
  }

  /**
   * Returns the lanes of a list. Every call for the same list returns the same lanes.
   *
   * @param seenBefore Whether an earlier process has read this list. If that process's request times are neither stored nor declared in the
   * ledger, the first request waits for a full quota window.
   */
  lanes(resource: Resource, seenBefore: boolean): Lanes {
    const { quota, lanes } = this.#listOf(resource);
    // Only for the first call: later on, the earlier requests are those of this process, which are counted.
    if (!this.#requested.has(resource) && seenBefore && !quota.isComplete) quota.waitFullWindow();
    this.#requested.add(resource);
    return lanes;
  }

  /**
   * Returns the time of the newest stored request among all lists that this process reads, in epoch ms: when its response arrived or,
   * without a response, when the request started. 0 if none is stored.
   */
  lastRequestAt(): number {
    return maxOf(this.#listQuotas().map(({ storedStarts }) => maxOf(storedStarts?.times ?? [])));
  }

  /** Makes each list wait for a full quota window (a minute), because another process may have sent an unknown number of requests. */
  waitFullWindow(): void {
    for (const quota of this.#listQuotas()) quota.waitFullWindow();
  }

  /**
   * Counts the requests that other processes had declared in the ledger when this process claimed it. Must be called once; with a ledger,
   * no request starts before this call. Returns whether an instance on another machine may still be sending requests.
   */
  inherit(inherited: InheritedLedger): boolean {
    const { declaration, latestSentAt, isLeaseActive, guests, hasUnreadableEntry } = inherited;
    const { writer, instance } = this.#options;
    const sent = declaration && { declaration, latestSentAt };
    const isOurs = declaration !== undefined && declaration.instance === writer?.get();
    for (const quota of [this.#login, ...this.#listQuotas()]) {
      quota.inherit(sent, guests, isOurs);
      if (hasUnreadableEntry) quota.waitFullWindow();
    }
    this.#remember([...(sent ? [sent] : []), ...guests]);
    if (instance !== undefined) writer?.set(instance);
    return isLeaseActive && !isOurs;
  }

  /**
   * Returns the quota with this name, from which guest processes are granted permits: `login`, a list's name, or `all` if the server counts
   * by API key. Undefined if there is no quota with this name.
   */
  guestQuota(name: string): GuestQuota | undefined {
    if (name === LOGIN_QUOTA) return this.#login;
    const { description, quota, resources } = this.#options.config;
    const resource =
      name === SHARED_QUOTA && quota.scope === 'key'
        ? resources[0]
        : description.lists.find((list) => list.name === name)?.name;
    return resource === undefined ? undefined : this.#listOf(resource).quota;
  }

  /** Returns for each quota how many requests count against it now, and how many it allows in a minute. */
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

  /** Number of lists that share one quota. */
  get #lists(): number {
    const { quota, resources } = this.#options.config;
    return quota.scope === 'key' ? resources.length : 1;
  }

  #open(name: string, capacity: number): Quota {
    const { config, scheduler, stateDir, ledger } = this.#options;
    const folder = stateDir === undefined ? undefined : join(stateDir, 'quota', config.account);
    const {
      storedStartsOf = folder === undefined
        ? undefined
        : (file: string) => recentStarts(join(folder, file), capacity),
    } = this.#options;
    const storedStarts = storedStartsOf?.(name, capacity);
    return new Quota({ name, capacity, lists: this.#lists, scheduler, storedStarts, ledger });
  }

  #listOf(resource: Resource): { readonly quota: Quota; readonly lanes: Lanes } {
    const { config, scheduler } = this.#options;
    const name = config.quota.scope === 'key' ? SHARED_QUOTA : resource;
    const known = this.#opened.get(name);
    if (known) return known;
    const quota = this.#open(name, config.quota.perMinute);
    for (const sent of this.#others) quota.countOthers(latestArrivalsIn(name, sent));
    const lanes = lanesOf({
      ...{ bucket: quota.bucket, quota: config.quota, lists: this.#lists, scheduler },
      intervalMs: config.poll.intervalMs,
      windowMs: WINDOW_MS,
    });
    const opened = { quota, lanes };
    this.#opened.set(name, opened);
    return opened;
  }

  #openQuotas(): Quota[] {
    return [this.#login, ...[...this.#opened.values()].map(({ quota }) => quota)];
  }

  /** Returns the quotas of the lists that this process reads, each quota once. Opens quotas that are not open yet. */
  #listQuotas(): Quota[] {
    const { resources } = this.#options.config;
    return [...new Set(resources.map((resource) => this.#listOf(resource).quota))];
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
