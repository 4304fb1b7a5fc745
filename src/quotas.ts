import { join } from 'node:path';
import type { SchedulerLike } from 'rxjs';
import type { Config, Resource } from './config.ts';
import type { QuotaUse } from './hooks.ts';
import { lanesOf } from './lanes.ts';
import type { Lanes } from './lanes.ts';
import { recentStarts } from './state/recent-starts.ts';
import type { RecentStarts } from './state/recent-starts.ts';
import { tokenBucket } from './streams/token-bucket.ts';
import type { Limit, TokenBucket } from './streams/token-bucket.ts';

export type { Lanes } from './lanes.ts';

export interface Quotas {
  readonly login: Limit;
  /**
   * The lanes of a list; the same for every call. `seenBefore` says that an earlier process has
   * asked this list: if its request times are lost, the first request waits for a whole window.
   */
  readonly lanes: (resource: Resource, seenBefore: boolean) => Lanes;
  /**
   * When the newest list request of earlier processes that is known of was answered, or began, ms since
   * the epoch; 0 if none is.
   */
  readonly lastAsked: () => number;
  /** Another process has asked since then: each list waits for a whole window before it asks. */
  readonly distrust: () => void;
  /** Of the login and of each list, or of all together. */
  readonly use: () => readonly QuotaUse[];
  readonly close: () => void;
}

interface ListQuota {
  readonly all: TokenBucket;
  readonly lanes: Lanes;
  readonly seen: (before: boolean) => void;
  readonly distrust: () => void;
  /** Of the times that were kept. */
  readonly lastAsked: number;
}

export interface QuotasOptions {
  readonly config: Pick<Config, 'quota' | 'account' | 'poll' | 'resources'>;
  readonly scheduler: SchedulerLike;
  /** Where request times are kept for the next process; without it they are not. */
  readonly stateDir?: string;
  /** The request times of a quota, by its name. Default: a file each, in `stateDir`. */
  readonly startsOf?: (name: string, capacity: number) => RecentStarts;
}

/**
 * The API counts arrivals in a minute, and not all requests are as long on their way; and clocks don't go
 * at the same pace. That is what the headroom is for.
 */
const HEADROOM_MS = 200;
export const WINDOW_MS = 60_000 + HEADROOM_MS;
/** What a process that was killed had on its way arrived so long after its start, at most. */
const LATE_MS = 1_000;
/** The quotas of one account at the API, kept across restarts of the process. */
export function quotas(options: QuotasOptions): Quotas {
  const { config, scheduler, stateDir } = options;
  const { quota, account, poll, resources } = config;
  const { startsOf = stateDir === undefined ? undefined : filesIn(join(stateDir, 'quota', account)) } = options; // prettier-ignore
  /** Lists that draw on one quota share its time. */
  const lists = quota.scope === 'key' ? resources.length : 1;
  const files: RecentStarts[] = [];
  const kept = new Map<string, ListQuota>();
  const asked = new Set<Resource>();

  const bucket = (name: string, capacity: number) => {
    const limit = { capacity, windowMs: WINDOW_MS, scheduler };
    if (!startsOf) return { all: tokenBucket(limit), isKnown: true, times: [] };
    const file = startsOf(name, capacity);
    files.push(file);
    const all = tokenBucket({
      ...limit,
      starts: file.times.map((at) => at + LATE_MS),
      onStart: file.add,
    });
    return { all, isKnown: file.known, times: file.times };
  };
  const open = (name: string): ListQuota => {
    const { all, isKnown, times } = bucket(name, quota.perMinute);
    let isSure = isKnown;
    /** Others may have used it up; the process after this one has to wait for that too. */
    const distrust = () => {
      isSure = true;
      all.exhaust();
    };
    const seen = (before: boolean) => {
      if (before && !isSure) distrust();
    };
    const lanes = lanesOf({
      all,
      quota,
      lists,
      intervalMs: poll.intervalMs,
      windowMs: WINDOW_MS,
      scheduler,
    });
    return { all, lanes, seen, distrust, lastAsked: newestOf(times) };
  };
  const listOf = (resource: Resource): ListQuota => {
    const name = quota.scope === 'key' ? 'all' : resource;
    const list = kept.get(name) ?? open(name);
    kept.set(name, list);
    return list;
  };
  const login = bucket('login', quota.loginsPerMinute).all;
  return {
    login,
    lanes: (resource, seenBefore) => {
      const list = listOf(resource);
      // Once a resource: what this very process has asked is known.
      if (!asked.has(resource)) list.seen(seenBefore);
      asked.add(resource);
      return list.lanes;
    },
    lastAsked: () => newestOf(resources.map((resource) => listOf(resource).lastAsked)),
    distrust: () => new Set(resources.map(listOf)).forEach((list) => list.distrust()),
    use: () => {
      for (const resource of resources) listOf(resource);
      const lists = [...kept].map(([name, { all }]) => [name, all, quota.perMinute] as const);
      return [...lists, ['login', login, quota.loginsPerMinute] as const].map(
        ([name, all, limit]) => ({ name, used: all.used(), limit }),
      );
    },
    close: () => files.forEach((file) => file.close()),
  };
}

/** Not by spreading them: there may be as many as the quota is large. */
function newestOf(times: readonly number[]): number {
  return times.reduce((newest, at) => Math.max(newest, at), 0);
}

function filesIn(folder: string): NonNullable<QuotasOptions['startsOf']> {
  return (name, capacity) => recentStarts(join(folder, name), capacity);
}
