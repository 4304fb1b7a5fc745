import type { Observable, SchedulerLike } from 'rxjs';
import type { Config } from '../config/config.ts';
import type { ListHooks } from '../observe/list-hooks.ts';
import { permits as permitsFor } from '../streams/flow/permits.ts';
import type { Permits } from '../streams/flow/permits.ts';
import type { Answer, ListRequest } from '../streams/decode/answer.ts';
import type { LogicalClock, Span } from '../streams/http/logical-clock.ts';
import type { PagePlan } from '../streams/http/page-plan.ts';
import type { LeftOut } from '../streams/paging/standstill.ts';
import { contentDigests } from '../streams/paging/anchors.ts';
import { pages } from '../streams/paging/pages.ts';
import type { PagesOptions, ScanPage } from '../streams/paging/pages.ts';
import type { Limit } from '../streams/quota/token-bucket.ts';
import type { KeyOf } from '../streams/records/key-of.ts';

/** A lane of a list's quota, and its pages that wait for their commit: a lane whose pages don't get there stops asking. */
export interface PageLane {
  readonly limit: Limit;
  readonly permits: Permits;
  /** The list's pages, by a query's dates; default from the beginning. */
  readonly scan: (
    query: object,
    more?: Pick<PagesOptions, 'from' | 'onTrouble'>,
  ) => Observable<ScanPage>;
  /** What settles a read of this lane. */
  readonly settling: (span: Span) => () => void;
}

/** What the lanes of one list share. */
export interface PageLanesOptions {
  readonly task: {
    readonly config: Pick<Config, 'poll'>;
    readonly hooks: Pick<ListHooks, 'onDropped' | 'onTrouble'>;
    readonly scheduler: SchedulerLike;
  };
  /** The order of the list's requests. */
  readonly reads: LogicalClock;
  readonly keyOf: KeyOf;
  /** What one lane finds to differ in every answer is left out of anchors by all. */
  readonly leftOut: LeftOut;
  /** Where pages are asked for; what one lane finds out about the server's paging counts for all. */
  readonly plan?: PagePlan | undefined;
  /** What a request costs in time by the quota, ms. */
  readonly paceMs: number;
}

/** Pages that answers of five seconds take to use up a quota of 100 a minute. */
const MAX_AHEAD = 9;

/** Gives what opens a lane: by its part of the quota, the pages that may be under way in it, and how it asks. */
export function pageLanes(
  options: PageLanesOptions,
): (limit: Limit, places: number, request: ListRequest) => PageLane {
  const { task, reads, keyOf, leftOut, plan, paceMs } = options;
  const { config, hooks, scheduler } = task;
  const { pageSize } = config.poll;
  const onDrop = ({ span }: Answer, offset: number) => {
    reads.settle(span.begin);
    hooks.onDropped({ offset });
  };
  const ahead = { most: MAX_AHEAD, paceMs, onDrop, scheduler };

  const contents = contentDigests();

  return (limit, places, request) => {
    const permits = permitsFor(places);
    return {
      limit,
      permits,
      scan: (query, more = {}) =>
        pages({
          request: (page) => request({ ...query, ...page }, limit),
          keyOf,
          pageSize,
          leftOut,
          plan,
          contents,
          permit: () => permits.acquire,
          ahead,
          ...more,
          onTrouble: (trouble, offset) => {
            hooks.onTrouble({ trouble, offset });
            more.onTrouble?.(trouble, offset);
          },
        }),
      settling: (span) => () => {
        reads.settle(span.begin);
        permits.release();
      },
    };
  };
}
