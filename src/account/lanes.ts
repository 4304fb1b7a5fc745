import type { SchedulerLike } from 'rxjs';
import type { Config } from '../config/config.ts';
import type { Limit, TokenBucket } from '../streams/quota/token-bucket.ts';

/** The lanes of one list, each with its share of the quota. */
export interface Lanes {
  /** Lane of polls for new changes, with the highest priority. */
  readonly poll: Limit;
  /** Lane of refetches and lookback polls: at most a third of the quota that snapshot, sweeps and single records have not used. */
  readonly lookback: Limit;
  /** Lane of the initial snapshot: `INITIAL_SNAPSHOT_PERCENT` of the quota, and whatever polls leave over. */
  readonly initialSnapshot: Limit;
  /** Lane of sweeps of a list that is not polled. */
  readonly fullScan: Limit;
  /** Lane of sweeps of a polled list: the part of the quota that polls leave over. */
  readonly sweep: Limit;
  /** Lane of requests for single records that a sweep did not show, of which there may be many. */
  readonly singleRecords: Limit;
  /** Returns the time between poll requests, in ms, that keeps polls within their share of the quota while the reads `beside` run. */
  readonly pollSpacingMs: (beside: ConcurrentReads) => number;
  /** Time between requests, in ms, at which a single lane uses up the list's whole share of the quota. */
  readonly requestIntervalMs: number;
}

/** Reads that run alongside a list's polls: the initial snapshot (`first-read`), single records or other requested reads (`asking`). */
type ConcurrentReads = 'first-read' | 'asking' | 'nothing';

export interface LanesOptions {
  readonly bucket: TokenBucket;
  readonly quota: Pick<Config['quota'], 'perMinute' | 'firstReadPercent'>;
  /** Number of lists that share this quota. */
  readonly lists: number;
  /** Configured poll interval, in ms; undefined: lists are polled as often as the quota allows. */
  readonly intervalMs: number | undefined;
  readonly windowMs: number;
  readonly scheduler: SchedulerLike;
}

/** Fraction of the quota for single records while some are requested: 1,000 records take half an hour at 100 requests a minute. */
const SINGLE_RECORDS_SHARE = 0.35;
/** Fraction of the quota that polls leave to sweeps while no snapshot and no requests for single records are running. */
const SWEEP_SHARE = 0.05;

/**
 * Divides one quota among polls, initial snapshot, sweeps and single records. Polls are served first, and pace themselves by {@link
 * Lanes.pollSpacingMs}; all other lanes get the requests that polls leave, each up to a share.
 *
 * The initial snapshot gets `firstReadPercent` of the quota, or more if polls are too rare to need the rest. Once polls have run for a
 * quota window, the snapshot gets everything that they did not use in the last window: if responses are slow, polls run less often than
 * their share allows.
 */
export function lanesOf(options: LanesOptions): Lanes {
  const { bucket, quota, lists, intervalMs, windowMs, scheduler } = options;
  const { perMinute, firstReadPercent } = quota;
  const part = (of: number) => Math.max(1, Math.floor(perMinute * of));
  const forFirstRead = part(firstReadPercent / 100);
  const forPolls = {
    'first-read': Math.max(1, perMinute - forFirstRead),
    asking: Math.max(1, perMinute - part(SINGLE_RECORDS_SHARE)),
    nothing: Math.max(1, perMinute * (1 - SWEEP_SHARE)),
  } satisfies Record<ConcurrentReads, number>;
  /** Estimated maximum number of poll requests in a quota window: two pages at each interval, and ten more for each list. */
  const most = intervalMs === undefined ? Infinity : (10 + (2 * windowMs) / intervalMs) * lists;
  const polls = Math.min(forPolls.nothing, most);
  const spare = Math.max(1, Math.floor(perMinute - polls));

  const poll = bucket.lane({ rank: 0 });
  const lookback = bucket.lane({ rank: 1, share: () => Math.floor((perMinute - notPolls()) / 3) });
  /** Number of requests kept free for the next polls, once their use of the quota is measured: one for each list, and one spare. */
  const ready = lists + 1;
  let polledSince: number | undefined;
  const leftByPolls = (): number => {
    const least = Math.max(forFirstRead, Math.floor(perMinute - most));
    const used = poll.used() + lookback.used();
    const now = scheduler.now();
    polledSince = used === 0 ? undefined : (polledSince ?? now);
    const isKnown = polledSince !== undefined && now - polledSince >= windowMs;
    return isKnown ? Math.max(least, perMinute - used - ready) : least;
  };
  const initialSnapshot = bucket.lane({ rank: 2, share: leftByPolls });
  const sweep = bucket.lane({ rank: 3, share: spare });
  const forSingleRecords = Math.max(spare, part(SINGLE_RECORDS_SHARE));
  const singleRecords = bucket.lane({ rank: 3, share: forSingleRecords });
  const notPolls = () => initialSnapshot.used() + sweep.used() + singleRecords.used();

  let firstReadAt = -Infinity;
  /** Whether another list that shares this quota was running its initial snapshot within the last window. */
  const isBesideFirstRead = () => lists > 1 && scheduler.now() - firstReadAt < windowMs;
  return {
    poll,
    lookback,
    requestIntervalMs: (windowMs / perMinute) * lists,
    initialSnapshot,
    fullScan: lists > 1 ? initialSnapshot : bucket, // polls of other lists come first
    sweep,
    singleRecords,
    pollSpacingMs: (concurrent) => {
      if (concurrent === 'first-read') firstReadAt = scheduler.now();
      const what = concurrent === 'nothing' && isBesideFirstRead() ? 'first-read' : concurrent;
      return (windowMs / forPolls[what]) * lists;
    },
  };
}
