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
import { MOST_BEHIND_MS, serverClock } from './streams/server-clock.ts';
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

  // One room a lane, not a scan: a lane that does not get its pages committed stops asking.
  const places = { 'first-read': room(PAGES_UNDER_WAY), poll: room(PAGES_UNDER_WAY) };
  const limits: Record<keyof typeof places, Limit> = {
    'first-read': lanes.firstRead,
    poll: lanes.poll,
  };
  const scan = (lane: keyof typeof places, query: object, resume?: Partial<PagesOptions>) =>
    pages({
      request: (page) => request({ ...query, ...page }, limits[lane]),
      keyOf,
      pageSize,
      room: () => places[lane].enter,
      onTrouble: (trouble, offset) => onTrouble?.({ resource: RESOURCE, trouble, offset }),
      ...resume,
    });
  const arrived = (lane: Lane, page: ScanPage, progress: OrderPage['progress'] = {}): OrderPage => {
    const { span, data, serverTime } = page.answer;
    const { keyed, rejected } = keyRecords(data, keyOf);
    clock.tell(serverTime);
    if (lane !== 'poll') clock.see(keyed.map(({ record }) => updatedAtOf(record))); // polls do
    const settle = () => {
      reads.settle(span.begin);
      if (lane !== 'reread') places[lane].leave();
    };
    return { lane, page, progress, records: keyed, rejected, span, settle };
  };

  /** Where the first window begins, once it is known: at the server's time as the first read began. */
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
      let startedAt = begun;
      return scan('first-read', query, position ? { from: position } : {}).pipe(
        map((page) => {
          // A server may never tell its time: then nobody can say what was made after the beginning.
          startedAt ??= page.answer.serverTime ?? null;
          const firstRead: FirstRead = {
            startedAt,
            position: page.next ?? null,
            done: page.next === undefined,
          };
          const next = arrived('first-read', page, { firstRead });
          const newest = clock.newest();
          // An empty list tells nothing of the clock that will stamp its first record.
          const slack = newest === undefined ? MOST_BEHIND_MS : 0;
          began$.next((startedAt ?? newest ?? slack) - slack);
          return next;
        }),
      );
    }),
  );

  const polls$ = began$.pipe(
    take(1),
    switchMap((startedAt) =>
      poll({
        scan: (dates) => scan('poll', dates),
        clock,
        since: from.since ?? startedAt,
        lookbackMs,
        ...(intervalMs !== undefined && { intervalMs }),
        spacingMs: () => lanes.spacingMs(firstReadDone() ? 'nothing' : 'first-read'),
        scheduler,
      }),
    ),
    map(({ page, since }) => arrived('poll', page, since === undefined ? {} : { since })),
  );

  const again$ = new Subject<string>();
  const readingAgain = new Set<string>();
  const rereads$ = again$.pipe(
    concatMap((key) =>
      request({ orderNumber: key }, lanes.poll).pipe(
        map((answer) => {
          readingAgain.delete(key); // it may come to that again
          return arrived('reread', { answer, offset: 0, next: undefined });
        }),
      ),
    ),
  );

  return {
    pages$: merge(rereads$, polls$, firstRead$),
    readClock: reads,
    readAgain: (key) => {
      // A number that is none can't be asked for: a later poll or sweep decides.
      if (readingAgain.has(key) || !/^\d+$/.test(key)) return;
      readingAgain.add(key);
      again$.next(key);
    },
  };
}
