import { VERSION } from '../../core/version.ts';
import type { Published } from '../../observe/hooks.ts';
import type { ImageUpdate, KeptText, Run } from '../../state/store.ts';
import type { Change } from '../../streams/diff/change.ts';
import type { Unconfirmed } from '../../streams/diff/confirmations.ts';
import type { Difference } from '../../streams/diff/diff.ts';
import { countsWith } from '../../streams/paging/reading-counts.ts';
import {
  judgedSweep,
  nextSweep,
  polledAfter,
  snapshotDone,
  sweepAfter,
} from '../../streams/paging/sweep-progress.ts';
import type { SweepProgress, SweptPage } from '../../streams/paging/sweep-progress.ts';
import type { ScanPage } from '../../streams/paging/pages.ts';
import { hidingChange } from '../../streams/diff/change.ts';
import type { KeyedRecord } from '../../streams/records/page-record.ts';
import type { PageRun } from '../../streams/records/page-records.ts';
import { knownRejects, rejectDigest } from '../../streams/records/records.ts';
import type { PersonalFields } from '../../streams/records/personal-fields.ts';
import type { VolatileFields } from '../../streams/records/volatile-fields.ts';
import type { Checkpoint, TaskBatch, TaskNotes } from '../checkpoint/checkpoint.ts';
import type { Cursor } from '../checkpoint/cursor.ts';
import type { SchemaEvolution } from '../codec/schema-evolution.ts';
import { offsetIn, isPageOfSweep, sweptParts } from '../reads/read-batch.ts';
import type { ReadBatch } from '../reads/read-batch.ts';
import type { ComparedBatch } from '../compare.ts';
import type { Task } from '../task.ts';
import { formedRuns } from './form-runs.ts';
import { publicationOf } from './messages.ts';
import type { Publication } from './messages.ts';
import type { ResyncEvents } from './resync-events.ts';
import type { RecordKeys } from './record-keys.ts';

/** What a batch comes to: what is to be published and kept with it, before anything of it is done. */
export interface Plan extends Pick<Publication, 'statusChanges' | 'rejected'> {
  readonly batch: ReadBatch;
  readonly changes: Published['changes'];
  readonly unchanged: number;
  /** Messages, images, and how far the task has come with them. */
  readonly commit: TaskBatch;
  /** What is kept where nothing has to be committed. */
  readonly notes: TaskNotes & Required<Pick<TaskNotes, 'sweep'>>;
  /** `commit`: somebody has to be told. `keep`: what is kept here alone has changed. */
  readonly way: 'commit' | 'keep' | 'nothing';
  /** Keys whose newest content can't be told: to be read again. */
  readonly undecided: readonly string[];
  /** Records that go back: to be read again later. */
  readonly unconfirmed: readonly Unconfirmed[];
}

/** How far a task has come by the commits so far. */
export type Progress = Pick<Cursor, 'firstRead' | 'since' | 'newestStamp' | 'sequence'>;

/** What a plan goes by; nothing of it is changed. */
export interface PlanOptions {
  readonly task: Pick<
    Task,
    'account' | 'rules' | 'config' | 'destination' | 'scheduler' | 'wallClock'
  >;
  readonly checkpoint: Pick<
    Checkpoint,
    'sweep' | 'unread' | 'isUnseen' | 'isRejected' | 'run' | 'isReadWithRun' | 'digestOf'
  >;
  readonly evolution: Pick<SchemaEvolution, 'current' | 'values'>;
  readonly keyFields: readonly string[];
  readonly recordKeys: RecordKeys;
  readonly personal: PersonalFields | undefined;
  readonly volatile: VolatileFields | undefined;
  readonly resync: Pick<ResyncEvents, 'acknowledge'> | undefined;
}

/** What is known as a batch's turn has come. */
export interface PlanState {
  readonly progress: Progress;
  /** What is published once more, beside what has changed. */
  readonly repeated: readonly Change[];
  /** Whether the cursor has to be written even if nothing has moved: a process that was replaced learns of it by a commit. */
  readonly isDue: boolean;
}

/** Says what a batch comes to. */
export function planning(
  options: PlanOptions,
): (difference: Difference<ComparedBatch>, state: PlanState) => Plan {
  const { task, checkpoint, evolution, keyFields, recordKeys, personal, volatile, resync } =
    options;
  const { account, rules, config, destination, scheduler, wallClock } = task;
  const { resource } = rules;
  const { prefix } = config.topics;
  const origin = { account: account.name, resource, prefix, version: VERSION };

  return (difference, { progress, repeated, isDue }) => {
    const { read, unchanged, undecided, unconfirmed } = difference;
    const { batch, keys, runs } = read;
    const changes = [...difference.changes, ...repeated].map((change) =>
      hidingChange(change, evolution.values, personal),
    );
    const publication = publicationOf(changes, batch.rejected, {
      destination,
      rules,
      evolution,
      origin,
      recordKeys,
      sequence: progress.sequence,
      // Of this page: what is committed with it is known to the next.
      isNews: knownRejects(checkpoint.isRejected, volatile),
      records: read.records,
      offset: offsetIn(batch),
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
    const isPolled = rules.windowed;
    const reached = sweepAt(read, { checkpoint, now, proofMs, pageSize, isPolled });
    const sweep = { ...withSettled(reached, difference, publication), keptAt: now };
    const texts = textsOf(difference, images);
    const ids = runs.map(({ run }) => run.id);
    // These get a mark of their own. A repeated record may have been read with its run: its image is written, so it leaves the run.
    const alone = [...keys, ...repeated.map(({ key }) => key)];
    const notes = {
      sweep,
      seen: { keys: alone, runs: ids, sweep: sweep.number, bySweep: isPageOfSweep(batch) },
      texts,
      formed: runsOf(difference, { texts, checkpoint, sweep: sweep.number }),
      rejects: rejected.map((each) => rejectDigest(each, volatile)),
    };
    const mustBeTold = messages.length > 0 || batch.lane === 'first-read' || isDue;
    const mustBeKept = () =>
      batch.lane === 'sweep' ||
      sweep.counts !== checkpoint.sweep.counts ||
      notes.texts.size > 0 ||
      keys.some((key) => checkpoint.isUnseen(key, sweep.number)) ||
      ids.some((id) => checkpoint.run(id)!.seen < sweep.number);
    const { firstRead, since } = progressWith(batch, progress);
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
      // What is not committed has used no sequence.
      commit: {
        messages,
        images,
        cursor: {
          ...{ sequence, firstRead, since, newestStamp, keyFields },
          ...(recordKeys.format !== 'text' && { keyFormat: recordKeys.format }),
        },
        ...notes,
      },
      notes,
      way: mustBeTold ? 'commit' : mustBeKept() ? 'keep' : 'nothing',
    };
  };
}

/** What a page's records were sent as, of those that are as their images say once those are stored. */
function textsOf(
  { read, same, refreshed, changes }: Difference<ComparedBatch>,
  images: readonly ImageUpdate[],
): ReadonlyMap<string, KeptText> {
  const texts = new Map<string, KeptText>();
  const written = new Set(images.map(({ key }) => key));
  // An image may be published again beside a record that is older than it is.
  const changed = new Set(changes.map(({ key }) => key).filter((key) => written.has(key)));
  const again = read.records.filter(({ key }) => changed.has(key));
  for (const each of again.length === 0 ? same : [...same, ...again]) {
    if (each.image?.kind === 'published' && !written.has(each.key)) continue; // it is kept already
    if (refreshed.has(each.key) && !written.has(each.key)) continue; // its image is of other bytes
    if (each.digest) texts.set(each.key, each.digest);
  }
  return texts;
}

/** The runs that a sweep has met for the first time: what it has read one by one, and would know again. */
function runsOf(
  { read: { batch }, same }: Difference<ComparedBatch>,
  by: {
    readonly texts: ReadonlyMap<string, KeptText>;
    readonly checkpoint: Pick<Checkpoint, 'isReadWithRun' | 'digestOf'>;
    readonly sweep: number;
  },
): readonly Run[] {
  const { texts, checkpoint, sweep } = by;
  const isPublished = ({ image }: KeyedRecord) => image?.kind === 'published';
  const known = new Set([...texts.keys(), ...same.filter(isPublished).map(({ key }) => key)]);
  if (known.size === 0) return [];
  // Where pages overlap, the first of them has the run. The second of a key is another record.
  return formedRuns(
    sweptParts(batch),
    ({ key }) => known.delete(key) && !checkpoint.isReadWithRun(key, sweep),
    checkpoint.digestOf,
  );
}

/** How far reads have come with a batch. */
function progressWith(
  batch: ReadBatch,
  { firstRead, since }: Progress,
): Pick<Progress, 'firstRead' | 'since'> {
  if (batch.lane === 'first-read') return { firstRead: batch.snapshot, since };
  if (batch.lane !== 'poll' && batch.lane !== 'sweep') return { firstRead, since };
  const caughtUp = firstRead.done && batch.catchesUp;
  return {
    firstRead: caughtUp ? { ...firstRead, caughtUp } : firstRead,
    since: (batch.lane === 'poll' ? batch.since : undefined) ?? since,
  };
}

/**
 * Upper bound of how far a stamp may be ahead of the local clock to count as the newest, in ms. Too small: an API whose clock is ahead has no newest
 * stamp. Too large: a mistyped date makes all records after a loss of events old until that date.
 */
const MAX_STAMP_AHEAD_MS = 24 * 3_600_000;

/** Newest stamp up to `latest` of a published record once these changes are committed, in epoch ms; undefined before the first one. */
function newestStampOf(
  { read, changes }: Difference<ComparedBatch>,
  before: number | undefined,
  latest: number,
): number | undefined {
  const changed = new Set(changes.map(({ key }) => key));
  let newest = before;
  for (const { key, createdAt, updatedAt } of changed.size > 0 ? read.records : []) {
    if (!changed.has(key) || (createdAt ?? updatedAt) === null) continue;
    for (const stamp of [createdAt, updatedAt]) {
      if (stamp !== null && stamp <= latest) newest = Math.max(newest ?? -Infinity, stamp);
    }
  }
  return newest;
}

/** A sweep that knows what a batch has settled, and what it has not. */
function withSettled(
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
  // Of what was asked for, and can't be told.
  const spared = batch.lane === 'sweep' ? (batch.spared ?? []) : [];
  const untold = spared.filter((key) => !batch.keyed.some((each) => each.key === key));
  const next = countsWith(counts, {
    decided: new Set(decided),
    unpublished,
    undecided: [...undecided, ...unconfirmed.map(({ key }) => key), ...untold],
  });
  return next === counts ? sweep : { ...sweep, counts: next };
}

/** How far sweeps have come with a batch. */
function sweepAt(
  { batch, keys, runs, leftOut }: ComparedBatch,
  at: Pick<SweptPage, 'now' | 'proofMs' | 'pageSize' | 'isPolled'> & {
    readonly checkpoint: Pick<Checkpoint, 'sweep' | 'unread' | 'run'>;
  },
): SweepProgress {
  const { checkpoint, ...how } = at;
  const { now, proofMs } = how;
  const { sweep } = checkpoint;
  const afterPage = (
    next: SweepProgress,
    page: ScanPage,
    more: Pick<SweptPage, 'settled' | 'ordered' | 'rejectedAt'>,
  ) => {
    const isFresh = ({ run }: PageRun) => checkpoint.run(run.id)!.read < next.number;
    const inRuns = runs.filter(isFresh).reduce((sum, { size }) => sum + size, 0);
    const fresh = checkpoint.unread(keys, next.number) + inRuns;
    const left = leftOut.length > 0 ? checkpoint.unread(leftOut, next.number) : 0;
    return sweepAfter(next, page, { ...more, ...how, fresh, leftOut: left });
  };
  if (batch.lane === 'first-read') {
    const { page, snapshot, isWhole } = batch;
    if (!isWhole) return snapshot.done ? snapshotDone(sweep, now) : sweep;
    const next = sweep.phase === 'reading' ? sweep : snapshotBegun(sweep, page, now);
    const after = { ...afterPage(next, page, { ...batch, ordered: true }), position: null }; // the cursor has it
    return snapshot.done ? snapshotDone(after, now) : after;
  }
  if (batch.lane !== 'sweep') return sweep;
  const { step } = batch;
  switch (step.kind) {
    case 'page': {
      const { page, settled, ordered, beganAt } = step;
      const next = sweep.phase === 'reading' ? sweep : nextSweep(sweep, beganAt);
      return afterPage(next, page, { settled, ordered, rejectedAt: batch.rejectedAt });
    }
    case 'asked':
      return step.again ? sweep : { ...sweep, askedUpTo: step.key };
    case 'asked-once':
      return { ...sweep, askedAt: now };
    case 'judged':
      return judgedSweep(sweep, step.verdict);
    case 'polled':
      return polledAfter(sweep, now, proofMs);
    case 'end':
      return { ...sweep, phase: 'done' };
    case 'spared':
    case 'absent':
      return sweep;
  }
}

/** An initial snapshot with the first of its pages here: one that goes on was begun by somebody else. */
function snapshotBegun(sweep: SweepProgress, { answer, offset }: ScanPage, now: number) {
  const beganAt = now - (answer.elapsedMs ?? 0);
  return { ...nextSweep(sweep, beganAt), interrupted: offset > 0 };
}
