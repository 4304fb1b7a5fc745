import type { SchedulerLike } from 'rxjs';
import type { Config } from '../config/config.ts';
import type {
  SharedLane,
  Limit,
  SharedLimit,
  SharedBucket,
} from '../streams/quota/token-bucket.ts';

/** The lanes of one list: a limit for each kind of its requests (polls, sweeps, ...), with a share of the quota. */
export interface Lanes {
  /** Lane of polls for new changes. It is served before all other lanes of the list (only permits for guests are served earlier). */
  readonly poll: Limit;
  /**
   * Lane of lookback polls, which read an older window again, and of requests for single records whose newest state is uncertain. Its share
   * is at most a third of the quota.
   */
  readonly lookback: Limit;
  /** Lane of the initial snapshot. Its share is `INITIAL_SNAPSHOT_PERCENT` of the quota, and more if polls leave more. */
  readonly initialSnapshot: Limit;
  /**
   * Limit for the reads of a list that is not polled: the whole quota if no other list uses that quota, else the lane `initialSnapshot`.
   */
  readonly fullScan: Limit;
  /**
   * Lane of the sweeps (recurring full scans) of a polled list. Its share is the quota minus the polls at the configured interval, and
   * at least the fraction `SWEEP_SHARE`.
   */
  readonly sweep: Limit;
  /**
   * Lane of resyncs, of urgent sweeps (for a requested certificate), and of single records that a sweep did not show. Its share is at least
   * the fraction `SINGLE_RECORDS_SHARE` of the quota.
   */
  readonly singleRecords: Limit;
  /**
   * Returns the time between poll requests, in ms, that keeps polls within their share of the quota. The share depends on the list's other
   * reads at the time (`beside`).
   */
  readonly pollSpacingMs: (beside: ConcurrentReads) => number;
  /**
   * Time between the requests of a list, in ms, at which they use up the list's part of the quota. Lists that share a quota have equal
   * parts.
   */
  readonly requestIntervalMs: number;
}

/**
 * Reads that compete with the polls of a list for the quota. `first-read`: the initial snapshot. `asking`: reads in the lane
 * `singleRecords`, such as a resync. `nothing`: none of these.
 */
type ConcurrentReads = 'first-read' | 'asking' | 'nothing';

type LaneName = 'poll' | 'lookback' | 'initialSnapshot' | 'fullScan' | 'sweep' | 'singleRecords';

/** The lanes of a list in the token bucket of one quota. */
export type BucketLanes = Lanes & Readonly<Record<LaneName, SharedLane>>;

/**
 * Combines the lanes of a list that is limited by several quotas. A request starts when all of these allow it: its lane in `all`, the same
 * lane in `own`, and each limit in `further`. The bucket of `all` determines the order in which waiting requests are served.
 */
export function lanesTogether(
  all: BucketLanes,
  own: BucketLanes | undefined,
  further: readonly SharedLimit[],
): Lanes {
  if (!own && further.length === 0) return all;
  const together = (name: LaneName): Limit =>
    all[name].together(own ? [own[name], ...further] : further);
  return {
    poll: together('poll'),
    lookback: together('lookback'),
    initialSnapshot: together('initialSnapshot'),
    fullScan: together('fullScan'),
    sweep: together('sweep'),
    singleRecords: together('singleRecords'),
    pollSpacingMs: (beside) => Math.max(all.pollSpacingMs(beside), own?.pollSpacingMs(beside) ?? 0),
    requestIntervalMs: Math.max(all.requestIntervalMs, own?.requestIntervalMs ?? 0),
  };
}

export interface LanesOptions {
  readonly bucket: SharedBucket;
  readonly quota: Pick<Config['quota'], 'perMinute' | 'firstReadPercent'>;
  /** Number of lists that share this quota. */
  readonly lists: number;
  /** Configured poll interval, in ms; undefined: lists are polled as often as the quota allows. */
  readonly intervalMs: number | undefined;
  readonly windowMs: number;
  readonly scheduler: SchedulerLike;
}

/**
 * Smallest share of the lane `singleRecords`, as a fraction of the quota. At a quota of 100 requests a minute, 1,000 requests of this lane
 * take half an hour.
 */
const SINGLE_RECORDS_SHARE = 0.35;
/** Smallest fraction of the quota that polls leave to sweeps (recurring full scans) when no other reads of the list run. */
const SWEEP_SHARE = 0.05;

/**
 * Divides one quota among polls, initial snapshot, sweeps and single records.
 *
 * - Polls are served first; their caller spaces them by {@link Lanes.pollSpacingMs}.
 * - The other lanes get only what polls leave, each up to its maximum share.
 * - The maximum share of the initial snapshot is `firstReadPercent` of the quota, or more if polls leave more.
 */
export function lanesOf(options: LanesOptions): BucketLanes {
  const { bucket, quota, lists, intervalMs, windowMs, scheduler } = options;
  const { perMinute, firstReadPercent } = quota;
  const part = (of: number) => Math.max(1, Math.floor(perMinute * of));
  const forFirstRead = part(firstReadPercent / 100);
  const forPolls = {
    'first-read': Math.max(1, perMinute - forFirstRead),
    asking: Math.max(1, perMinute - part(SINGLE_RECORDS_SHARE)),
    nothing: Math.max(1, perMinute * (1 - SWEEP_SHARE)),
  } satisfies Record<ConcurrentReads, number>;
  /**
   * Estimated maximum number of poll requests in a quota window: for each list ten, plus two for each poll interval in the window. Infinity
   * if no poll interval is configured.
   */
  const most = intervalMs === undefined ? Infinity : (10 + (2 * windowMs) / intervalMs) * lists;
  const polls = Math.min(forPolls.nothing, most);
  const spare = Math.max(1, Math.floor(perMinute - polls));

  const poll = bucket.lane({ rank: 0 });
  const lookback = bucket.lane({ rank: 1, share: () => Math.floor((perMinute - notPolls()) / 3) });
  /**
   * Number of requests that the initial snapshot leaves free in each quota window, so that polls can become more frequent than in the last
   * window.
   */
  const leftToPolls = lists + 1;
  let polledSince: number | undefined;
  const leftByPolls = (): number => {
    // More than `firstReadPercent` if polls at the configured interval need less than the rest, or have used less in the last quota window.
    const least = Math.max(forFirstRead, Math.floor(perMinute - most));
    const used = poll.used() + lookback.used();
    const now = scheduler.now();
    polledSince = used === 0 ? undefined : (polledSince ?? now);
    const isKnown = polledSince !== undefined && now - polledSince >= windowMs;
    return isKnown ? Math.max(least, perMinute - used - leftToPolls) : least;
  };
  const initialSnapshot = bucket.lane({ rank: 2, share: leftByPolls });
  const sweep = bucket.lane({ rank: 3, share: spare });
  const forSingleRecords = Math.max(spare, part(SINGLE_RECORDS_SHARE));
  const singleRecords = bucket.lane({ rank: 3, share: forSingleRecords });
  const notPolls = () => initialSnapshot.used() + sweep.used() + singleRecords.used();

  let firstReadAt = -Infinity;
  /**
   * Whether one of the lists that share this quota was running its initial snapshot within the last window of the quota. Always false if
   * only one list uses the quota.
   */
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
