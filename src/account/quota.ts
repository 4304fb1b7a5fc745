import type { SchedulerLike } from 'rxjs';
import { LEASE_RENEWAL_MARGIN_MS, LEASE_MS } from './ledger/ledger.ts';
import type { Ledger } from './ledger/ledger.ts';
import {
  latestArrivalsIn,
  quotaDeclarationsIn,
  MAX_REQUEST_DELAY_MS,
  LOGIN_QUOTA,
} from './ledger/ledger-record.ts';
import type { DatedDeclaration, TimedCount } from './ledger/ledger-record.ts';
import type { RecentStarts } from '../state/recent-starts.ts';
import { tokenBucket } from '../streams/quota/token-bucket.ts';
import type { Limit, TokenBucket } from '../streams/quota/token-bucket.ts';

/** One quota at the API: of logins, of one list, or of all lists together. */
export interface Quota {
  readonly name: string;
  readonly capacity: number;
  readonly bucket: TokenBucket;
  /** The part of the quota from which guest processes are granted permits. */
  readonly guests: Limit;
  /** Request times of this process and earlier ones, stored in the state folder; undefined if none are stored. */
  readonly storedStarts: RecentStarts | undefined;
  /** Whether all requests that earlier processes sent within the last quota window are counted. */
  readonly isComplete: () => boolean;
  /** Counts requests that other processes may have sent, and declares and stores them for the next process. */
  readonly countOthers: (requests: readonly TimedCount[]) => void;
  /** Stores requests for the next process that uses this state folder, without counting them in this one. */
  readonly storeForSuccessor: (requests: readonly TimedCount[]) => void;
  /**
   * Counts the requests that a predecessor and guests have declared in the ledger. If the predecessor ran on this machine (`isOurs`) its
   * stored request times are exact and replace its declaration, unless some are missing. Without a declaration the stored times are all
   * that is known.
   */
  readonly inherit: (
    sent: DatedDeclaration | undefined,
    guests: readonly DatedDeclaration[],
    isOurs: boolean,
  ) => void;
  /** Counts the quota as used up now, because another process may have sent unknown requests: the next request waits for a window. */
  readonly waitFullWindow: () => void;
}

export interface QuotaOptions {
  readonly name: string;
  /** Maximum number of requests in a quota window ({@link WINDOW_MS}). */
  readonly capacity: number;
  /** Number of lists that share the quota. */
  readonly lists: number;
  readonly scheduler: SchedulerLike;
  readonly storedStarts?: RecentStarts | undefined;
  readonly ledger?: Pick<Ledger, 'quota'> | undefined;
}

/**
 * Time added to the minute in which requests are counted, in ms. The API counts requests as they arrive: latencies vary, and clocks do not
 * run at the same rate. Too small: the server may count more requests than the quota. Too large: quota is wasted.
 */
const HEADROOM_MS = 200;
/** Window in which requests are counted against a quota, in ms. */
export const WINDOW_MS = 60_000 + HEADROOM_MS;
/**
 * Fraction of a list's quota that guests (processes such as `check`) may use. Guests are served before polls: they are rare, and an
 * operator waits for them.
 */
const GUEST_SHARE = 0.15;
const GUEST_RANK = -1;
/** Fraction of the login quota that guests may use. Their logins are served after the service's own. */
const GUEST_LOGIN_SHARE = 0.5;
const GUEST_LOGIN_RANK = 1;
/**
 * Upper bound of how much later a request is dated in a ledger declaration than in the stored request times, in ms: its longest delay, and
 * rounding up to a second.
 */
const DECLARATION_ROUNDING_MS = 1_000 + MAX_REQUEST_DELAY_MS;
/**
 * Upper bound of how far a stored request time may be in the future, in ms: the end of a predecessor's lease. Later times come from a clock
 * that was set back.
 */
export const MAX_FUTURE_START_MS = LEASE_MS + LEASE_RENEWAL_MARGIN_MS + MAX_REQUEST_DELAY_MS;

/** Opens one quota: its token bucket, its part of the ledger, and its stored request times. */
export function openQuota(options: QuotaOptions): Quota {
  const { name, capacity, lists, scheduler, storedStarts, ledger } = options;
  const isLogin = name === LOGIN_QUOTA;
  const part = ledger?.quota(name, capacity, isLogin);
  const bucket = tokenBucket({
    capacity,
    windowMs: WINDOW_MS,
    lateMs: MAX_REQUEST_DELAY_MS,
    scheduler,
    ...(part && { gate: part.gate }),
    onStart: (at) => {
      const declared = part?.onStart(at);
      const written = storedStarts?.add(at);
      return (end, isAnswered) => {
        declared?.(end, isAnswered);
        written?.(end);
      };
    },
  });
  const forGuests = Math.floor(capacity * (isLogin ? GUEST_LOGIN_SHARE : GUEST_SHARE));
  const guests = bucket.lane({
    rank: isLogin ? GUEST_LOGIN_RANK : GUEST_RANK,
    share: Math.min(capacity, Math.max(isLogin ? 1 : lists, forGuests)),
  });
  let isSure = storedStarts?.isReliable ?? true;

  const count = (requests: readonly TimedCount[]): void => {
    bucket.count(startTimes(requests, capacity));
    part?.count(requests);
  };
  const storeForSuccessor = (requests: readonly TimedCount[]): void =>
    storedStarts?.addAll(startTimes(requests, capacity));
  const countOthers = (requests: readonly TimedCount[]): void => {
    count(requests);
    storeForSuccessor(requests);
  };
  const countFile = (): void => {
    const latest = scheduler.now() + MAX_FUTURE_START_MS;
    const times =
      storedStarts?.times.map((at) => Math.min(at + MAX_REQUEST_DELAY_MS, latest)) ?? [];
    count(times.map((at) => ({ at, count: 1 })));
  };
  /** Whether as many requests of the last minute are stored as were declared. If not, a clock was set, or an older file was restored. */
  const hasAll = ({ declaration, latestSentAt }: DatedDeclaration): boolean => {
    const now = scheduler.now();
    const isRecent = (ageMs: number) =>
      latestSentAt - ageMs > now - WINDOW_MS + DECLARATION_ROUNDING_MS;
    const used = quotaDeclarationsIn(name, declaration).flatMap((declared) => declared.used);
    const made = used.reduce((sum, [ageMs, n]) => (isRecent(ageMs) ? sum + n : sum), 0);
    const storedTimes = storedStarts?.times.filter((at) => at > now - WINDOW_MS) ?? [];
    return storedStarts?.isReliable === true && storedTimes.length >= made;
  };
  /**
   * Makes the requests that the quota has left available one by one during a quota window. If all were sent at once, none would be left
   * until the oldest request expires.
   */
  const spreadFree = (): void => {
    const free = capacity - bucket.used();
    const begin = scheduler.now() - WINDOW_MS;
    bucket.count(Array.from({ length: free }, (_, k) => begin + (k * WINDOW_MS) / free));
  };

  if (!part) countFile(); // with a ledger, `inherit` counts before any request starts
  return {
    ...{ name, capacity, bucket, guests, storedStarts, countOthers, storeForSuccessor },
    isComplete: () => isSure,
    inherit: (sent, others, isOurs) => {
      const isByFile = !sent || (isOurs && hasAll(sent));
      if (isByFile) countFile();
      else countOthers(latestArrivalsIn(name, sent));
      for (const other of others) countOthers(latestArrivalsIn(name, other));
      if (!isByFile) spreadFree();
      if (sent) isSure = true;
    },
    waitFullWindow: () => {
      isSure = true;
      countOthers([{ at: scheduler.now(), count: capacity }]);
    },
  };
}

/**
 * Expands counts to one time for each request. Returns only the newest `most` times, as more than the quota's capacity make no difference.
 */
function startTimes(requests: readonly TimedCount[], most: number): number[] {
  const newest = requests.toSorted((a, b) => b.at - a.at);
  const times: number[] = [];
  for (const { at, count } of newest) {
    for (let k = 0; k < count && times.length < most; k++) times.push(at);
  }
  return times;
}
