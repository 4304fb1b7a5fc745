import { concatMap, EMPTY, map, merge, ReplaySubject, Subject, switchMap, take } from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import type { Api } from './api.ts';
import type { Config } from './config.ts';
import type { Hooks, Lane } from './hooks.ts';
import type { Lanes } from './quotas.ts';
import type { Cursor, FirstRead } from './sinks/cursor.ts';
import { updatedAtOf } from './streams/diff.ts';
import { pages } from './streams/pages.ts';
import type { PagesOptions, ScanPage } from './streams/pages.ts';
import { poll, window } from './streams/poll.ts';
import { readClock } from './streams/read-clock.ts';
import type { ReadClock, Span } from './streams/read-clock.ts';
import { keyOfFields, keyRecords } from './streams/records.ts';
import type { KeyedRecord, RejectedRecord } from './streams/records.ts';
import { room } from './streams/room.ts';
import { serverClock } from './streams/server-clock.ts';
import type { Limit } from './streams/token-bucket.ts';

export interface OrderReadsOptions {
  readonly config: Pick<Config, 'poll' | 'keyFields'>;
  readonly api: Api;
  readonly lanes: Lanes;
  /** Where earlier reads have come to. */
  readonly from: Pick<Cursor, 'firstRead' | 'since'>;
  /** Whether the first read is done by now. */
  readonly firstReadDone: () => boolean;
  readonly scheduler: SchedulerLike;
  readonly onTrouble: Hooks['onTrouble'];
}

/** A page that was read. */
export interface OrderPage {
  readonly lane: Lane;
  readonly page: ScanPage;
  /** How far the reads have come once this page is dealt with. */
  readonly progress: Partial<Pick<Cursor, 'firstRead' | 'since'>>;
  readonly records: readonly KeyedRecord[];
  readonly rejected: readonly RejectedRecord[];
  readonly span: Span;
  /** To be called when the page is dealt with: gives back its place in memory. */
  readonly settle: () => void;
}

export interface OrderReads {
  /** Pages of all three lanes, as they come; never completes by itself. */
  readonly pages$: Observable<OrderPage>;
  /** The order of the reads, for who has to tell older answers from newer ones. */
  readonly readClock: ReadClock;
  /** Reads an order again, by its number; one that is asked for already is not asked for twice. */
  readonly readAgain: (key: string) => void;
}

/** Pages of one lane between their request and their commit: one is asked for while one is committed. */
const PAGES_UNDER_WAY = 2;
const RESOURCE = 'orders';

/**
 * What is asked of the API for the orders, in three lanes: the first read of all there is, the polls
 * beside and after it, and single orders of which two answers could not be told apart.
 */
export function orderReads(options: OrderReadsOptions): OrderReads {
  const { config, api, lanes, from, firstReadDone, scheduler, onTrouble } = options;
  const { lookbackMs, intervalMs, startFrom, pageSize } = config.poll;
  const keyOf = keyOfFields(config.keyFields.orders ?? ['order_number']);
  const reads = readClock();
  const clock = serverClock();
  const request = api.list(RESOURCE, reads);

  const scan = (limit: Limit, query: object, resume?: Partial<PagesOptions>) => {
    const places = room(PAGES_UNDER_WAY);
    const pages$ = pages({
      request: (page) => request({ ...query, ...page }, limit),
      keyOf,
      pageSize,
      room: () => places.enter,
      onTrouble: (trouble, offset) => onTrouble?.({ resource: RESOURCE, trouble, offset }),
      ...resume,
    });
    return { pages$, leave: () => places.leave() };
  };
  const arrived = (
    lane: Lane,
    page: ScanPage,
    leave: () => void,
    progress: OrderPage['progress'] = {},
  ): OrderPage => {
    const { span, data, serverTime } = page.answer;
    const { keyed, rejected } = keyRecords(data, keyOf);
    clock.tell(serverTime);
    if (lane !== 'poll') clock.see(keyed.map(({ record }) => updatedAtOf(record))); // polls do
    const settle = () => {
      reads.settle(span.begin);
      leave();
    };
    return { lane, page, progress, records: keyed, rejected, span, settle };
  };

  /** The server's time at which the first read began, once it is known. */
  const began$ = new ReplaySubject<number>(1);
  if (from.firstRead.startedAt !== null) began$.next(from.firstRead.startedAt);

  const firstRead$ = api.tokens.token$.pipe(
    take(1),
    switchMap(({ serverTime }) => {
      if (from.firstRead.done) return EMPTY;
      clock.tell(serverTime);
      // What is modified later than its end is the polls' to read.
      const query =
        startFrom === undefined ? {} : window(startFrom, clock.latest() ?? scheduler.now());
      const { position, startedAt: begun } = from.firstRead;
      const { pages$, leave } = scan(lanes.firstRead, query, position ? { from: position } : {});
      let startedAt = begun;
      return pages$.pipe(
        map((page) => {
          // A server may never tell its time: then nobody can say what was made after the beginning.
          startedAt ??= page.answer.serverTime ?? null;
          const firstRead: FirstRead = {
            startedAt,
            position: page.next ?? null,
            done: page.next === undefined,
          };
          const next = arrived('first-read', page, leave, { firstRead });
          began$.next(startedAt ?? clock.newest() ?? 0);
          return next;
        }),
      );
    }),
  );

  const polls$ = began$.pipe(
    take(1),
    switchMap((startedAt) => {
      let leave: () => void; // of the window that is being read: there is one at a time
      return poll({
        scan: (dates) => {
          const { pages$, leave: leaveWindow } = scan(lanes.poll, dates);
          leave = leaveWindow;
          return pages$;
        },
        clock,
        since: from.since ?? startedAt,
        lookbackMs,
        ...(intervalMs !== undefined && { intervalMs }),
        spacingMs: () => lanes.spacingMs(firstReadDone() ? 'nothing' : 'first-read'),
        scheduler,
      }).pipe(
        map(({ page, since }) =>
          arrived('poll', page, leave, since === undefined ? {} : { since }),
        ),
      );
    }),
  );

  const again$ = new Subject<string>();
  const readingAgain = new Set<string>();
  const rereads$ = again$.pipe(
    concatMap((key) =>
      request({ orderNumber: key }, lanes.poll).pipe(
        map((answer) =>
          arrived('reread', { answer, offset: 0, next: undefined }, () => {
            readingAgain.delete(key);
          }),
        ),
      ),
    ),
  );

  return {
    pages$: merge(rereads$, polls$, firstRead$),
    readClock: reads,
    readAgain: (key) => {
      if (readingAgain.has(key)) return;
      readingAgain.add(key);
      again$.next(key);
    },
  };
}
