import { concatAll, concatMap, finalize, map, of, takeUntil, timer } from 'rxjs';
import type { Observable } from 'rxjs';
import type { Lanes } from '../account/quotas.ts';
import type { TaskResyncs } from '../account/resync-requests.ts';
import type { Committed, Published } from '../observe/hooks.ts';
import { isEpochError } from '../sinks/client/kafka-error.ts';
import type { Confirmations } from '../streams/diff/confirmations.ts';
import type { Images } from '../streams/diff/diff.ts';
import { isStale } from '../streams/http/answer-age.ts';
import { gatherFirst } from '../streams/flow/gather-first.ts';
import { keyOfFields } from '../streams/records/key-of.ts';
import type { Checkpoint, TaskBatch } from './checkpoint/checkpoint.ts';
import type { ChosenKey } from './choose-key.ts';
import { certifying } from './certify.ts';
import { comparing } from './compare.ts';
import { encodedBatches } from './codec/encoded-batches.ts';
import type { SchemaEvolution } from './codec/schema-evolution.ts';
import { planning } from './publish/plan.ts';
import type { Plan, Progress } from './publish/plan.ts';
import { resyncEvents } from './publish/resync-events.ts';
import { telling } from './publish/telling.ts';
import { decoders } from './codec/decoders.ts';
import { listReads } from './reads/list-reads.ts';
import { completes } from './reads/read-batch.ts';
import type { ReadBatch } from './reads/read-batch.ts';
import type { Task } from './task.ts';
import { TEXT_KEYS } from './publish/record-keys.ts';
import type { RecordKeys } from './publish/record-keys.ts';

export interface ListEventsOptions {
  readonly task: Task;
  readonly lanes: Lanes;
  readonly evolution: SchemaEvolution;
  readonly checkpoint: Checkpoint;
  /** Recent events of this process. The caller passes the same object again after a failure. */
  readonly confirmations: Confirmations;
  /** What the records' keys are made of. */
  readonly key: Pick<ChosenKey, 'keyFields' | 'beganAt' | 'wasEmpty'>;
  /** How those keys are written. Default as text. */
  readonly recordKeys?: RecordKeys;
  /** What is to be published again. Default nothing. */
  readonly resyncs?: TaskResyncs | undefined;
}

/** Without an event the cursor is written to Kafka this often, ms. Who was replaced learns of it from the ledger, sooner. */
const SAVE_EVERY_MS = 60_000;
/** So much later while a reading goes on: with its end a certificate may come, whose commit has the cursor too. */
const SAVE_LATER_MS = 10_000;
/** So many are dealt with in a millisecond or two. */
const FEW_RECORDS = 50;
/** Pages that are looked at before a schema is registered for the first time. */
const PAGES_TO_INFER_FROM = 3;

/**
 * One list, from where the checkpoint's cursor says, stage by stage: its pages are decoded, read in lanes, encoded, held
 * against the last images, and what differs is committed with the cursor in one transaction. Emits what each page
 * published; ends with `stop$`.
 */
export function listEvents(options: ListEventsOptions): Observable<Published> {
  const { task, lanes, evolution, checkpoint, confirmations, key, resyncs } = options;
  const { account, rules, hooks, scheduler, stop$ } = task;
  const { keyFields } = key;
  const { recordKeys = TEXT_KEYS } = options;
  const isInferred = evolution.current() === undefined;
  const { firstRead: begun, since, newestStamp, sequence } = checkpoint.cursor;
  const firstRead = { ...begun, startedAt: begun.startedAt ?? key.beganAt };
  let progress: Progress = { firstRead, since, newestStamp, sequence };
  let savedAt = scheduler.now();

  const keyOf = keyOfFields(keyFields);
  const list = account.list(rules, { onUnseen: (field) => hooks.onUnseen({ field }) });
  // Where there are none, images need not be read to pass over them.
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
      later: list.pages({ keyOf, decode: decode.later }),
    },
    progress: () => progress,
    checkpoint,
    ...(isInferred && { pagesUnderWay: PAGES_TO_INFER_FROM + 1 }),
    createdSince: (time) => confirmations.createdSince(time),
    resyncs$: resyncs?.requests$,
    certify$: resyncs?.certify$,
  });
  const encodeParsed = encodedBatches(evolution, keyFields);
  const images: Images = {
    get: (key) => {
      const image = checkpoint.get(key);
      return image && evolution.inCurrent(image);
    },
  };
  const compared = comparing({
    ...{ task, checkpoint, evolution, images, volatile, personal, confirmations },
    clock: list.clock,
    snapshot: () => progress.firstRead,
    wasEmpty: key.wasEmpty,
  });
  const resync = resyncs && resyncEvents({ resyncs, codec: () => evolution.values, images, hooks });
  const planOf = planning({
    ...{ task, checkpoint, evolution, keyFields, recordKeys, personal, volatile, resync },
  });
  let isOver = false;
  /** A commit of the checkpoint, and what is told of it. */
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
  const certificates = certifying({ task, checkpoint, resyncs, transact, isOver: () => isOver });
  /** Whether a batch has to be committed for the cursor's sake alone. */
  const isSaveDue = (batch: ReadBatch): boolean => {
    const dueAt = savedAt + SAVE_EVERY_MS + (completes(batch) ? 0 : SAVE_LATER_MS);
    return scheduler.now() >= dueAt && !certificates.isComing(batch);
  };
  const tell = telling({ task, checkpoint });
  /** Does what a plan says, and tells of it. */
  const commit = async (plan: Plan): Promise<Published> => {
    const { batch, way } = plan;
    if (way === 'commit') await transact(plan.commit);
    if (way === 'keep') await checkpoint.keep(plan.notes);
    const held = plan.unconfirmed.length;
    if (held > 0 || isStale(batch.age)) hooks.onStale({ held, ageMs: batch.age?.staleMs ?? 0 });
    await certificates.certify(plan);
    if (batch.lane === 'resync') resync?.committed(batch.step);
    return tell(plan);
  };

  const isEnough = (read: readonly ReadBatch[]) => {
    const snapshots = read.filter((batch) => batch.lane === 'first-read');
    const done = snapshots.some(({ snapshot }) => snapshot.done);
    return (
      !isInferred || progress.firstRead.done || done || snapshots.length >= PAGES_TO_INFER_FROM
    );
  };
  /** A turn of the event loop to itself, so that a page holds up nothing else for long; one of which little is to be done needs none. */
  const atLeisure = <T>(value: T, records: number) =>
    records < FEW_RECORDS ? of(value) : timer(0, scheduler).pipe(map(() => value));

  if (begun.position) {
    const read = begun.position.offset; // how many there are in all is known with the next page
    hooks.onProgress({ read, total: Math.max(read, checkpoint.count()), done: false });
  }
  return reads.batches$.pipe(
    takeUntil(stop$),
    gatherFirst(isEnough),
    // While a page is committed the next one is made ready for it.
    concatMap((read) =>
      atLeisure(read, singlesIn(read)).pipe(concatMap(encodeParsed), concatAll()),
    ),
    // One page after the other: each is held against the images that the one before has left.
    concatMap((batch) =>
      atLeisure(batch, singlesIn([batch])).pipe(
        compared,
        concatMap(async (difference) => {
          const repeated =
            batch.lane === 'resync' && resync ? resync.again(batch.step, difference) : [];
          const plan = planOf(difference, { progress, repeated, isDue: isSaveDue(batch) });
          ({ cursor: progress } = plan.commit);
          const published = await commit(plan);
          reads.published(published);
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

/** Records that are looked at one by one: in what is published again those of runs, too. */
function singlesIn(batches: readonly ReadBatch[]): number {
  const inRuns = ({ lane, runs }: ReadBatch) =>
    lane === 'resync' ? runs.reduce((sum, { size }) => sum + size, 0) : 0;
  return batches.reduce(
    (sum, batch) => sum + batch.keyed.length + batch.rejected.length + inRuns(batch),
    0,
  );
}
