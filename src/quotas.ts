import { join } from 'node:path';
import type { SchedulerLike } from 'rxjs';
import type { Config, Resource } from './config.ts';
import type { QuotaUse } from './hooks.ts';
import { recentStarts } from './state/recent-starts.ts';
import type { RecentStarts } from './state/recent-starts.ts';
import { tokenBucket } from './streams/token-bucket.ts';
import type { Limit, TokenBucket } from './streams/token-bucket.ts';

/** The lanes of one list's quota. */
export interface Lanes {
  /** First claim: polls, and records read again. */
  readonly poll: Limit;
  /** What the first read may have, so that polls never wait for it. */
  readonly firstRead: Limit;
  /** For lists that are read whole, again and again. */
  readonly whole: Limit;
  /** What polls leave over: for complete readings beside them. */
  readonly sweep: Limit;
  /** For single records that a complete reading has missed: they may be many. */
  readonly ask: Limit;
  /**
   * What one request of a poll costs in time, ms, by what goes on beside it; or one of a list that
   * is read whole and has no polls.
   */
  readonly spacingMs: (beside: 'first-read' | 'asking' | 'nothing' | 'no polls') => number;
}

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
 * The API counts arrivals in a minute. A request counts here until it is answered, which is never too
 * early; so the headroom is for clocks that don't go at the same pace.
 */
const HEADROOM_MS = 200;
export const WINDOW_MS = 60_000 + HEADROOM_MS;
/** What a process that was killed had on its way arrived so long after its start, at most. */
const LATE_MS = 1_000;
/** Of the quota, during a first read; the rest is for polls: of 100 a minute, one every 1.6 s. */
const FIRST_READ_PART = 0.62;
/** Of the quota, while single records are asked for: 1,000 of them in half an hour. */
const ASK_PART = 0.35;
/** Of the quota, when nothing else is under way: what polls leave over for sweeps. */
const SPARE_PART = 0.05;

/** Requests of a minute that polls of a set interval may come to: a page or two each, and some more. */
function pollsEvery(intervalMs: number | undefined): number {
  return intervalMs === undefined ? Infinity : 10 + (2 * WINDOW_MS) / intervalMs;
}

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
    return { all, lanes: lanesOf(all), seen, distrust, lastAsked: Math.max(0, ...times) };
  };
  const listOf = (resource: Resource): ListQuota => {
    const name = quota.scope === 'key' ? 'all' : resource;
    const list = kept.get(name) ?? open(name);
    kept.set(name, list);
    return list;
  };
  const lanesOf = (all: TokenBucket): Lanes => {
    const part = (of: number) => Math.max(1, Math.floor(quota.perMinute * of));
    const forPolls = {
      'first-read': Math.max(1, quota.perMinute - part(FIRST_READ_PART)),
      asking: Math.max(1, quota.perMinute - part(ASK_PART)),
      nothing: Math.max(1, quota.perMinute * (1 - SPARE_PART)),
      'no polls': quota.perMinute,
    };
    const polls = Math.min(forPolls.nothing, pollsEvery(poll.intervalMs) * lists);
    const spare = Math.max(1, Math.floor(quota.perMinute - polls));
    const firstRead = all.lane({ rank: 1, share: part(FIRST_READ_PART) });
    return {
      poll: all,
      firstRead,
      whole: lists > 1 ? firstRead : all, // polls of other lists come first
      sweep: all.lane({ rank: 2, share: spare }),
      ask: all.lane({ rank: 2, share: Math.max(spare, part(ASK_PART)) }),
      spacingMs: (beside) => (WINDOW_MS / forPolls[beside]) * lists,
    };
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
    lastAsked: () => Math.max(0, ...resources.map((resource) => listOf(resource).lastAsked)),
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

function filesIn(folder: string): NonNullable<QuotasOptions['startsOf']> {
  return (name, capacity) => recentStarts(join(folder, name), capacity);
}
