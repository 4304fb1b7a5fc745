import type { SchedulerLike } from 'rxjs';
import { AHEAD_MS, BLOCK_MS } from './ledger/ledger.ts';
import type { Ledger } from './ledger/ledger.ts';
import { arrivalsIn, countedIn, LATE_MS, LOGIN } from './ledger/ledger-record.ts';
import type { SentRecord, TimedCount } from './ledger/ledger-record.ts';
import type { RecentStarts } from '../state/recent-starts.ts';
import { tokenBucket } from '../streams/quota/token-bucket.ts';
import type { Limit, TokenBucket } from '../streams/quota/token-bucket.ts';

/** The quota of the logins, or of one list, or of all of them. */
export interface Quota {
  readonly name: string;
  readonly capacity: number;
  readonly bucket: TokenBucket;
  readonly guests: Limit;
  /** What this machine knows of earlier processes; nothing where nothing is kept. */
  readonly file: RecentStarts | undefined;
  /** Whether all requests of earlier processes are counted. */
  readonly isSure: () => boolean;
  /** Counts what others may have asked; the process after this one has to count it, too. */
  readonly countOthers: (requests: readonly TimedCount[]) => void;
  /** Keeps requests for the next process of the folder alone. */
  readonly keep: (requests: readonly TimedCount[]) => void;
  /**
   * Counts what a predecessor has declared, and what its guests have. What is kept of a predecessor on this machine (`isOurs`)
   * is exact, and stands for what it declared, unless something is missing there. Without a declaration it is all there is.
   */
  readonly inherit: (
    sent: SentRecord | undefined,
    guests: readonly SentRecord[],
    isOurs: boolean,
  ) => void;
  /** Another process has asked: a whole window passes before the next request. */
  readonly distrust: () => void;
}

export interface QuotaOptions {
  readonly name: string;
  /** Requests in a window. */
  readonly capacity: number;
  /** How many lists draw on it. */
  readonly lists: number;
  readonly scheduler: SchedulerLike;
  readonly file?: RecentStarts | undefined;
  readonly ledger?: Pick<Ledger, 'part'> | undefined;
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
export const MAX_AHEAD_MS = BLOCK_MS + AHEAD_MS + LATE_MS;

/** One quota at the API: its bucket, its part of the ledger, and what is kept of it on this machine. */
export function openQuota(options: QuotaOptions): Quota {
  const { name, capacity, lists, scheduler, file, ledger } = options;
  const isLogin = name === LOGIN;
  const part = ledger?.part(name, capacity, isLogin);
  const bucket = tokenBucket({
    capacity,
    windowMs: WINDOW_MS,
    lateMs: LATE_MS,
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
  const forGuests = Math.floor(capacity * (isLogin ? GUESTS_LOGIN_PART : GUESTS_PART));
  const guests = bucket.lane({
    rank: isLogin ? GUESTS_LOGIN_RANK : GUESTS_RANK,
    share: Math.min(capacity, Math.max(isLogin ? 1 : lists, forGuests)),
  });
  let isSure = file?.known ?? true;

  const count = (requests: readonly TimedCount[]): void => {
    bucket.count(timesOf(requests, capacity));
    part?.count(requests);
  };
  const keep = (requests: readonly TimedCount[]): void => file?.addAll(timesOf(requests, capacity));
  const countOthers = (requests: readonly TimedCount[]): void => {
    count(requests);
    keep(requests);
  };
  const countFile = (): void => {
    const latest = scheduler.now() + MAX_AHEAD_MS;
    const times = file?.times.map((at) => Math.min(at + LATE_MS, latest)) ?? [];
    count(times.map((at) => ({ at, count: 1 })));
  };
  /** Whether the file has no fewer requests of the last minute than were declared: else a clock was set, or it was put back. */
  const hasAll = ({ record, sentBefore }: SentRecord): boolean => {
    const now = scheduler.now();
    const isRecent = (ageMs: number) => sentBefore - ageMs > now - WINDOW_MS + ROUNDED_MS;
    const used = countedIn(name, record).flatMap((declared) => declared.used);
    const made = used.reduce((sum, [ageMs, n]) => (isRecent(ageMs) ? sum + n : sum), 0);
    const kept = file?.times.filter((at) => at > now - WINDOW_MS) ?? [];
    return file?.known === true && kept.length >= made;
  };
  /** What is free comes one by one within a window: used up at once, it would leave nothing until the oldest request counts no more. */
  const spreadFree = (): void => {
    const free = capacity - bucket.used();
    const begin = scheduler.now() - WINDOW_MS;
    bucket.count(Array.from({ length: free }, (_, k) => begin + (k * WINDOW_MS) / free));
  };

  if (!part) countFile(); // with a ledger nothing starts before it is inherited
  return {
    ...{ name, capacity, bucket, guests, file, countOthers, keep },
    isSure: () => isSure,
    inherit: (sent, others, isOurs) => {
      const isByFile = !sent || (isOurs && hasAll(sent));
      if (isByFile) countFile();
      else countOthers(arrivalsIn(name, sent));
      for (const other of others) countOthers(arrivalsIn(name, other));
      if (!isByFile) spreadFree();
      if (sent) isSure = true;
    },
    distrust: () => {
      isSure = true;
      countOthers([{ at: scheduler.now(), count: capacity }]);
    },
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
