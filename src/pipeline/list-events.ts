import { concatAll, concatMap, finalize, map, of, takeUntil, timer } from 'rxjs';
import type { Observable } from 'rxjs';
import type { Lanes } from '../account/quotas.ts';
import type { TaskJobs } from '../account/signal-jobs.ts';
import type { Committed, Published } from '../observe/hooks.ts';
import { isEpochError } from '../kafka/client/kafka-error.ts';
import type { Confirmations } from '../streams/diff/confirmations.ts';
import type { Images } from '../streams/diff/diff.ts';
import { isStale } from '../streams/http/response-age.ts';
import { gatherFirst } from '../streams/flow/gather-first.ts';
import { keyOfFields } from '../streams/records/key-of.ts';
import type { Checkpoint, TaskBatch } from './checkpoint/checkpoint.ts';
import type { ChosenKey } from './choose-key.ts';
import { certifier } from './certifier.ts';
import { compareBatches } from './compare-batches.ts';
import { encodedBatches } from './codec/encoded-batches.ts';
import type { SchemaEvolution } from './codec/schema-evolution.ts';
import { planner } from './publish/plan.ts';
import type { Plan, TaskProgress } from './publish/plan.ts';
import { resyncEvents } from './publish/resync-events.ts';
import { reportPublished } from './publish/report-published.ts';
import { decoders } from './codec/decoders.ts';
import { listReads } from './reads/list-reads.ts';
import { completesScan } from './reads/read-batch.ts';
import type { ReadBatch } from './reads/read-batch.ts';
import type { Task } from './task.ts';
import { TEXT_KEYS } from './publish/record-keys.ts';
import type { RecordKeys } from './publish/record-keys.ts';

export interface ListEventsOptions {
  readonly task: Task;
  readonly lanes: Lanes;
  readonly evolution: SchemaEvolution;
  readonly checkpoint: Checkpoint;
  /**
   * Recent events that this process has published, and records that wait for a confirming second read. The caller passes the same object
   * again after a failure.
   */
  readonly confirmations: Confirmations;
  /** Key fields of the records, and the state of the list when they were chosen. */
  readonly key: Pick<ChosenKey, 'keyFields' | 'beganAt' | 'wasEmpty'>;
  /** Encoder of the message keys. Default: keys are text. */
  readonly recordKeys?: RecordKeys;
  /** Requests for resyncs and certificates of this list. Default none. */
  readonly resyncs?: TaskJobs | undefined;
}

/**
 * Longest time between two commits of the cursor, in ms, when there are no events. Too small: needless transactions. Too large: a restart
 * repeats more polls.
 */
const COMMIT_CURSOR_EVERY_MS = 60_000;
/**
 * Extra time before the cursor is committed without events while a scan is running, in ms: at the scan's end a certificate may be committed
 * with the cursor anyway.
 */
const SCAN_END_GRACE_MS = 10_000;
/**
 * A batch with at least this many records is processed in its own turn of the event loop. Smaller batches take only a millisecond or two.
 */
const SMALL_BATCH_RECORDS = 50;
/** Number of pages whose records the first schema of a list is inferred from. Too small: optional fields need more schema versions. */
const PAGES_TO_INFER_FROM = 3;

/**
 * Reads and publishes one list, starting from the checkpoint's cursor. Pages are read in lanes, decoded, encoded and compared with the
 * published images; changes are committed with the cursor in one transaction. Emits what each page published; completes with `stop$`.
 */
export function listEvents(options: ListEventsOptions): Observable<Published> {
  const { task, lanes, evolution, checkpoint, confirmations, key, resyncs } = options;
  const { account, rules, hooks, scheduler, stop$ } = task;
  const { keyFields } = key;
  const { recordKeys = TEXT_KEYS } = options;
  const isInferred = evolution.current() === undefined;
  const { firstRead: committedSnapshot, since, newestStamp, sequence } = checkpoint.cursor;
  const initialSnapshot = {
    ...committedSnapshot,
    startedAt: committedSnapshot.startedAt ?? key.beganAt,
  };
  let progress: TaskProgress = { firstRead: initialSnapshot, since, newestStamp, sequence };
  let savedAt = scheduler.now();

  const keyOf = keyOfFields(keyFields);
  const list = account.list(rules, { onUnmatchedField: (field) => hooks.onUnseen({ field }) });
  // Undefined without volatile fields: then images need not be decoded to ignore them.
  const volatile = list.volatile.pointers.length > 0 ? list.volatile : undefined;
  const { personal } = list;
  const decode = decoders({ keyFields, keyOf, evolution, checkpoint });
  const reads = listReads({
    task,
    lanes,
    keyFields,
    lists: {
      clock: list.clock,
      volatile: list.volatile,
      plan: list.plan,
      snapshot: list.pages({ keyOf, decode: decode.snapshot }),
      afterSnapshot: list.pages({ keyOf, decode: decode.afterSnapshot }),
    },
    progress: () => progress,
    checkpoint,
    ...(isInferred && { snapshotPageSlots: PAGES_TO_INFER_FROM + 1 }),
    createdSince: (time) => confirmations.createdSince(time),
    resyncs$: resyncs?.resyncs$,
    certifications$: resyncs?.certifications$,
  });
  const encodeParsed = encodedBatches(evolution, keyFields);
  const images: Images = {
    get: (key) => {
      const image = checkpoint.get(key);
      return image && evolution.inCurrent(image);
    },
  };
  const compared = compareBatches({
    ...{ task, checkpoint, evolution, images, volatile, personal, confirmations },
    clock: list.clock,
    snapshot: () => progress.firstRead,
    wasEmpty: key.wasEmpty,
  });
  const resync = resyncs && resyncEvents({ resyncs, codec: () => evolution.values, images, hooks });
  const planOf = planner({
    ...{ task, checkpoint, evolution, keyFields, recordKeys, personal, volatile, resync },
  });
  let isOver = false;
  /** Commits a batch to the checkpoint, and reports the commit to the hooks. */
  const transact = async (batch: TaskBatch): Promise<void> => {
    const beganAt = scheduler.now();
    const ended = (outcome: Committed['outcome']) => {
      const elapsedMs = scheduler.now() - beganAt;
      hooks.onCommitted({ outcome, elapsedMs, messages: batch.messages.length });
    };
    hooks.onCommit({});
    try {
      await checkpoint.commit(batch);
    } catch (error) {
      ended(isEpochError(error) ? 'fenced' : 'failed');
      throw error;
    }
    ended('committed');
    savedAt = scheduler.now();
  };
  const certificates = certifier({ task, checkpoint, resyncs, transact, hasEnded: () => isOver });
  /** Whether a batch without changes has to be committed because the stored cursor is too old. */
  const isSaveDue = (batch: ReadBatch): boolean => {
    const dueAt = savedAt + COMMIT_CURSOR_EVERY_MS + (completesScan(batch) ? 0 : SCAN_END_GRACE_MS);
    return scheduler.now() >= dueAt && !certificates.willCertify(batch);
  };
  const tell = reportPublished({ task, checkpoint });
  /** Carries out a plan, and reports the result to the hooks. */
  const commit = async (plan: Plan): Promise<Published> => {
    const { batch, action } = plan;
    if (action === 'commit') await transact(plan.commit);
    if (action === 'keep') await checkpoint.storeNotes(plan.notes);
    const held = plan.unconfirmed.length;
    if (held > 0 || isStale(batch.age)) hooks.onStale({ held, ageMs: batch.age?.staleMs ?? 0 });
    await certificates.certify(plan);
    if (batch.lane === 'resync') resync?.stepCommitted(batch.step);
    return tell(plan);
  };

  const isEnough = (read: readonly ReadBatch[]) => {
    const snapshots = read.filter((batch) => batch.lane === 'first-read');
    const done = snapshots.some(({ snapshot }) => snapshot.done);
    return (
      !isInferred || progress.firstRead.done || done || snapshots.length >= PAGES_TO_INFER_FROM
    );
  };
  /** Emits `value` in a later turn of the event loop, so that a large page does not hold up other work; at once if it has few records. */
  const atLeisure = <T>(value: T, records: number) =>
    records < SMALL_BATCH_RECORDS ? of(value) : timer(0, scheduler).pipe(map(() => value));

  if (committedSnapshot.position) {
    const read = committedSnapshot.position.offset; // the list's total is known once the next page arrives
    hooks.onProgress({ read, total: Math.max(read, checkpoint.count()), done: false });
  }
  return reads.batches$.pipe(
    takeUntil(stop$),
    gatherFirst(isEnough),
    // The next page is encoded while the previous one is committed.
    concatMap((read) =>
      atLeisure(read, individualRecords(read)).pipe(concatMap(encodeParsed), concatAll()),
    ),
    // Pages are compared one after another: each with the images that the previous commit has left.
    concatMap((batch) =>
      atLeisure(batch, individualRecords([batch])).pipe(
        compared,
        concatMap(async (difference) => {
          const republished =
            batch.lane === 'resync' && resync ? resync.republish(batch.step, difference) : [];
          const plan = planOf(difference, {
            progress,
            republished,
            isDue: isSaveDue(batch),
          });
          ({ cursor: progress } = plan.commit);
          const published = await commit(plan);
          reads.onPublished(published);
          for (const key of plan.undecided) reads.refetch(key);
          for (const { key, from: at } of plan.unconfirmed) {
            reads.refetch(key, { at, isWanted: () => confirmations.isWaiting(key) });
          }
          return published;
        }),
        finalize(batch.settle),
      ),
    ),
    finalize(() => (isOver = true)),
  );
}

/**
 * Returns the number of records of the batches that are processed one by one instead of as part of a run. In a resync these include the
 * records of runs.
 */
function individualRecords(batches: readonly ReadBatch[]): number {
  const inRuns = ({ lane, runs }: ReadBatch) =>
    lane === 'resync' ? runs.reduce((sum, { size }) => sum + size, 0) : 0;
  return batches.reduce(
    (sum, batch) => sum + batch.keyed.length + batch.rejected.length + inRuns(batch),
    0,
  );
}
