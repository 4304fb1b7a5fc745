import { concatAll, concatMap, finalize, from, map, takeUntil, timer } from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import type { Api } from '../account/api.ts';
import type { Config } from '../config/config.ts';
import type { Destination } from '../sinks/topics/destination.ts';
import { encodedBatches } from './encode/encoded-batches.ts';
import type { EncodedBatch } from './encode/encoded-batches.ts';
import type { Committed, Hooks, Published } from '../observe/hooks.ts';
import { personalFieldsOf } from '../account/personal-fields-of.ts';
import { publicationOf } from './publish/publisher.ts';
import type { Lanes } from '../account/quotas.ts';
import { resourceReads } from './reads/resource-reads.ts';
import type { ReadBatch } from './reads/read-batch.ts';
import { RULES } from '../resources/resources.ts';
import type { Resource } from '../resources/resources.ts';
import { resyncEvents } from './publish/resync-events.ts';
import type { TaskResyncs } from '../account/resync-requests.ts';
import type { SchemaEvolution } from './encode/schema-evolution.ts';
import { payloadDigests } from './encode/payload-digests.ts';
import { isEpochError } from '../sinks/client/kafka-error.ts';
import type { Checkpoint } from './checkpoint/checkpoint.ts';
import type { KeptText } from '../state/store.ts';
import { diff, lastUpdateOf } from '../streams/diff/diff.ts';
import { instantOf } from '../streams/records/updated-at.ts';
import type { Difference, EncodedRecord, Images, ReadRecords } from '../streams/diff/diff.ts';
import { FreshRecord, freshReader } from '../streams/records/fresh-record.ts';
import { gatherFirst } from '../streams/flow/gather-first.ts';
import { knownRejects, rejectDigest } from '../streams/records/known-rejects.ts';
import { newestReads } from '../streams/diff/newest.ts';
import { hidingChange } from '../streams/records/hiding-change.ts';
import { offsetOf } from '../streams/records/records.ts';
import { keyOfFields } from '../streams/records/key-of.ts';
import { nextSweep, sweepAfter, withRemoved } from '../streams/paging/sweep-progress.ts';
import type { SweepProgress } from '../streams/paging/sweep-progress.ts';
import { volatileFields } from '../streams/records/volatile-fields.ts';
import { VERSION } from '../core/version.ts';
import { volatilePointers } from '../config/volatile-fields-of.ts';

export interface ResourceEventsOptions {
  readonly resource: Resource;
  readonly config: Config;
  readonly api: Api;
  readonly lanes: Lanes;
  readonly destination: Destination;
  readonly book: SchemaEvolution;
  readonly checkpoint: Checkpoint;
  /** What the records' keys are made of. */
  readonly keyFields: readonly string[];
  /** The server's time as this process first looked at a list that was empty then; else null. */
  readonly beganAt: number | null;
  /** Whether it was: all that is in it now is new. */
  readonly wasEmpty: boolean;
  /** Its first value ends the batch; what was read is still committed. */
  readonly stop$: Observable<unknown>;
  /** What is to be published again. Default nothing. */
  readonly resyncs?: TaskResyncs | undefined;
  readonly scheduler: SchedulerLike;
  /** The time that events are stamped with, ms since the epoch: it may step back. Default the scheduler's. */
  readonly wallClock?: (() => number) | undefined;
  readonly hooks: Hooks;
}

/** Without an event the cursor is written to Kafka this often, ms. */
const SAVE_EVERY_MS = 10_000;
/** Pages that are looked at before a schema is registered for the first time. */
const PAGES_TO_INFER_FROM = 3;

/**
 * One resource, from where the checkpoint's cursor says: each page that is read is held against the last
 * images, and what differs is committed with the cursor in one transaction. Emits what each page
 * published; ends with `stop$`.
 */
export function resourceEvents(options: ResourceEventsOptions): Observable<Published> {
  const { resource, config, api, lanes, destination, book, checkpoint, keyFields } = options;
  const { stop$, resyncs, scheduler, wallClock = () => scheduler.now(), hooks } = options;
  const { identities, windowed, byKey } = RULES[resource];
  const { startFrom } = config.poll;
  const origin = { account: config.account, resource, version: VERSION };
  const personal = personalFieldsOf(config.pii, resource);
  const pointers = volatilePointers(config, resource);
  const volatile = pointers.length > 0 ? volatileFields(pointers) : undefined;
  const isInferred = book.current() === undefined;
  let { firstRead, since, sequence } = checkpoint.cursor;
  firstRead = { ...firstRead, startedAt: firstRead.startedAt ?? options.beganAt };
  let savedAt = scheduler.now();
  const { position } = firstRead;
  if (position) {
    const read = position.offset; // how many there are in all is known with the next page
    hooks.onProgress?.({ resource, read, total: Math.max(read, checkpoint.count()), done: false });
  }

  // What is hidden is no longer what was sent.
  const keyOf = keyOfFields(keyFields);
  const fresh = personal ? undefined : { keyFields, keyOf, encode: book.encodeNow };
  const texts = fresh && payloadDigests(checkpoint, fresh);
  const ready = encodedBatches(book, keyFields, texts);
  const reads = resourceReads({
    resource,
    config,
    api,
    lanes,
    keyFields,
    personal,
    ...(fresh && { readNew: freshReader(fresh) }),
    ...(texts && { readAgain: texts.digestMatcher.read }),
    from: { firstRead, since },
    firstReadDone: () => firstRead.done,
    ...(isInferred && { pagesUnderWay: PAGES_TO_INFER_FROM + 1 }),
    sweep: () => checkpoint.sweep,
    records: checkpoint,
    ...(resyncs && { resyncs$: resyncs.requests$ }),
    scheduler,
    hooks,
  });

  /**
   * New is what was made after the first read began, or turns up after it is done and nothing that it has missed can;
   * but not what START_FROM had left out. Where nothing says when it was made, what turns up behind it is new.
   */
  const isNewSince = (createdAt: number | null): boolean => {
    const { done, startedAt, caughtUp = true } = firstRead;
    if (createdAt !== null && startFrom !== undefined && createdAt < startFrom) return false;
    if (createdAt === null) return done || options.wasEmpty;
    if (done && caughtUp) return true;
    return startedAt !== null && createdAt >= startedAt;
  };
  const images: Images = {
    get: (key) => {
      const image = checkpoint.get(key);
      return image && book.inCurrent(image);
    },
  };
  const toChanges = diff<Prepared>({
    get codec() {
      return book.values; // of the page's own time
    },
    images,
    isNew: (record) => isNewSince(instantOf(record, 'created_at')),
    newest: newestReads(reads.logicalClock),
    ...(identities && { identities }),
    volatile,
  });
  const again = resyncs && resyncEvents({ resyncs, codec: () => book.values, images, hooks });

  /** Whole readings meet what START_FROM has left out: that stays out until it changes. */
  const isWanted = (each: EncodedRecord): boolean => {
    if (startFrom === undefined || !windowed || each.isSame || checkpoint.get(each.key))
      return true;
    const updatedAt = lastUpdateOf(each);
    return updatedAt === null || updatedAt >= startFrom;
  };
  const isWhole = ({ lane, page, step }: ReadBatch) =>
    step !== undefined || (lane === 'resync' && page !== undefined);
  const prepare = (batch: EncodedBatch): Prepared => {
    const records = ready.current(batch);
    for (const each of records) {
      if (each instanceof FreshRecord) each.isNew = isNewSince(each.createdAt);
    }
    return {
      batch,
      keys: [...records.map(({ key }) => key), ...(batch.spared ?? [])],
      records: isWhole(batch) ? records.filter(isWanted) : records,
      gone: (batch.gone?.keys ?? []).filter((key) => checkpoint.isUnseen(key, batch.gone!.since)),
      span: batch.span,
    };
  };

  /** How far the sweeps have come with this page. */
  const sweepWith = ({ batch, keys }: Prepared): SweepProgress => {
    const { step, progress } = batch;
    // The first read is a complete one: the first sweep is due an interval after it.
    if (progress.firstRead?.done) return { ...checkpoint.sweep, beganAt: scheduler.now() };
    const now = scheduler.now();
    switch (step?.kind) {
      case 'page': {
        const { page, settled, beganAt } = step;
        const sweep =
          checkpoint.sweep.phase === 'reading'
            ? checkpoint.sweep
            : nextSweep(checkpoint.sweep, beganAt);
        const fresh = checkpoint.unread(keys, sweep.number);
        return sweepAfter(sweep, page, { fresh, settled, now, proofMs: config.poll.deleteProofMs });
      }
      case 'asked':
        return step.again ? checkpoint.sweep : { ...checkpoint.sweep, askedUpTo: step.key };
      case 'asked-once':
        return { ...checkpoint.sweep, askedAt: now };
      case 'end':
        return { ...checkpoint.sweep, phase: 'done' };
      default:
        return checkpoint.sweep;
    }
  };

  const transaction = async (messages: number, work: () => Promise<void>): Promise<void> => {
    const beganAt = scheduler.now();
    const ended = (outcome: Committed['outcome']) =>
      hooks.onCommitted?.({ resource, outcome, elapsedMs: scheduler.now() - beganAt, messages });
    hooks.onCommit?.({ resource });
    try {
      await work();
    } catch (error) {
      ended(isEpochError(error) ? 'fenced' : 'failed');
      throw error;
    }
    ended('committed');
  };

  const commit = async (difference: Difference<Prepared>): Promise<Published> => {
    const { read, unchanged, undecided } = difference;
    const { lane, page, progress, step, resync, rejected: others } = read.batch;
    const repeated = resync && again ? again.again(resync, difference) : [];
    const changes = [...difference.changes, ...repeated].map((change) =>
      hidingChange(change, book.values, personal),
    );
    const offset = page?.offset ?? 0;
    firstRead = progress.firstRead ?? firstRead;
    since = progress.since ?? since;
    if (firstRead.done && read.batch.catchesUp) firstRead = { ...firstRead, caughtUp: true };

    const publication = publicationOf(changes, others, {
      destination,
      book,
      origin,
      sequence,
      isNews: knownRejects(checkpoint.isRejected, volatile), // of this page: what is committed with it is known to the next
      records: read.records,
      offset,
      now: Math.round(wallClock()),
    });
    const { images, statusChanges, rejected } = publication;
    const acknowledgement =
      resync && again ? again.acknowledge(resync, publication.sequence - sequence) : [];
    const messages = [...publication.messages, ...acknowledgement];
    const removed = changes.filter(({ op }) => op === 'd').length;
    const now = scheduler.now();
    const sweep = { ...withRemoved(sweepWith(read), removed, now), keptAt: now };
    const seen = { keys: read.keys, sweep: sweep.number, bySweep: step?.kind === 'page' };
    const notes = {
      sweep,
      seen,
      texts: texts?.toKeep(difference, images) ?? NO_TEXTS,
      rejects: rejected.map((each) => rejectDigest(each, volatile)),
    };
    // Also when nothing has moved: a process that was replaced learns of it by a commit.
    const isDue = scheduler.now() - savedAt >= SAVE_EVERY_MS;
    if (messages.length > 0 || progress.firstRead || isDue) {
      ({ sequence } = publication);
      await transaction(messages.length, () =>
        checkpoint.commit({
          messages,
          images,
          cursor: { sequence, firstRead, since, keyFields },
          ...notes,
        }),
      );
      savedAt = scheduler.now();
      texts?.stored(images);
    } else if (
      step ||
      notes.texts.size > 0 ||
      read.keys.some((key) => checkpoint.isUnseen(key, sweep.number))
    ) {
      await checkpoint.keep(notes);
    }
    if (resync) again?.committed(resync);
    undecided.forEach(reads.readAgain);

    for (const each of rejected) {
      hooks.onRejected?.({ resource, reason: each.reason, offset: offsetOf(each, offset) });
    }
    if (progress.firstRead && page) {
      const { total_records: total } = page.answer.pagination;
      const read = Math.min(total, offset + page.answer.data.length);
      hooks.onProgress?.({ resource, read, total, done: progress.firstRead.done });
    }
    if (step?.kind === 'end') {
      const { number, distinct: records, proof } = sweep;
      hooks.onSwept?.({ resource, number, records, proof, canBeAsked: byKey !== undefined });
    }
    const completes =
      progress.since !== undefined || progress.firstRead?.done === true || step?.kind === 'end';
    const published = {
      resource,
      lane,
      changes,
      statusChanges,
      unchanged,
      known: checkpoint.count(),
      at: scheduler.now(),
      completes,
    };
    hooks.onPublished?.(published);
    return published;
  };

  const isEnough = (readings: readonly ReadBatch[]) => {
    const first = readings.filter(({ lane }) => lane === 'first-read');
    const done = first.some(({ progress }) => progress.firstRead?.done);
    return !isInferred || firstRead.done || done || first.length >= PAGES_TO_INFER_FROM;
  };
  /** A turn of the event loop to itself, so that a page holds up nothing else for long. */
  const atLeisure = <T>(value: T) => timer(0, scheduler).pipe(map(() => value));

  return reads.readings$.pipe(
    takeUntil(stop$),
    gatherFirst(isEnough),
    // While a page is committed the next one is made ready for it.
    concatMap((readings) => atLeisure(readings).pipe(concatMap(ready.encode), concatAll())),
    // One page after the other: each is held against the images that the one before has left.
    concatMap((batch) =>
      atLeisure(batch).pipe(
        map(prepare),
        toChanges,
        concatMap((difference) => from(commit(difference))),
        finalize(batch.settle),
      ),
    ),
  );
}

const NO_TEXTS: ReadonlyMap<string, KeptText> = new Map();

/** A batch, and what it comes to beside what is stored. */
interface Prepared extends ReadRecords {
  readonly batch: ReadBatch;
  /** Of all its records, and those that count as seen. */
  readonly keys: readonly string[];
}
