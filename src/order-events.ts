import {
  concatMap,
  EMPTY,
  finalize,
  from,
  map,
  merge,
  of,
  ReplaySubject,
  Subject,
  switchMap,
  take,
  takeUntil,
} from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import type { Api } from './api.ts';
import type { Config } from './config.ts';
import type { Destination } from './destination.ts';
import type { Hooks, Lane, Published } from './hooks.ts';
import { publicationOf } from './publisher.ts';
import type { Quotas } from './quotas.ts';
import type { Cursor } from './sinks/cursor.ts';
import type { TaskLog } from './sinks/task-log.ts';
import type { JsonObject } from './schemas/json.ts';
import { diff, instantOf, updatedAtOf } from './streams/diff.ts';
import type { Difference } from './streams/diff.ts';
import { ORDER_IDENTITIES } from './streams/identity.ts';
import { knownRejects } from './streams/known-rejects.ts';
import { newestReads } from './streams/newest.ts';
import { pages } from './streams/pages.ts';
import type { PagesOptions, ScanPage } from './streams/pages.ts';
import { poll, window } from './streams/poll.ts';
import { readClock } from './streams/read-clock.ts';
import { keyOfFields, keyRecords } from './streams/records.ts';
import type { KeyedRecord, RejectedRecord } from './streams/records.ts';
import { room } from './streams/room.ts';
import { serverClock } from './streams/server-clock.ts';
import type { Limit } from './streams/token-bucket.ts';
import { VERSION } from './version.ts';

export interface OrderEventsOptions {
  readonly config: Config;
  readonly api: Api;
  readonly quota: Quotas;
  readonly destination: Destination;
  readonly log: TaskLog;
  /** Its first value ends the reading; what was read is still committed. */
  readonly stop$: Observable<unknown>;
  readonly scheduler: SchedulerLike;
  readonly hooks: Hooks;
}

/** A page on its way to Kafka. */
interface Arrived {
  readonly lane: Lane;
  readonly page: ScanPage;
  /** How far the task has come once this page is committed. */
  readonly progress: Partial<Pick<Cursor, 'firstRead' | 'since'>>;
  readonly records: readonly KeyedRecord[];
  readonly rejected: readonly RejectedRecord[];
  readonly span: ScanPage['answer']['span'];
  /** Gives back the page's place in memory. */
  readonly leave: () => void;
}

/** Pages of one lane between their request and their commit: one is asked for while one is committed. */
const PAGES_UNDER_WAY = 2;
/** A window that has moved without an event is written to Kafka this often, ms. */
const SAVE_EVERY_MS = 10_000;
const RESOURCE = 'orders';

/**
 * Orders, from where the log's cursor says: the first read and the polls beside it, each page held
 * against the last images, and what differs committed with the cursor in one transaction. Emits what
 * each commit published; never completes by itself.
 */
export function orderEvents(options: OrderEventsOptions): Observable<Published> {
  const { config, api, quota, destination, log, stop$, scheduler, hooks } = options;
  const { lookbackMs, intervalMs, startFrom, pageSize } = config.poll;
  const keyOf = keyOfFields(config.keyFields.orders ?? ['order_number']);
  const origin = { account: config.account, resource: RESOURCE, version: VERSION };

  const reads = readClock();
  const clock = serverClock();
  const request = api.list(RESOURCE, reads);
  const lanes = quota.lanes(RESOURCE, log.cursor.generation > 1);
  let { firstRead, since, sequence } = log.cursor;
  let savedAt = scheduler.now();

  /** The server's time at which the first read began, once it is known. */
  const began$ = new ReplaySubject<number>(1);
  if (firstRead.startedAt !== null) began$.next(firstRead.startedAt);
  const again$ = new Subject<string>();
  const readingAgain = new Set<string>();
  const isNews = knownRejects();

  const scan = (limit: Limit, query: object, resume?: Partial<PagesOptions>) => {
    const places = room(PAGES_UNDER_WAY);
    const pages$ = pages({
      request: (page) => request({ ...query, ...page }, limit),
      keyOf,
      pageSize,
      room: () => places.enter,
      onTrouble: (trouble, offset) => hooks.onTrouble?.({ resource: RESOURCE, trouble, offset }),
      ...resume,
    });
    return { pages$, leave: () => places.leave() };
  };

  const arrived = (
    lane: Lane,
    page: ScanPage,
    leave: () => void,
    progress: Arrived['progress'] = {},
  ): Arrived => {
    const { keyed, rejected } = keyRecords(page.answer.data, keyOf);
    clock.tell(page.answer.serverTime);
    if (lane !== 'poll') clock.see(keyed.map(({ record }) => updatedAtOf(record))); // polls do
    return { lane, page, progress, records: keyed, rejected, span: page.answer.span, leave };
  };

  const firstRead$ = api.tokens.token$.pipe(
    take(1),
    switchMap(({ serverTime }) => {
      if (firstRead.done) return EMPTY;
      clock.tell(serverTime);
      // What is modified later than its end is the polls' to read.
      const query =
        startFrom === undefined ? {} : window(startFrom, clock.latest() ?? scheduler.now());
      const { pages$, leave } = scan(lanes.firstRead, query, {
        ...(firstRead.position && { from: firstRead.position }),
      });
      let startedAt = firstRead.startedAt;
      return pages$.pipe(
        map((page) => {
          // A server may never tell its time: then nobody can say what was made after the beginning.
          startedAt ??= page.answer.serverTime ?? null;
          const position = page.next ?? null;
          const done = page.next === undefined;
          const next = arrived('first-read', page, leave, {
            firstRead: { startedAt, position, done },
          });
          began$.next(startedAt ?? clock.newest() ?? 0);
          return next;
        }),
      );
    }),
  );

  const polls$ = began$.pipe(
    take(1),
    switchMap((startedAt) => {
      let leave: () => void;
      return poll({
        scan: (dates) => {
          const window = scan(lanes.poll, dates);
          leave = window.leave;
          return window.pages$;
        },
        clock,
        since: since ?? startedAt,
        lookbackMs,
        ...(intervalMs !== undefined && { intervalMs }),
        spacingMs: () => lanes.spacingMs(firstRead.done ? 'nothing' : 'first-read'),
        scheduler,
      }).pipe(
        map(({ page, since }) =>
          arrived('poll', page, leave, since === undefined ? {} : { since }),
        ),
      );
    }),
  );

  const rereads$ = again$.pipe(
    concatMap((key) =>
      request({ orderNumber: key }, lanes.poll).pipe(
        map((answer) => {
          const leave = () => void readingAgain.delete(key);
          return arrived('reread', { answer, offset: 0, next: undefined }, leave);
        }),
      ),
    ),
  );

  /** New is what was made after the first read began, or turns up after it is done. */
  const isNew = (order: JsonObject): boolean => {
    const createdAt = instantOf(order, 'created_at');
    const { done, startedAt } = firstRead;
    return done || (createdAt !== null && startedAt !== null && createdAt >= startedAt);
  };
  const toChanges = diff<Arrived>({
    codec: destination.codec.values,
    images: {
      get: (key) => {
        const image = log.get(key);
        return image && destination.currentImage(image);
      },
    },
    isNew,
    newest: newestReads(reads),
    identities: ORDER_IDENTITIES,
  });

  const commit = async (difference: Difference<Arrived>): Promise<Published> => {
    const { read, changes, unchanged, undecided } = difference;
    const { lane, page, progress } = read;
    firstRead = progress.firstRead ?? firstRead;
    since = progress.since ?? since;

    const publication = publicationOf(changes, read.rejected, {
      destination,
      origin,
      sequence,
      isNews,
      offset: page.offset,
      now: Math.round(scheduler.now()),
    });
    const { messages, images, statusChanges, rejected } = publication;
    const due = progress.firstRead !== undefined || scheduler.now() - savedAt >= SAVE_EVERY_MS;
    if (messages.length > 0 || due) {
      ({ sequence } = publication);
      await log.commit({ messages, images, cursor: { sequence, firstRead, since } });
      savedAt = scheduler.now();
    }
    for (const key of undecided) {
      if (readingAgain.has(key)) continue;
      readingAgain.add(key);
      again$.next(key);
    }
    for (const { reason } of rejected) {
      hooks.onRejected?.({ resource: RESOURCE, reason, offset: page.offset });
    }
    if (progress.firstRead) {
      const { total_records: total } = page.answer.pagination;
      const read = Math.min(total, page.offset + page.answer.data.length);
      hooks.onProgress?.({ resource: RESOURCE, read, total, done: progress.firstRead.done });
    }
    const published = { resource: RESOURCE, lane, changes, statusChanges, unchanged };
    hooks.onPublished?.(published);
    return published;
  };
  // One page after the other: each is held against the images that the one before has left.
  return merge(rereads$, polls$, firstRead$).pipe(
    takeUntil(stop$),
    concatMap((page) =>
      of(page).pipe(
        toChanges,
        concatMap((difference) => from(commit(difference))),
        finalize(() => {
          reads.settle(page.span.begin);
          page.leave();
        }),
      ),
    ),
  );
}
