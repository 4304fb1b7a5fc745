import { concatMap, map, of, switchMap, tap } from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import type { Config } from '../config/config.ts';
import { totalRequestOf } from '../description/description.ts';
import type { ListDescription } from '../description/description.ts';
import type { ListHooks } from '../observe/list-hooks.ts';
import { pageSlots as newPageSlots } from '../streams/flow/page-slots.ts';
import type { PageSlots } from '../streams/flow/page-slots.ts';
import { withTotal } from '../streams/decode/response.ts';
import type { Answer, ListRequest } from '../streams/decode/response.ts';
import type { LogicalClock, Span } from '../streams/http/logical-clock.ts';
import type { PagePlan } from '../streams/http/page-plan.ts';
import type { LeftOut } from '../streams/paging/standstill.ts';
import { contentDigests } from '../streams/paging/anchors.ts';
import { pages } from '../streams/paging/pages.ts';
import type { PagesOptions, ScanPage } from '../streams/paging/pages.ts';
import type { Limit } from '../streams/quota/token-bucket.ts';
import type { KeyOf } from '../streams/records/key-of.ts';

/**
 * A lane of a list: its share of the quota, and its page slots. A page takes a slot before it is requested, and frees it when it is
 * committed or dropped. While no slot is free, no further page is requested.
 */
export interface PageLane {
  readonly limit: Limit;
  readonly pageSlots: PageSlots;
  /**
   * Scans the list page by page, from the position `more.from` or, by default, from its beginning. The requests have the parameters in
   * `query`, such as the dates of a window.
   */
  readonly scan: (
    query: object,
    more?: Pick<PagesOptions, 'from' | 'onTrouble'>,
  ) => Observable<ScanPage>;
  /**
   * Returns a function to be called once the records of the read with this span are committed or dropped. It closes the read in the logical
   * clock and releases its page slot.
   */
  readonly settler: (span: Span) => () => void;
}

/** Options that are the same for all lanes of a list (polls, initial snapshot, sweeps, resyncs, ...). */
export interface PageLanesOptions {
  readonly task: {
    readonly config: Pick<Config, 'poll'>;
    readonly list: ListDescription;
    readonly hooks: Pick<ListHooks, 'onDropped' | 'onTrouble'>;
    readonly scheduler: SchedulerLike;
  };
  /** Logical clock that numbers the begin and the end of each of the list's reads, so that overlapping reads are recognized. */
  readonly logicalClock: LogicalClock;
  readonly keyOf: KeyOf;
  /**
   * Fields that are ignored when records of two pages are compared, because they differ in every response. All lanes of the list share
   * them.
   */
  readonly leftOut: LeftOut;
  /** Chooses the list offset and the size of the next page. Shared by all scans of the list. */
  readonly plan?: PagePlan | undefined;
  /**
   * Time between the requests of a scan that requests pages ahead, in ms. At this interval, one scan alone uses up the list's whole share
   * of the quota.
   */
  readonly requestIntervalMs: number;
}

/**
 * Maximum number of pages that a scan requests ahead: enough to use a quota of 100 requests a minute if each response takes five seconds.
 */
const MAX_READ_AHEAD = 9;

/** Returns a function that opens a lane, given its share of the quota, its number of page slots, and its request function. */
export function pageLanes(
  options: PageLanesOptions,
): (limit: Limit, slots: number, request: ListRequest) => PageLane {
  const { task, logicalClock, keyOf, leftOut, plan, requestIntervalMs } = options;
  const { config, hooks, scheduler } = task;
  const { pageSize } = config.poll;
  const onDrop = ({ span }: Answer, offset: number) => {
    logicalClock.settle(span.begin);
    hooks.onDropped({ offset });
  };
  const ahead = { most: MAX_READ_AHEAD, paceMs: requestIntervalMs, onDrop, scheduler };

  const contents = contentDigests();

  return (limit, slots, request) => {
    const pageSlots = newPageSlots(slots);
    return {
      limit,
      pageSlots,
      scan: (query, more = {}) => {
        const tell: Tell = (trouble, offset) => {
          hooks.onTrouble({ trouble, offset });
          more.onTrouble?.(trouble, offset);
        };
        const scan = (onTrouble: Tell, total?: number) =>
          pages({
            request: (page) => {
              const answer$ = request({ ...query, ...page }, limit);
              if (total === undefined) return answer$;
              return answer$.pipe(map((answer) => withTotal(answer, total)));
            },
            keyOf,
            list: task.list,
            pageSize,
            leftOut,
            plan,
            contents,
            permit: () => pageSlots.acquire,
            ahead,
            ...more,
            onTrouble,
          });
        const isCounted = totalRequestOf(task.list) && !more.from && !('from' in query);
        if (!isCounted) return scan(tell);
        const total$ = request({ isTotal: true }, limit).pipe(
          tap(({ span }) => logicalClock.settle(span.begin)),
          map(({ total }) => total),
        );
        return counted(scan, total$, tell);
      },
      settler: (span) => () => {
        logicalClock.settle(span.begin);
        pageSlots.release();
      },
    };
  };
}

type Tell = NonNullable<PagesOptions['onTrouble']>;

/**
 * Scans a list whose total takes a separate request, and adds the total to the pages. The total is requested before and after the scan. The
 * last page gets the second total, so that a change of the total is noticed.
 */
function counted(
  scan: (onTrouble: Tell, total: number | undefined) => Observable<ScanPage>,
  total$: Observable<number | undefined>,
  tell: Tell,
): Observable<ScanPage> {
  return total$.pipe(
    switchMap((before) => {
      let isReordered = false;
      let unsettledAt: number | undefined;
      const onTrouble: Tell = (trouble, offset) => {
        isReordered ||= trouble === 'reordered';
        if (trouble === 'unsettled' && !isReordered) unsettledAt = offset;
        else tell(trouble, offset);
      };
      return scan(onTrouble, before).pipe(
        concatMap((page, nth) => {
          if (page.next) return of(page);
          return total$.pipe(
            map((after) => {
              const isStill = after === before;
              // `unsettled`: the scan read fewer records than the total. That may be due to a change of the total.
              if (unsettledAt !== undefined && isStill) tell('unsettled', unsettledAt);
              // A single page whose two totals differ gets none.
              const total = nth > 0 || isStill ? after : undefined;
              return { ...page, answer: withTotal(page.answer, total) };
            }),
          );
        }),
      );
    }),
  );
}
