import { join } from 'node:path';
import type { SchedulerLike } from 'rxjs';
import type { Config, Resource } from '../config/config.ts';
import type { QuotaUse } from '../observe/hooks.ts';
import { lanesOf } from './lanes.ts';
import type { Lanes } from './lanes.ts';
import type { InheritedLedger, Ledger } from './ledger/ledger.ts';
import { SHARED_QUOTA, latestArrivalsIn, LOGIN_QUOTA } from './ledger/ledger-record.ts';
import type { DatedDeclaration, TimedCount } from './ledger/ledger-record.ts';
import { RESOURCES } from '../resources/resources.ts';
import type { LedgerWriter } from '../state/ledger-writer.ts';
import { recentStarts } from '../state/recent-starts.ts';
import type { RecentStarts } from '../state/recent-starts.ts';
import type { Limit } from '../streams/quota/token-bucket.ts';
import { MAX_FUTURE_START_MS, openQuota, WINDOW_MS } from './quota.ts';
import type { Quota } from './quota.ts';

export type { Lanes } from './lanes.ts';

/** The request quotas of one account at the API: one of logins, and one of each list or of all lists together. */
export interface Quotas {
  readonly login: Limit;
  /**
   * Returns the lanes of a list (its streams of reads, each with a share of the quota), the same ones for every call. `seenBefore`: whether
   * an earlier process has read this list. If its request times are neither stored nor declared in the ledger, the first request waits for
   * a full window.
   */
  readonly lanes: (resource: Resource, seenBefore: boolean) => Lanes;
  /**
   * Time of the newest stored list request, in epoch ms: of its response if there was one, else of its start. 0 if none is stored.
   */
  readonly lastRequestAt: () => number;
  /**
   * Makes each list wait for a full quota window (a minute) before its next request, because another process may have sent unknown
   * requests.
   */
  readonly waitFullWindow: () => void;
  /**
   * Counts the requests that other processes had declared in the ledger when this process claimed it; to be called once. With a ledger no
   * request starts before this call. Returns whether an instance on another machine may still be sending requests.
   */
  readonly inherit: (inherited: InheritedLedger) => boolean;
  /**
   * Returns the part of a quota from which guest processes are granted permits, by the quota's name: `login`, a list, or `all` if the
   * server counts by API key. Undefined if there is no quota with that name.
   */
  readonly guestLane: (name: string) => GuestLane | undefined;
  /** Returns the current use of each quota: of logins, and of each list or of all lists together. */
  readonly usage: () => readonly QuotaUse[];
  readonly close: () => void;
}

/** The part of a quota from which guests are granted permits. */
export interface GuestLane {
  readonly limit: Limit;
  /** Counts requests that guests may still send. */
  readonly count: (requests: readonly TimedCount[]) => void;
  /** Stores requests that guests may still send, for the next process that uses this state folder, without counting them in this one. */
  readonly storeForSuccessor: (requests: readonly TimedCount[]) => void;
}

export interface QuotasOptions {
  readonly config: Pick<Config, 'quota' | 'account' | 'poll' | 'resources'>;
  readonly scheduler: SchedulerLike;
  /** Folder in which request times are stored for the next process. Default: they are not stored. */
  readonly stateDir?: string;
  /** Opens the stored request times of a quota, by its name. Default: a file in `stateDir` for each quota. */
  readonly storedStartsOf?: (name: string, capacity: number) => RecentStarts;
  /** Ledger in which requests are declared before they are sent. Default: they are not declared. */
  readonly ledger?: Pick<Ledger, 'quota'> & Partial<Pick<Ledger, 'guestDeclarations$'>>;
  /**
   * Remembers which process wrote the stored request times. Default: the process is unknown, so the stored times never replace a
   * declaration in the ledger.
   */
  readonly writer?: LedgerWriter;
  /** Id of this process. */
  readonly instance?: string;
}

/** Opens the quotas of one account at the API. Request times are stored, so that a restarted process counts earlier requests. */
export function quotas(options: QuotasOptions): Quotas {
  const { config, scheduler, stateDir, ledger, writer, instance } = options;
  const { quota, account, poll, resources } = config;
  const {
    storedStartsOf = stateDir === undefined
      ? undefined
      : storedStartsIn(join(stateDir, 'quota', account)),
  } = options;
  /** Number of lists that share one quota. */
  const lists = quota.scope === 'key' ? resources.length : 1;
  const openedQuotas = new Map<string, { readonly quota: Quota; readonly lanes: Lanes }>();
  const asked = new Set<Resource>();
  /** Ledger declarations of other processes so far. A quota that is opened later counts their requests. */
  let others: readonly DatedDeclaration[] = [];

  const open = (name: string, capacity: number): Quota =>
    openQuota({
      name,
      capacity,
      lists,
      scheduler,
      storedStarts: storedStartsOf?.(name, capacity),
      ledger,
    });
  const login = open(LOGIN_QUOTA, quota.loginsPerMinute);
  const listOf = (resource: Resource) => {
    const name = quota.scope === 'key' ? SHARED_QUOTA : resource;
    const known = openedQuotas.get(name);
    if (known) return known;
    const opened = open(name, quota.perMinute);
    for (const sent of others) opened.countOthers(latestArrivalsIn(name, sent));
    const lanes = lanesOf({
      bucket: opened.bucket,
      quota,
      lists,
      intervalMs: poll.intervalMs,
      windowMs: WINDOW_MS,
      scheduler,
    });
    const list = { quota: opened, lanes };
    openedQuotas.set(name, list);
    return list;
  };
  const openQuotas = () => [login, ...[...openedQuotas.values()].map((list) => list.quota)];
  /** Returns the quotas, without duplicates, of the lists that this process reads. Opens those that are not open yet. */
  const listQuotas = () => [...new Set(resources.map((resource) => listOf(resource).quota))];
  const remember = (more: readonly DatedDeclaration[]): void => {
    const from = scheduler.now() - WINDOW_MS - MAX_FUTURE_START_MS;
    others = [...others, ...more].filter(({ latestSentAt }) => latestSentAt > from);
  };
  const inherit = ({
    declaration,
    latestSentAt,
    isLeaseActive,
    guests,
    hasUnreadableEntry,
  }: InheritedLedger): boolean => {
    const sent = declaration && { declaration, latestSentAt };
    const isOurs = declaration !== undefined && declaration.instance === writer?.get();
    for (const one of [login, ...listQuotas()]) {
      one.inherit(sent, guests, isOurs);
      if (hasUnreadableEntry) one.waitFullWindow();
    }
    remember([...(sent ? [sent] : []), ...guests]);
    if (instance !== undefined) writer?.set(instance);
    return isLeaseActive && !isOurs;
  };
  ledger?.guestDeclarations$?.subscribe((guests) => {
    for (const one of openQuotas()) {
      for (const sent of guests) one.countOthers(latestArrivalsIn(one.name, sent));
    }
    remember(guests);
  });
  /** Returns the quota that has this name in declarations of the ledger; undefined if there is none. */
  const named = (name: string): Quota | undefined => {
    if (name === LOGIN_QUOTA) return login;
    const resource =
      name === SHARED_QUOTA && quota.scope === 'key'
        ? resources[0]
        : RESOURCES.find((each) => each === name);
    return resource && listOf(resource).quota;
  };
  if (ledger) listQuotas();
  return {
    login: login.bucket,
    lanes: (resource, seenBefore) => {
      const list = listOf(resource);
      // Only for the first call: later on, the earlier requests are those of this process, which are counted.
      if (!asked.has(resource) && seenBefore && !list.quota.isComplete())
        list.quota.waitFullWindow();
      asked.add(resource);
      return list.lanes;
    },
    lastRequestAt: () =>
      maxOf(listQuotas().map(({ storedStarts }) => maxOf(storedStarts?.times ?? []))),
    waitFullWindow: () => listQuotas().forEach((one) => one.waitFullWindow()),
    inherit,
    guestLane: (name) => {
      const one = named(name);
      return (
        one && {
          limit: one.guests,
          count: one.countOthers,
          storeForSuccessor: one.storeForSuccessor,
        }
      );
    },
    usage: () =>
      [...listQuotas(), login].map(({ name, bucket, capacity }) => ({
        name,
        used: bucket.used(),
        limit: capacity,
      })),
    close: () => openQuotas().forEach(({ storedStarts }) => storedStarts?.close()),
  };
}

/** Maximum of `times`; 0 if there are none. Written without `Math.max(...times)`, which fails for very long arrays. */
function maxOf(times: readonly number[]): number {
  return times.reduce((newest, at) => Math.max(newest, at), 0);
}

function storedStartsIn(folder: string): NonNullable<QuotasOptions['storedStartsOf']> {
  return (name, capacity) => recentStarts(join(folder, name), capacity);
}
