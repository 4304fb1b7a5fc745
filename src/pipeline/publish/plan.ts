import { readingRules } from '../../description/levels.ts';
import type { Published } from '../../observe/hooks.ts';
import type { ImageUpdate, StoredPayloadDigest, Run } from '../../state/store.ts';
import type { Unconfirmed } from '../../streams/diff/confirmations.ts';
import type { Difference } from '../../streams/diff/diff.ts';
import { countsWith } from '../../streams/paging/scan-counts.ts';
import {
  limitJudged,
  nextSweep,
  pollsCompleted,
  snapshotDone,
  sweepAfter,
} from '../../streams/paging/sweep-progress.ts';
import type { SweepProgress, SweptPage } from '../../streams/paging/sweep-progress.ts';
import type { ScanPage } from '../../streams/paging/pages.ts';
import { withHiddenFields } from '../../streams/diff/change.ts';
import type { KeyedRecord, PageRun } from '../../streams/records/page-record.ts';
import { newRejects, rejectDigest } from '../../streams/records/records.ts';
import type { PersonalFields } from '../../streams/records/personal-fields.ts';
import type { VolatileFields } from '../../streams/records/volatile-fields.ts';
import type { Checkpoint, StoreReads, TaskBatch, TaskNotes } from '../checkpoint/checkpoint.ts';
import type { Cursor } from '../checkpoint/cursor.ts';
import type { SchemaEvolution } from '../codec/schema-evolution.ts';
import { listOffsetOf, isPageOfSweep, sweptParts } from '../reads/read-batch.ts';
import type { ReadBatch } from '../reads/read-batch.ts';
import type { ComparedBatch } from '../compare-batches.ts';
import type { Task } from '../task.ts';
import { formRuns } from './form-runs.ts';
import { publicationOf } from './messages.ts';
import type { Publication } from './messages.ts';
import type { ResyncEvents } from './resync-events.ts';
import type { RecordKeys } from './record-keys.ts';

/** Effects of a batch, before any of them is carried out: what to publish, and what to store. */
export interface Plan extends Pick<Publication, 'statusChanges' | 'rejected'> {
  readonly batch: ReadBatch;
  readonly changes: Published['changes'];
  readonly unchanged: number;
  /** Messages and cursor of a transaction, and the images and notes to store after it. */
  readonly commit: TaskBatch;
  /**
   * Data that is stored only in the image store on this machine, not in Kafka: the progress of sweeps, and facts about the batch's page
   * such as its keys. The property `commit` contains this data too.
   */
  readonly notes: TaskNotes & Required<Pick<TaskNotes, 'sweep'>>;
  /**
   * Effect of the batch. `commit`: cursor and messages are committed to Kafka in one transaction, images and `notes` are stored. `keep`:
   * only `notes` are stored. `nothing`: no effect.
   */
  readonly action: 'commit' | 'keep' | 'nothing';
  /**
   * Keys of records of which two overlapping reads showed different content. These records are requested again, or read by the next sweep.
   */
  readonly undecided: readonly string[];
  /**
   * Records that are not published because they may have been read in an earlier state than the published one. They are requested again
   * after a while, or read by a later poll or sweep.
   */
  readonly unconfirmed: readonly Unconfirmed[];
}

/** Progress of a task after its newest batch. */
export type TaskProgress = Pick<Cursor, 'firstRead' | 'since' | 'newestStamp' | 'sequence'>;

export interface PlannerOptions {
  readonly task: Task;
  readonly checkpoint: Checkpoint;
  readonly evolution: SchemaEvolution;
  readonly keyFields: readonly string[];
  /** Encoders of the keys of messages. Undefined if keys are text. */
  readonly recordKeys: RecordKeys | undefined;
  readonly personal: PersonalFields | undefined;
  readonly volatile: VolatileFields | undefined;
  /** Creates the events of resyncs (requests to publish records again). Undefined if the task receives no such requests. */
  readonly resync: ResyncEvents | undefined;
}

/**
 * Returns the function that plans the effects of a batch: what to publish, and what to store. `progress` is the task's progress before the
 * batch. If `isDue`, the cursor has to be committed even without changes.
 */
export function planner(
  options: PlannerOptions,
): (difference: Difference<ComparedBatch>, progress: TaskProgress, isDue: boolean) => Plan {
  const { task, checkpoint, evolution, keyFields, recordKeys, personal, volatile, resync } =
    options;
  const { list, config, scheduler, wallClock } = task;
  const { store } = checkpoint;
  const rules = readingRules(list);

  return (difference, progress, isDue) => {
    const { read, unchanged, undecided, unconfirmed } = difference;
    const { batch, keys, runs } = read;
    const republished =
      batch.lane === 'resync' && resync ? resync.republish(batch.step, difference) : [];
    const changes = [...difference.changes, ...republished].map((change) =>
      withHiddenFields(change, evolution.values, personal),
    );
    const publication = publicationOf(changes, batch.rejected, {
      ...{ task, evolution, recordKeys },
      sequence: progress.sequence,
      // Created for each page: rejects committed with this page are known when the next one is planned.
      isNewReject: newRejects((digest) => store.isRejected(digest), volatile),
      records: read.records,
      offset: listOffsetOf(batch),
      now: Math.round(wallClock()),
    });
    const { images, statusChanges, rejected, sequence } = publication;
    const acknowledgement =
      batch.lane === 'resync' && resync
        ? resync.acknowledge(batch.step, sequence - progress.sequence)
        : [];
    const messages = [...publication.messages, ...acknowledgement];
    const now = scheduler.now();
    const { deleteProofMs: proofMs, pageSize } = config.poll;
    const how = { now, proofMs, pageSize, isPolled: list.dates !== undefined, rules };
    const reached = sweepAfterBatch(read, checkpoint, how);
    const sweep = { ...withKeyOutcomes(reached, difference, publication), keptAt: now };
    const payloadDigests = payloadDigestsOf(difference, images);
    const ids = runs.map(({ run }) => run.id);
    // Keys that are marked individually. A republished record may be part of a run: writing its image removes it from the run.
    const alone = [...keys, ...republished.map(({ key }) => key)];
    const notes = {
      sweep,
      seen: { keys: alone, runs: ids, sweep: sweep.number, bySweep: isPageOfSweep(batch) },
      payloadDigests,
      newRuns: newRuns(difference, payloadDigests, store, sweep.number),
      rejects: rejected.map((each) => rejectDigest(each, volatile)),
    };
    const mustCommit = messages.length > 0 || batch.lane === 'first-read' || isDue;
    const mustStore = () =>
      batch.lane === 'sweep' ||
      sweep.counts !== checkpoint.sweep.counts ||
      notes.payloadDigests.size > 0 ||
      keys.some((key) => store.isUnseen(key, sweep.number)) ||
      ids.some((id) => store.run(id)!.lastSeenSweep < sweep.number);
    const latest = wallClock() + MAX_STAMP_AHEAD_MS;
    const newestStamp = newestStampOf(difference, progress.newestStamp, latest);
    return {
      batch,
      changes,
      statusChanges,
      unchanged,
      rejected,
      undecided,
      unconfirmed,
      // If the action is not `commit` there are no events, and `sequence` is that of `progress`.
      commit: {
        messages,
        images,
        cursor: {
          ...{ sequence, ...progressWith(batch, progress), newestStamp, keyFields },
          ...(recordKeys && { keyFormat: 'avro' }),
        },
        ...notes,
      },
      notes,
      action: mustCommit ? 'commit' : mustStore() ? 'keep' : 'nothing',
    };
  };
}

/**
 * Returns the new digests of records' JSON bytes, by key. Contains only records that will equal their stored images once the batch is
 * committed.
 */
function payloadDigestsOf(
  { read, same, refreshed, changes }: Difference<ComparedBatch>,
  images: readonly ImageUpdate[],
): ReadonlyMap<string, StoredPayloadDigest> {
  const texts = new Map<string, StoredPayloadDigest>();
  const written = new Set(images.map(({ key }) => key));
  // Only keys whose image is written: a resync may republish an image that is newer than the record on the page.
  const changed = new Set(changes.map(({ key }) => key).filter((key) => written.has(key)));
  const again = read.records.filter(({ key }) => changed.has(key));
  for (const each of [...same, ...again]) {
    if (each.image?.kind === 'published' && !written.has(each.key)) continue; // its digest is stored already
    if (refreshed.has(each.key) && !written.has(each.key)) continue; // differs from its image in volatile fields
    if (each.digest) texts.set(each.key, each.digest);
  }
  return texts;
}

/**
 * Returns new runs: groups of adjacent records of a sweep's page, which the next sweep recognizes as a unit. A new run contains only
 * records that will equal their stored images once the batch is committed.
 */
function newRuns(
  { read: { batch }, same }: Difference<ComparedBatch>,
  texts: ReadonlyMap<string, StoredPayloadDigest>,
  store: StoreReads,
  sweep: number,
): readonly Run[] {
  const isPublished = ({ image }: KeyedRecord) => image?.kind === 'published';
  const known = new Set([...texts.keys(), ...same.filter(isPublished).map(({ key }) => key)]);
  if (known.size === 0) return [];
  // Where pages overlap, a record belongs to a run of the earlier page. `known.delete` accepts each key once, as a page may repeat it.
  return formRuns(
    sweptParts(batch),
    ({ key }) => known.delete(key) && !store.isReadWithRun(key, sweep),
    (bytes) => store.digestOf(bytes),
  );
}

/** Returns the progress of the initial snapshot and of the polls as it will be after the batch is committed. */
function progressWith(
  batch: ReadBatch,
  { firstRead: initialSnapshot, since }: TaskProgress,
): Pick<TaskProgress, 'firstRead' | 'since'> {
  if (batch.lane === 'first-read') return { firstRead: batch.snapshot, since };
  if (batch.lane !== 'poll' && batch.lane !== 'sweep') return { firstRead: initialSnapshot, since };
  const caughtUp = initialSnapshot.done && batch.catchesUp;
  return {
    firstRead: caughtUp ? { ...initialSnapshot, caughtUp } : initialSnapshot,
    since: (batch.lane === 'poll' ? batch.since : undefined) ?? since,
  };
}

/**
 * Maximum lead of a record's stamp (creation or modification time) over the local clock, in ms. If it is too small, an API whose clock is
 * ahead has no newest stamp. If it is too large, a mistyped future date becomes the newest stamp; after a loss of events, new records are
 * then published as old (event `r`).
 */
const MAX_STAMP_AHEAD_MS = 24 * 3_600_000;

/**
 * Returns the newest stamp (creation or modification time) of all published records after a batch, in epoch ms; undefined if there is none.
 * `before` is the newest stamp before the batch. Stamps of the batch later than `latest` are ignored.
 */
function newestStampOf(
  { read, changes }: Difference<ComparedBatch>,
  before: number | undefined,
  latest: number,
): number | undefined {
  const changed = new Set(changes.map(({ key }) => key));
  let newest = before;
  for (const record of read.records) {
    if (!changed.has(record.key)) continue; // checked first, because reading a time may parse the record
    for (const stamp of [record.createdAt, record.updatedAt]) {
      if (stamp !== null && stamp <= latest) newest = Math.max(newest ?? -Infinity, stamp);
    }
  }
  return newest;
}

/**
 * Updates a sweep's lists of keys whose content is uncertain, or too large to publish, with the outcomes of a batch. Keys whose newest
 * content is published are removed from the lists.
 */
function withKeyOutcomes(
  sweep: SweepProgress,
  { read, same, undecided, unconfirmed }: Difference<ComparedBatch>,
  { images, unpublished }: Publication,
): SweepProgress {
  const { batch } = read;
  const { counts } = sweep;
  if (!counts) return sweep;
  const isInDoubt = counts.undecided.keys.length + counts.unpublished.keys.length > 0;
  const inRuns = isInDoubt ? read.runs.flatMap(({ run }) => run.members) : [];
  const decided = isInDoubt ? [...images, ...same, ...inRuns].map(({ key }) => key) : [];
  // Keys that count as seen, although no response has shown whether their records exist.
  const presumed = batch.lane === 'sweep' ? (batch.presumedSeen ?? []) : [];
  const untold = presumed.filter((key) => !batch.keyed.some((each) => each.key === key));
  const next = countsWith(counts, {
    decided: new Set(decided),
    unpublished,
    undecided: [...undecided, ...unconfirmed.map(({ key }) => key), ...untold],
  });
  return next === counts ? sweep : { ...sweep, counts: next };
}

/** Returns the progress of sweeps (recurring full scans) after the commit of the batch. */
function sweepAfterBatch(
  { batch, keys, runs, leftOut }: ComparedBatch,
  { sweep, store }: Checkpoint,
  how: Pick<SweptPage, 'now' | 'proofMs' | 'pageSize' | 'isPolled' | 'rules'>,
): SweepProgress {
  const { now, proofMs } = how;
  const afterPage = (
    next: SweepProgress,
    page: ScanPage,
    more: Pick<SweptPage, 'isConsistent' | 'ordered' | 'rejectedAt'>,
  ) => {
    const isFresh = ({ run }: PageRun) => store.run(run.id)!.lastReadSweep < next.number;
    const freshRuns = runs.filter(isFresh);
    const inRuns = freshRuns.reduce((sum, { size }) => sum + size, 0);
    const fresh = store.countUnread(keys, next.number) + inRuns;
    const freshKeys = () => [
      ...[...new Set(keys)].filter((key) => store.countUnread([key], next.number) > 0),
      ...freshRuns.flatMap(({ run }) => run.members.map(({ key }) => key)),
    ];
    const left = leftOut.length > 0 ? store.countUnread(leftOut, next.number) : 0;
    return sweepAfter(next, page, {
      ...{ ...more, ...how, fresh, leftOut: left },
      ...(how.rules.isAgreed && { freshKeys: freshKeys() }),
    });
  };
  if (batch.lane === 'first-read') {
    const { page, snapshot, isFullScan } = batch;
    if (!isFullScan) return snapshot.done ? snapshotDone(sweep, now) : sweep;
    const next = sweep.phase === 'reading' ? sweep : sweepOfSnapshot(sweep, page, now);
    const after = { ...afterPage(next, page, { ...batch, ordered: true }), position: null }; // the cursor has the snapshot's position
    return snapshot.done ? snapshotDone(after, now) : after;
  }
  if (batch.lane !== 'sweep') return sweep;
  const { step } = batch;
  switch (step.kind) {
    case 'page': {
      const { page, isConsistent, ordered, beganAt } = step;
      const next = sweep.phase === 'reading' ? sweep : nextSweep(sweep, beganAt);
      return afterPage(next, page, { isConsistent, ordered, rejectedAt: batch.rejectedAt });
    }
    case 'asked':
      return step.again ? sweep : { ...sweep, askedUpTo: step.key };
    case 'asked-once':
      return { ...sweep, askedAt: now };
    case 'judged':
      return limitJudged(sweep, step.verdict);
    case 'polled':
      return pollsCompleted(sweep, now, proofMs);
    case 'end':
      return { ...sweep, phase: 'done' };
    case 'spared':
    case 'absent':
      return sweep;
  }
}

/** Returns the progress of a sweep that begins with this page of the initial snapshot. A snapshot of the whole list counts as a sweep. */
function sweepOfSnapshot(sweep: SweepProgress, { answer, offset }: ScanPage, now: number) {
  // Not by `now` alone: the first pages wait for the first schema before they are processed.
  const beganAt = Math.min(now - (answer.elapsedMs ?? 0), answer.age?.asOf ?? Infinity);
  return { ...nextSweep(sweep, beganAt), interrupted: offset > 0 }; // at an offset, an earlier process has read the pages before
}
