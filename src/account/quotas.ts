import { join } from 'node:path';
import type { SchedulerLike } from 'rxjs';
import type { Config, Resource } from '../config/config.ts';
import type { QuotaUse } from '../observe/hooks.ts';
import { lanesOf } from './lanes.ts';
import type { Lanes } from './lanes.ts';
import { AHEAD_MS, BLOCK_MS } from './ledger/ledger.ts';
import type { Inheritance, Ledger } from './ledger/ledger.ts';
import { ALL, arrivalsIn, countedIn, LATE_MS, LOGIN } from './ledger/ledger-record.ts';
import type { SentRecord, TimedCount } from './ledger/ledger-record.ts';
import { RESOURCES } from '../resources/resources.ts';
import type { LedgerWriter } from '../state/ledger-writer.ts';
import { recentStarts } from '../state/recent-starts.ts';
import type { RecentStarts } from '../state/recent-starts.ts';
import { tokenBucket } from '../streams/quota/token-bucket.ts';
import type { Limit, TokenBucket } from '../streams/quota/token-bucket.ts';

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

/** The quota of the logins, or of one list, or of all of them. */
interface Quota {
  readonly name: string;
  readonly capacity: number;
  readonly bucket: TokenBucket;
  readonly guests: Limit;
  /** What this machine knows of earlier processes; nothing where nothing is kept. */
  readonly file: RecentStarts | undefined;
  /** Requests of others, by the time from which they count. */
  readonly count: (requests: readonly TimedCount[]) => void;
  /** Whether all requests of earlier processes are counted. */
  isSure: boolean;
}

/**
 * The API counts arrivals in a minute, and not all requests are as long on their way; and clocks don't go
 * at the same pace. That is what the headroom is for.
 */
const HEADROOM_MS = 200;
export const WINDOW_MS = 60_000 + HEADROOM_MS;
/** What guests may have of a list's quota, before polls: they wait for an answer, and are rare. */
const GUESTS_PART = 0.15;
const GUESTS_RANK = -1;
/** Of the logins, behind the service's own. */
const GUESTS_LOGIN_PART = 0.5;
const GUESTS_LOGIN_RANK = 1;
/** What is declared of a request is later than what is kept of it by so much at the most, ms: to the end of a second, and {@link LATE_MS}. */
const ROUNDED_MS = 1_000 + LATE_MS;
/** A time that was kept is not further ahead than what a predecessor may have declared: else a clock was set back. */
const MAX_AHEAD_MS = BLOCK_MS + AHEAD_MS + LATE_MS;

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

  const open = (name: string, capacity: number): Quota => {
    const file = startsOf?.(name, capacity);
    const part = ledger?.part(name, capacity, name === LOGIN);
    const bucket = tokenBucket({
      capacity,
      windowMs: WINDOW_MS,
      scheduler,
      ...(part && { gate: part.gate }),
      onStart: (at) => {
        const declared = part?.onStart(at);
        const written = file?.add(at);
        return (end, isAnswered) => {
          declared?.(end, isAnswered);
          written?.(end);
        };
      },
    });
    const isLogin = name === LOGIN;
    const forGuests = Math.floor(capacity * (isLogin ? GUESTS_LOGIN_PART : GUESTS_PART));
    const guests = bucket.lane({
      rank: isLogin ? GUESTS_LOGIN_RANK : GUESTS_RANK,
      share: Math.min(capacity, Math.max(isLogin ? 1 : lists, forGuests)),
    });
    const opened: Quota = {
      ...{ name, capacity, bucket, guests, file, isSure: file?.known ?? true },
      count: (requests) => {
        bucket.count(timesOf(requests, capacity));
        part?.count(requests);
      },
    };
    if (!part) countFile(opened);
    return opened;
  };
  const countFile = ({ file, count }: Quota): void => {
    const latest = scheduler.now() + MAX_AHEAD_MS;
    const times = file?.times.map((at) => Math.min(at + LATE_MS, latest)) ?? [];
    count(times.map((at) => ({ at, count: 1 })));
  };
  /** Whether the file has no fewer requests of the last minute than were declared: else a clock was set, or it was put back. */
  const hasAll = ({ name, file }: Quota, { record, sentBefore }: SentRecord): boolean => {
    const now = scheduler.now();
    const isRecent = (ageMs: number) => sentBefore - ageMs > now - WINDOW_MS + ROUNDED_MS;
    const used = countedIn(name, record).flatMap((declared) => declared.used);
    const made = used.reduce((sum, [ageMs, count]) => (isRecent(ageMs) ? sum + count : sum), 0);
    const kept = file?.times.filter((at) => at > now - WINDOW_MS) ?? [];
    return file?.known === true && kept.length >= made;
  };
  /** What others may have asked; the process after this one has to count it, too. */
  const countMore = (of: Quota, requests: readonly TimedCount[]): void => {
    of.count(requests);
    of.file?.addAll(timesOf(requests, of.capacity));
  };
  const countOthers = (of: Quota, requests: readonly TimedCount[]): void => {
    of.isSure = true;
    countMore(of, requests);
  };
  /** What is free comes one by one within a window: used up at once, it would leave nothing until the oldest request counts no more. */
  const spreadFree = ({ bucket, capacity }: Quota): void => {
    const free = capacity - bucket.used();
    const begin = scheduler.now() - WINDOW_MS;
    bucket.count(Array.from({ length: free }, (_, k) => begin + (k * WINDOW_MS) / free));
  };
  const distrust = (of: Quota): void =>
    countOthers(of, [{ at: scheduler.now(), count: of.capacity }]);

  const login = open(LOGIN, quota.loginsPerMinute);
  const listOf = (resource: Resource) => {
    const name = quota.scope === 'key' ? ALL : resource;
    const known = kept.get(name);
    if (known) return known;
    const opened = open(name, quota.perMinute);
    for (const sent of others) countMore(opened, arrivalsIn(name, sent));
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
  const inherit = ({ record, sentBefore, isRunning, guests, isDoubtful }: Inheritance): boolean => {
    const isOurs = record !== undefined && record.instance === writer?.get();
    for (const one of [login, ...listQuotas()]) {
      const sent = record && { record, sentBefore };
      const isByFile = !sent || (isOurs && hasAll(one, sent));
      if (isByFile) countFile(one);
      else countOthers(one, arrivalsIn(one.name, sent));
      for (const guest of guests) countMore(one, arrivalsIn(one.name, guest));
      if (!isByFile) spreadFree(one);
      if (isDoubtful) distrust(one);
      if (record) one.isSure = true;
    }
    remember([...(record ? [{ record, sentBefore }] : []), ...guests]);
    if (instance !== undefined) writer?.set(instance);
    return isRunning && !isOurs;
  };
  ledger?.guests$?.subscribe((guests) => {
    for (const one of openQuotas()) {
      for (const sent of guests) countMore(one, arrivalsIn(one.name, sent));
    }
    remember(guests);
  });
  const remember = (more: readonly SentRecord[]): void => {
    const from = scheduler.now() - WINDOW_MS - MAX_AHEAD_MS;
    others = [...others, ...more].filter(({ sentBefore }) => sentBefore > from);
  };
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
      if (!asked.has(resource) && seenBefore && !list.quota.isSure) distrust(list.quota);
      asked.add(resource);
      return list.lanes;
    },
    lastAsked: () => newestOf(listQuotas().map(({ file }) => newestOf(file?.times ?? []))),
    distrust: () => listQuotas().forEach(distrust),
    inherit,
    guests: (name) => {
      const one = named(name);
      return (
        one && {
          limit: one.guests,
          count: (requests) => countMore(one, requests),
          keep: (requests) => one.file?.addAll(timesOf(requests, one.capacity)),
        }
      );
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

/** One by one; no more than make a difference. */
function timesOf(requests: readonly TimedCount[], most: number): number[] {
  const newest = requests.toSorted((a, b) => b.at - a.at);
  const times: number[] = [];
  for (const { at, count } of newest) {
    for (let k = 0; k < count && times.length < most; k++) times.push(at);
  }
  return times;
}

/** Not by spreading them: there may be as many as the quota is large. */
function newestOf(times: readonly number[]): number {
  return times.reduce((newest, at) => Math.max(newest, at), 0);
}

function filesIn(folder: string): NonNullable<QuotasOptions['startsOf']> {
  return (name, capacity) => recentStarts(join(folder, name), capacity);
}
