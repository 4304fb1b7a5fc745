import { concatAll, concatMap, finalize, map, of, takeUntil, timer } from 'rxjs';
import type { Observable } from 'rxjs';
import type { Lanes } from '../account/quotas.ts';
import type { TaskJobs } from '../account/signal-jobs.ts';
import type { Published } from '../observe/hooks.ts';
import type { Confirmations } from '../streams/diff/confirmations.ts';
import type { Difference, Images } from '../streams/diff/diff.ts';
import { gatherFirst } from '../streams/flow/gather-first.ts';
import { keyOfFields } from '../streams/records/key-of.ts';
import type { KeyedRecord } from '../streams/records/page-record.ts';
import type { Checkpoint } from './checkpoint/checkpoint.ts';
import type { ChosenKey } from './choose-key.ts';
import { compareBatches } from './compare-batches.ts';
import type { ComparedBatch } from './compare-batches.ts';
import type { SchemaEvolution } from './codec/schema-evolution.ts';
import { Publisher } from './publish/publisher.ts';
import { ResyncEvents } from './publish/resync-events.ts';
import { decoders } from './codec/decoders.ts';
import { ListReads } from './reads/list-reads.ts';
import type { ReadBatch } from './reads/read-batch.ts';
import type { Task } from './task.ts';
import type { RecordKeys } from './publish/record-keys.ts';

export interface ListEventsOptions {
  readonly task: Task;
  readonly lanes: Lanes;
  readonly evolution: SchemaEvolution;
  readonly checkpoint: Checkpoint;
  /**
   * Records that are published only after a second read has confirmed them. The same object is used again when the task is opened again
   * after a failure.
   */
  readonly confirmations: Confirmations;
  /** The key fields, and whether and when the list was first read as empty before they were chosen: see {@link ChosenKey}. */
  readonly key: Pick<ChosenKey, 'keyFields' | 'beganAt' | 'wasEmpty'>;
  /** Encoders of the keys of messages. Default: keys are text. */
  readonly recordKeys?: RecordKeys | undefined;
  readonly resyncs?: TaskJobs | undefined;
}

/** A batch in which at least this many records are processed one by one gets its own turn of the event loop. */
const SMALL_BATCH_RECORDS = 50;
/**
 * Number of pages of the initial snapshot from whose records the list's first schema is inferred. If it is too small, optional fields need
 * more schema versions. If it is too large, the first events are published later.
 */
const PAGES_TO_INFER_FROM = 3;

/** Reads and publishes one list, starting from the checkpoint's cursor. Emits what each page published; completes with `stop$`. */
export function listEvents(options: ListEventsOptions): Observable<Published> {
  const { task, lanes, evolution, checkpoint, confirmations, key, recordKeys, resyncs } = options;
  const { account, list, hooks, scheduler, stop$ } = task;
  const { keyFields } = key;
  const { store, cursor } = checkpoint;
  const isInferred = evolution.current === undefined;

  const keyOf = keyOfFields(keyFields);
  const source = account.list(list, { onUnmatchedField: (field) => hooks.onUnseen({ field }) });
  // Undefined without volatile fields: then images need not be decoded to ignore them.
  const volatile = source.volatile.pointers.length > 0 ? source.volatile : undefined;
  const { personal, stamps } = source;
  const images: Images = {
    get: (key) => {
      const image = store.get(key);
      return image && evolution.inCurrent(image);
    },
  };
  const resync =
    resyncs && new ResyncEvents({ resyncs, codec: () => evolution.values, images, stamps, hooks });
  const publisher = new Publisher({
    ...{ task, checkpoint, evolution, keyFields, recordKeys, personal, volatile, resync, resyncs },
    progress: {
      ...cursor,
      firstRead: { ...cursor.firstRead, startedAt: cursor.firstRead.startedAt ?? key.beganAt },
    },
  });
  const decode = decoders(keyFields, stamps, evolution, store);
  const reads = new ListReads({
    ...{ task, lanes, keyFields, checkpoint },
    lists: {
      clock: source.clock,
      volatile: source.volatile,
      plan: source.plan,
      snapshot: source.pages({ keyOf, decode: decode.snapshot }),
      afterSnapshot: source.pages({ keyOf, decode: decode.afterSnapshot }),
    },
    progress: () => publisher.progress,
    ...(isInferred && { snapshotPageSlots: PAGES_TO_INFER_FROM + 1 }),
    createdSince: (time) => confirmations.createdSince(time),
    resyncs$: resyncs?.resyncs$,
    certifications$: resyncs?.certifications$,
  });
  const compared = compareBatches({
    ...{ task, store, evolution, images, stamps, volatile, personal, confirmations },
    clock: source.clock,
    snapshot: () => publisher.progress.firstRead,
    wasEmpty: key.wasEmpty,
  });

  const isEnough = (read: readonly ReadBatch[]) => {
    const snapshots = read.filter((batch) => batch.lane === 'first-read');
    const done = snapshots.some(({ snapshot }) => snapshot.done);
    const isDone = done || publisher.progress.firstRead.done;
    return !isInferred || isDone || snapshots.length >= PAGES_TO_INFER_FROM;
  };
  /** Emits `value`: at once if `records` (number of records to process singly) is small, else in a later turn of the event loop. */
  const atLeisure = <T>(value: T, records: number) =>
    records < SMALL_BATCH_RECORDS ? of(value) : timer(0, scheduler).pipe(map(() => value));
  const publish = async (difference: Difference<ComparedBatch>): Promise<Published> => {
    const { published, undecided, unconfirmed } = await publisher.publish(difference);
    reads.onPublished(published);
    for (const key of undecided) reads.refetch(key);
    for (const { key, from: at } of unconfirmed) {
      reads.refetch(key, { at, isWanted: () => confirmations.isWaiting(key) });
    }
    return published;
  };

  if (cursor.firstRead.position) {
    const read = cursor.firstRead.position.offset; // the list's total is known once the next page arrives
    hooks.onProgress({ read, total: Math.max(read, store.count()), done: false });
  }
  return reads.batches$.pipe(
    takeUntil(stop$),
    gatherFirst(isEnough),
    // The next page is encoded while the previous one is committed.
    concatMap((read) =>
      atLeisure(read, individualRecords(read)).pipe(
        concatMap((batches) => encodeParsed(batches, evolution, keyFields)),
        concatAll(),
      ),
    ),
    // Pages are compared one after another: each with the images that the previous commit has left.
    concatMap((batch) =>
      atLeisure(batch, individualRecords([batch])).pipe(
        compared,
        concatMap(publish),
        finalize(batch.settle),
      ),
    ),
    finalize(() => publisher.end()),
  );
}

/** Encodes the records that have no image (encoded record) yet. Before that, adds missing fields to the schema. */
async function encodeParsed(
  batches: readonly ReadBatch[],
  evolution: SchemaEvolution,
  keyFields: readonly string[],
): Promise<readonly ReadBatch[]> {
  const parsed = batches.flatMap(({ keyed }) => keyed.filter(({ image }) => !image));
  if (parsed.length === 0) return batches;
  const records = parsed.map(({ json }) => json);
  const images = await evolution.encode(records, keyFields);
  const { values: codec } = evolution;
  let next = 0;
  const withImage = (each: KeyedRecord): KeyedRecord =>
    each.image ? each : each.withImage({ kind: 'encoded', bytes: images[next++]!, codec });
  return batches.map((batch) => ({ ...batch, keyed: batch.keyed.map(withImage) }));
}

/**
 * Counts the individually processed records in batches. Records in runs (groups recognized as a unit) are included only in a resync.
 */
function individualRecords(batches: readonly ReadBatch[]): number {
  const inRuns = ({ lane, runs }: ReadBatch) =>
    lane === 'resync' ? runs.reduce((sum, { size }) => sum + size, 0) : 0;
  return batches.reduce(
    (sum, batch) => sum + batch.keyed.length + batch.rejected.length + inRuns(batch),
    0,
  );
}
