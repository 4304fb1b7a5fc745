import type { SchedulerLike } from 'rxjs';
import type { Config } from '../config/config.ts';
import type { Limit, TokenBucket } from '../streams/quota/token-bucket.ts';

/** The lanes of one list's quota. */
export interface Lanes {
  /** Lane of polls, which have the first claim. */
  readonly poll: Limit;
  /** Lane of refetches and of polls that look back far: at most a third of the quota that snapshot, sweeps and single records have not used. */
  readonly lookBack: Limit;
  /** `INITIAL_SNAPSHOT_PERCENT` of the quota, so that polls never wait for it; and what they leave over. */
  readonly firstRead: Limit;
  /** For lists that are read whole, again and again. */
  readonly whole: Limit;
  /** What polls leave over: for complete readings beside them. */
  readonly sweep: Limit;
  /** For single records that a complete reading has missed: they may be many. */
  readonly ask: Limit;
  /** What one request of a poll costs in time, ms, by what goes on beside it. */
  readonly spacingMs: (beside: Beside) => number;
  /** What one request costs in time, ms, where nothing else is asked: of a list that has no polls. */
  readonly paceMs: number;
}

type Beside = 'first-read' | 'asking' | 'nothing';

export interface LanesOptions {
  readonly all: TokenBucket;
  readonly quota: Pick<Config['quota'], 'perMinute' | 'firstReadPercent'>;
  /** Lists that draw on this quota, and share its time. */
  readonly lists: number;
  /** Set time between polls, ms. */
  readonly intervalMs: number | undefined;
  readonly windowMs: number;
  readonly scheduler: SchedulerLike;
}

/** Of the quota, while single records are asked for: 1,000 of them in half an hour. */
const ASK_PART = 0.35;
/** Of the quota, when nothing else is under way: what polls leave over for sweeps. */
const SPARE_PART = 0.05;

/**
 * How polls, initial snapshot, sweeps and single records share one quota. Polls have the first rank, and pace
 * themselves by what a request costs in time; all others have the tokens that they leave, up to a share.
 *
 * The initial snapshot has `firstReadPercent`, or more where polls are too rare to need the rest. When polls
 * have gone on for a window it has all that they have not needed in the last one: where answers take
 * long, polls come less often than they may, one after the other.
 */
export function lanesOf(options: LanesOptions): Lanes {
  const { all, quota, lists, intervalMs, windowMs, scheduler } = options;
  const { perMinute, firstReadPercent } = quota;
  const part = (of: number) => Math.max(1, Math.floor(perMinute * of));
  const forFirstRead = part(firstReadPercent / 100);
  const forPolls = {
    'first-read': Math.max(1, perMinute - forFirstRead),
    asking: Math.max(1, perMinute - part(ASK_PART)),
    nothing: Math.max(1, perMinute * (1 - SPARE_PART)),
  } satisfies Record<Beside, number>;
  /** Requests of a window that polls may come to: a page or two at each interval, and some more. */
  const most = intervalMs === undefined ? Infinity : (10 + (2 * windowMs) / intervalMs) * lists;
  const polls = Math.min(forPolls.nothing, most);
  const spare = Math.max(1, Math.floor(perMinute - polls));

  const poll = all.lane({ rank: 0 });
  const lookBack = all.lane({ rank: 1, share: () => Math.floor((perMinute - notPolls()) / 3) });
  /** Tokens that are kept for the next polls once it is known how many they need: one for each list, and one. */
  const ready = lists + 1;
  let polledSince: number | undefined;
  const leftByPolls = (): number => {
    const least = Math.max(forFirstRead, Math.floor(perMinute - most));
    const used = poll.used() + lookBack.used();
    const now = scheduler.now();
    polledSince = used === 0 ? undefined : (polledSince ?? now);
    const isKnown = polledSince !== undefined && now - polledSince >= windowMs;
    return isKnown ? Math.max(least, perMinute - used - ready) : least;
  };
  const firstRead = all.lane({ rank: 2, share: leftByPolls });
  const sweep = all.lane({ rank: 3, share: spare });
  const ask = all.lane({ rank: 3, share: Math.max(spare, part(ASK_PART)) });
  const notPolls = () => firstRead.used() + sweep.used() + ask.used();

  let firstReadAt = -Infinity;
  /** Of lists that share a quota one may still be read for the first time when others are done. */
  const isBesideFirstRead = () => lists > 1 && scheduler.now() - firstReadAt < windowMs;
  return {
    poll,
    lookBack,
    paceMs: (windowMs / perMinute) * lists,
    firstRead,
    whole: lists > 1 ? firstRead : all, // polls of other lists come first
    sweep,
    ask,
    spacingMs: (beside) => {
      if (beside === 'first-read') firstReadAt = scheduler.now();
      const what = beside === 'nothing' && isBesideFirstRead() ? 'first-read' : beside;
      return (windowMs / forPolls[what]) * lists;
    },
  };
}
