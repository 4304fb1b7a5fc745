import type { Observable } from 'rxjs';
import { permits as permitsFor } from '../../streams/flow/permits.ts';
import type { Permits } from '../../streams/flow/permits.ts';
import type { Answer, ListRequest } from '../../streams/decode/answer.ts';
import type { LogicalClock, Span } from '../../streams/http/logical-clock.ts';
import type { ServerClock } from '../../streams/http/server-clock.ts';
import type { LeftOut } from '../../streams/paging/left-out.ts';
import { pages } from '../../streams/paging/pages.ts';
import type { PagesOptions, ScanPage } from '../../streams/paging/pages.ts';
import type { Limit } from '../../streams/quota/token-bucket.ts';
import type { KeyOf } from '../../streams/records/key-of.ts';
import { splitRecords } from '../../streams/records/records.ts';
import type { VolatileFields } from '../../streams/records/volatile-fields.ts';
import type { Task } from '../task.ts';
import type { Brought } from './read-batch.ts';
import type { SingleRecords } from './single-records.ts';

/** A part of a list's quota, and pages that wait for their commit: a lane whose pages don't get there stops asking. */
export interface Lane {
  readonly limit: Limit;
  readonly permits: Permits;
  /** The list's pages, by a query's dates; default from the beginning. */
  readonly scan: (
    query: object,
    more?: Pick<PagesOptions, 'from' | 'onTrouble'>,
  ) => Observable<ScanPage>;
  /** What settles a read of this lane. */
  readonly settling: (span: Span) => () => void;
  /** An answer, split into what can be published and what can't. */
  readonly arrived: (answer: Answer) => Brought;
  /** The same, and the clock hears of its records' times; polls tell it by themselves. */
  readonly seen: (answer: Answer) => Brought;
}

/** What the lanes of one list share. */
export interface OpenLanesOptions {
  readonly task: Pick<Task, 'config' | 'hooks' | 'scheduler'>;
  /** The order of the list's requests. */
  readonly reads: LogicalClock;
  readonly clock: ServerClock;
  readonly keyOf: KeyOf;
  readonly volatile: VolatileFields;
  /** What one lane finds to differ in every answer is left out of anchors by all. */
  readonly leftOut: LeftOut;
  /** What a request costs in time by the quota, ms. */
  readonly paceMs: number;
  /** Told of the keys that arrive. */
  readonly single: Pick<SingleRecords, 'saw'>;
}

/** Pages that answers of five seconds take to use up a quota of 100 a minute. */
const MAX_AHEAD = 9;

/** Gives what opens a lane: by its part of the quota, the pages that may be under way in it, and how it asks. */
export function openLanes(
  options: OpenLanesOptions,
): (limit: Limit, places: number, request: ListRequest) => Lane {
  const { task, reads, clock, keyOf, volatile, leftOut, paceMs, single } = options;
  const { config, hooks, scheduler } = task;
  const { pageSize } = config.poll;
  const onDrop = ({ span }: Answer, offset: number) => {
    reads.settle(span.begin);
    hooks.onDropped({ offset });
  };
  const ahead = { most: MAX_AHEAD, paceMs, onDrop, scheduler };

  return (limit, places, request) => {
    const permits = permitsFor(places);
    const settling = (span: Span) => () => {
      reads.settle(span.begin);
      permits.release();
    };
    const arrived = ({ span, data, serverTime }: Answer): Brought => {
      const split = splitRecords(data, volatile);
      single.saw(split.keyed);
      clock.tell(serverTime);
      return { ...split, span, settle: settling(span) };
    };
    return {
      limit,
      permits,
      scan: (query, more = {}) =>
        pages({
          request: (page) => request({ ...query, ...page }, limit),
          keyOf,
          pageSize,
          leftOut,
          permit: () => permits.acquire,
          ahead,
          ...more,
          onTrouble: (trouble, offset) => {
            hooks.onTrouble({ trouble, offset });
            more.onTrouble?.(trouble, offset);
          },
        }),
      settling,
      arrived,
      seen: (answer) => {
        const brought = arrived(answer);
        clock.see(answer.data.map(({ updatedAt }) => updatedAt));
        return brought;
      },
    };
  };
}
