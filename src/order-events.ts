import { concatMap, finalize, from, of, takeUntil } from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import type { Api } from './api.ts';
import type { Config } from './config.ts';
import type { Destination } from './destination.ts';
import type { Hooks, Published } from './hooks.ts';
import { orderReads } from './order-reads.ts';
import type { OrderPage } from './order-reads.ts';
import { publicationOf } from './publisher.ts';
import type { Quotas } from './quotas.ts';
import type { JsonObject } from './schemas/json.ts';
import type { TaskLog } from './sinks/task-log.ts';
import { diff, instantOf } from './streams/diff.ts';
import type { Difference } from './streams/diff.ts';
import { ORDER_IDENTITIES } from './streams/identity.ts';
import { knownRejects } from './streams/known-rejects.ts';
import { newestReads } from './streams/newest.ts';
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

/** A window that has moved without an event is written to Kafka this often, ms. */
const SAVE_EVERY_MS = 10_000;
const RESOURCE = 'orders';

/**
 * Orders, from where the log's cursor says: each page that is read is held against the last images,
 * and what differs is committed with the cursor in one transaction. Emits what each page published;
 * ends with `stop$`.
 */
export function orderEvents(options: OrderEventsOptions): Observable<Published> {
  const { config, api, quota, destination, log, stop$, scheduler, hooks } = options;
  const origin = { account: config.account, resource: RESOURCE, version: VERSION };
  const isNews = knownRejects();
  let { firstRead, since, sequence } = log.cursor;
  let savedAt = scheduler.now();

  const reads = orderReads({
    config,
    api,
    lanes: quota.lanes(RESOURCE, log.cursor.generation > 1),
    from: { firstRead, since },
    firstReadDone: () => firstRead.done,
    scheduler,
    onTrouble: hooks.onTrouble,
  });

  /** New is what was made after the first read began, or turns up after it is done. */
  const isNew = (order: JsonObject): boolean => {
    const createdAt = instantOf(order, 'created_at');
    const { done, startedAt } = firstRead;
    return done || (createdAt !== null && startedAt !== null && createdAt >= startedAt);
  };
  const toChanges = diff<OrderPage>({
    codec: destination.codec.values,
    images: {
      get: (key) => {
        const image = log.get(key);
        return image && destination.currentImage(image);
      },
    },
    isNew,
    newest: newestReads(reads.readClock),
    identities: ORDER_IDENTITIES,
  });

  const commit = async (difference: Difference<OrderPage>): Promise<Published> => {
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
    undecided.forEach(reads.readAgain);

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
  return reads.pages$.pipe(
    takeUntil(stop$),
    concatMap((page) =>
      of(page).pipe(
        toChanges,
        concatMap((difference) => from(commit(difference))),
        finalize(page.settle),
      ),
    ),
  );
}
