import { join } from 'node:path';
import type { SchedulerLike } from 'rxjs';
import type { Config, Resource } from '../config/config.ts';
import type { QuotaUse } from '../observe/hooks.ts';
import { lanesOf } from './lanes.ts';
import type { Lanes } from './lanes.ts';
import type { Inheritance, Ledger } from './ledger/ledger.ts';
import { ALL, arrivalsIn, LOGIN } from './ledger/ledger-record.ts';
import type { SentRecord, TimedCount } from './ledger/ledger-record.ts';
import { RESOURCES } from '../resources/resources.ts';
import type { LedgerWriter } from '../state/ledger-writer.ts';
import { recentStarts } from '../state/recent-starts.ts';
import type { RecentStarts } from '../state/recent-starts.ts';
import type { Limit } from '../streams/quota/token-bucket.ts';
import { MAX_AHEAD_MS, openQuota, WINDOW_MS } from './quota.ts';
import type { Quota } from './quota.ts';

export type { Lanes } from './lanes.ts';

export interface Quotas {
  readonly login: Limit;
  /**
   * The lanes of a list; the same for every call. `seenBefore` says that an earlier process has
   * asked this list: if its request times are lost, and no ledger tells of them, the first request waits for a whole
   * window.
   */
  readonly lanes: (resource: Resource, seenBefore: boolean) => Lanes;
  /**
   * When the newest list request of earlier processes that is known of was answered, or began, ms since
   * the epoch; 0 if none is.
   */
  readonly lastAsked: () => number;
  /** Another process has asked since then: each list waits for a whole window before it asks. */
  readonly distrust: () => void;
  /**
   * What an earlier process has declared, once: in its own place if it was on this machine, else in the place of what is
   * known here. Where there is a ledger nothing starts before. Gives whether an instance elsewhere may still ask.
   */
  readonly inherit: (inherited: Inheritance) => boolean;
  /**
   * What guests have of a quota: `login`, a list's, or `all` where the server counts by key. Undefined where there is no such
   * quota here.
   */
  readonly guests: (name: string) => GuestLane | undefined;
  /** Of the login and of each list, or of all together. */
  readonly use: () => readonly QuotaUse[];
  readonly close: () => void;
}

/** The part of a quota that is given away. */
export interface GuestLane {
  readonly limit: Limit;
  /** Counts requests of guests that are still to come. */
  readonly count: (requests: readonly TimedCount[]) => void;
  /** Keeps them for the next process of the folder alone. */
  readonly keep: (requests: readonly TimedCount[]) => void;
}

export interface QuotasOptions {
  readonly config: Pick<Config, 'quota' | 'account' | 'poll' | 'resources'>;
  readonly scheduler: SchedulerLike;
  /** Where request times are kept for the next process; without it they are not. */
  readonly stateDir?: string;
  /** The request times of a quota, by its name. Default: a file each, in `stateDir`. */
  readonly startsOf?: (name: string, capacity: number) => RecentStarts;
  /** Where requests are declared before they are sent. Default they are not. */
  readonly ledger?: Pick<Ledger, 'part'> & Partial<Pick<Ledger, 'guests$'>>;
  /** Whose declarations the request times of this machine belong to. Default nobody's. */
  readonly writer?: LedgerWriter;
  /** Names this process. */
  readonly instance?: string;
}

/** The quotas of one account at the API, kept across restarts of the process. */
export function quotas(options: QuotasOptions): Quotas {
  const { config, scheduler, stateDir, ledger, writer, instance } = options;
  const { quota, account, poll, resources } = config;
  const {
    startsOf = stateDir === undefined ? undefined : filesIn(join(stateDir, 'quota', account)),
  } = options;
  /** Lists that draw on one quota share its time. */
  const lists = quota.scope === 'key' ? resources.length : 1;
  const kept = new Map<string, { readonly quota: Quota; readonly lanes: Lanes }>();
  const asked = new Set<Resource>();
  /** Declarations of others so far: a list that is first asked for later counts them then. */
  let others: readonly SentRecord[] = [];

  const open = (name: string, capacity: number): Quota =>
    openQuota({ name, capacity, lists, scheduler, file: startsOf?.(name, capacity), ledger });
  const login = open(LOGIN, quota.loginsPerMinute);
  const listOf = (resource: Resource) => {
    const name = quota.scope === 'key' ? ALL : resource;
    const known = kept.get(name);
    if (known) return known;
    const opened = open(name, quota.perMinute);
    for (const sent of others) opened.countOthers(arrivalsIn(name, sent));
    const lanes = lanesOf({
      all: opened.bucket,
      quota,
      lists,
      intervalMs: poll.intervalMs,
      windowMs: WINDOW_MS,
      scheduler,
    });
    const list = { quota: opened, lanes };
    kept.set(name, list);
    return list;
  };
  const openQuotas = () => [login, ...[...kept.values()].map((list) => list.quota)];
  /** Of what this process reads; opened where they are not yet. */
  const listQuotas = () => [...new Set(resources.map((resource) => listOf(resource).quota))];
  const remember = (more: readonly SentRecord[]): void => {
    const from = scheduler.now() - WINDOW_MS - MAX_AHEAD_MS;
    others = [...others, ...more].filter(({ sentBefore }) => sentBefore > from);
  };
  const inherit = ({ record, sentBefore, isRunning, guests, isDoubtful }: Inheritance): boolean => {
    const sent = record && { record, sentBefore };
    const isOurs = record !== undefined && record.instance === writer?.get();
    for (const one of [login, ...listQuotas()]) {
      one.inherit(sent, guests, isOurs);
      if (isDoubtful) one.distrust();
    }
    remember([...(sent ? [sent] : []), ...guests]);
    if (instance !== undefined) writer?.set(instance);
    return isRunning && !isOurs;
  };
  ledger?.guests$?.subscribe((guests) => {
    for (const one of openQuotas()) {
      for (const sent of guests) one.countOthers(arrivalsIn(one.name, sent));
    }
    remember(guests);
  });
  /** A quota by its name in a declaration. */
  const named = (name: string): Quota | undefined => {
    if (name === LOGIN) return login;
    const resource =
      name === ALL && quota.scope === 'key'
        ? resources[0]
        : RESOURCES.find((each) => each === name);
    return resource && listOf(resource).quota;
  };
  if (ledger) listQuotas();
  return {
    login: login.bucket,
    lanes: (resource, seenBefore) => {
      const list = listOf(resource);
      // Once a resource: what this very process has asked is known.
      if (!asked.has(resource) && seenBefore && !list.quota.isSure()) list.quota.distrust();
      asked.add(resource);
      return list.lanes;
    },
    lastAsked: () => newestOf(listQuotas().map(({ file }) => newestOf(file?.times ?? []))),
    distrust: () => listQuotas().forEach((one) => one.distrust()),
    inherit,
    guests: (name) => {
      const one = named(name);
      return one && { limit: one.guests, count: one.countOthers, keep: one.keep };
    },
    use: () =>
      [...listQuotas(), login].map(({ name, bucket, capacity }) => ({
        name,
        used: bucket.used(),
        limit: capacity,
      })),
    close: () => openQuotas().forEach(({ file }) => file?.close()),
  };
}

/** Not by spreading them: there may be as many as the quota is large. */
function newestOf(times: readonly number[]): number {
  return times.reduce((newest, at) => Math.max(newest, at), 0);
}

function filesIn(folder: string): NonNullable<QuotasOptions['startsOf']> {
  return (name, capacity) => recentStarts(join(folder, name), capacity);
}
