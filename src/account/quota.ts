import type { SchedulerLike } from 'rxjs';
import { LEASE_RENEWAL_MARGIN_MS, LEASE_MS } from './ledger/ledger.ts';
import type { Ledger, QuotaLedger } from './ledger/ledger.ts';
import {
  latestArrivalsIn,
  quotaDeclarationsIn,
  MAX_REQUEST_DELAY_MS,
  LOGIN_QUOTA,
  WINDOW_MS,
} from './ledger/ledger-record.ts';
import type { DatedDeclaration, TimedCount } from './ledger/ledger-record.ts';
import type { RecentStarts } from '../state/recent-starts.ts';
import { sharedBucket } from '../streams/quota/token-bucket.ts';
import type { Limit, SharedBucket } from '../streams/quota/token-bucket.ts';

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

/** Fraction of a quota for lists that guests (processes beside the service) may use; at least one request a minute for each list. */
const GUEST_SHARE = 0.2;
/** Rank of guests' requests. They are served before polls, because they are rare and an operator waits for the result. */
const GUEST_RANK = -1;
/** Fraction of the login quota that guests (processes beside the service) may use; at least one login. Logins of the service come first. */
const GUEST_LOGIN_SHARE = 0.5;
const GUEST_LOGIN_RANK = 1;
/**
 * Maximum number of ms by which the ledger dates a request later than the state folder does. The ledger's time is rounded up to a full
 * second, and may include `MAX_REQUEST_DELAY_MS`.
 */
const DECLARATION_ROUNDING_MS = 1_000 + MAX_REQUEST_DELAY_MS;
/**
 * How far in the future a stored request time can plausibly be, in ms. A time beyond that was stored before the clock was set back, and is
 * lowered to this limit.
 */
export const MAX_FUTURE_START_MS = LEASE_MS + LEASE_RENEWAL_MARGIN_MS + MAX_REQUEST_DELAY_MS;

/**
 * One quota at the API: of logins, of one list, or of all lists together. Combines a token bucket, declarations in the ledger, and stored
 * request times.
 */
export class Quota {
  readonly name: string;
  readonly capacity: number;
  readonly bucket: SharedBucket;
  /** Limit for requests of guests (other processes, such as `check`): the service grants them permits from this part of the quota. */
  readonly guests: Limit;
  /** Request times of this process and of earlier ones, stored in the state folder; undefined if request times are not stored. */
  readonly storedStarts: RecentStarts | undefined;
  readonly #scheduler: SchedulerLike;
  readonly #ledger: QuotaLedger | undefined;
  /**
   * Whether this process can rely on having counted all requests that earlier processes sent in the last minute. False at first if the file
   * that stores request times is absent or damaged.
   */
  isComplete: boolean;
  #waitsUntil = -Infinity;

  constructor(options: QuotaOptions) {
    const { name, capacity, lists, scheduler, storedStarts, ledger } = options;
    const isLogin = name === LOGIN_QUOTA;
    const part = ledger?.quota(name, capacity, isLogin);
    this.name = name;
    this.capacity = capacity;
    this.storedStarts = storedStarts;
    this.#scheduler = scheduler;
    this.#ledger = part;
    this.isComplete = storedStarts?.isReliable ?? true;
    this.bucket = sharedBucket({
      capacity,
      windowMs: WINDOW_MS,
      lateMs: MAX_REQUEST_DELAY_MS,
      scheduler,
      ...(part && { gate: part.gate }),
      onStart: (at) => {
        const declared = part?.onStart(at);
        const stored = storedStarts?.add(at);
        return (end, isAnswered) => {
          declared?.(end, isAnswered);
          stored?.(end);
        };
      },
    });
    const forGuests = Math.floor(capacity * (isLogin ? GUEST_LOGIN_SHARE : GUEST_SHARE));
    this.guests = this.bucket.lane({
      rank: isLogin ? GUEST_LOGIN_RANK : GUEST_RANK,
      share: Math.min(capacity, Math.max(isLogin ? 1 : lists, forGuests)),
    });
    if (!part) this.#countStored(); // with a ledger, `inherit` counts before any request starts
  }

  /** Counts requests that other processes may have sent. Also declares them in the ledger, and stores them for the next process. */
  countOthers(requests: readonly TimedCount[]): void {
    this.#count(requests);
    this.storeForSuccessor(requests);
  }

  /** Stores requests of other processes for the next process that uses this state folder, without counting them in this process. */
  storeForSuccessor(requests: readonly TimedCount[]): void {
    this.storedStarts?.addAll(startTimes(requests, this.capacity));
  }

  /**
   * Counts the requests of earlier processes against the quota: those that `guests` declare, and those of the account's previous owner.
   *
   * The owner's requests are taken from its declaration `sent`. They are taken from the state folder instead if `sent` is undefined, or if
   * the owner used this folder (`isOurs`) and the folder has all of them.
   */
  inherit(
    sent: DatedDeclaration | undefined,
    guests: readonly DatedDeclaration[],
    isOurs: boolean,
  ): void {
    const isByFile = !sent || (isOurs && this.#hasAll(sent));
    if (isByFile) this.#countStored();
    else this.countOthers(latestArrivalsIn(this.name, sent));
    for (const guest of guests) this.countOthers(latestArrivalsIn(this.name, guest));
    if (!isByFile) this.#spreadFree();
    if (sent) this.isComplete = true;
  }

  /**
   * Counts the quota as used up now, because another process may have sent an unknown number of requests. The next request starts after a
   * full quota window.
   */
  waitFullWindow(): void {
    this.isComplete = true;
    this.countOthers([{ at: this.#scheduler.now(), count: this.capacity }]);
  }

  /** Lets no request start before `until`, in ms on the scheduler's clock: the API has reported that no requests remain until then. */
  waitUntil(until: number): void {
    if (until <= this.#waitsUntil) return;
    this.#waitsUntil = until;
    this.countOthers([{ at: until - WINDOW_MS, count: this.capacity }]);
  }

  #count(requests: readonly TimedCount[]): void {
    this.bucket.count(startTimes(requests, this.capacity));
    this.#ledger?.count(requests);
  }

  #countStored(): void {
    const latest = this.#scheduler.now() + MAX_FUTURE_START_MS;
    const times = this.storedStarts?.times ?? [];
    this.#count(times.map((at) => ({ at: Math.min(at + MAX_REQUEST_DELAY_MS, latest), count: 1 })));
  }

  /**
   * Whether the file of request times is undamaged, and contains at least as many requests of the last minute as the predecessor's
   * declaration.
   */
  #hasAll({ declaration, latestSentAt }: DatedDeclaration): boolean {
    const since = this.#scheduler.now() - WINDOW_MS;
    const made = quotaDeclarationsIn(this.name, declaration)
      .flatMap(({ used }) => used)
      .filter(([ageMs]) => latestSentAt - ageMs > since + DECLARATION_ROUNDING_MS)
      .reduce((sum, [, count]) => sum + count, 0);
    // There are fewer if a clock was changed, or an older file was restored.
    const storedTimes = this.storedStarts?.times.filter((at) => at > since) ?? [];
    return this.storedStarts?.isReliable === true && storedTimes.length >= made;
  }

  /**
   * Spreads the requests that the quota has left evenly over one quota window. If all were sent at once, no more could be sent until the
   * oldest counted request leaves the window.
   */
  #spreadFree(): void {
    const free = this.capacity - this.bucket.used();
    const begin = this.#scheduler.now() - WINDOW_MS;
    this.bucket.count(Array.from({ length: free }, (_, k) => begin + (k * WINDOW_MS) / free));
  }
}

/** Returns one time for each request, newest first; only the newest `most` times if there are more. */
function startTimes(requests: readonly TimedCount[], most: number): number[] {
  return (
    requests
      .toSorted((a, b) => b.at - a.at)
      .flatMap(({ at, count }) => Array.from({ length: Math.min(count, most) }, () => at))
      // More requests than the quota's capacity make no difference.
      .slice(0, most)
  );
}
