import { map, pipe } from 'rxjs';
import type { OperatorFunction } from 'rxjs';
import { diff } from '../streams/diff/diff.ts';
import type { Difference, Images, ReadRecords } from '../streams/diff/diff.ts';
import { newestReads } from '../streams/diff/newest.ts';
import type { Confirmations } from '../streams/diff/confirmations.ts';
import type { LogicalClock } from '../streams/http/logical-clock.ts';
import type { ImageCodec, KeyedRecord } from '../streams/records/page-record.ts';
import type { PageRun } from '../streams/records/page-records.ts';
import type { PersonalFields } from '../streams/records/personal-fields.ts';
import type { VolatileFields } from '../streams/records/volatile-fields.ts';
import type { StoreReads } from './checkpoint/checkpoint.ts';
import type { InitialSnapshot } from './checkpoint/cursor.ts';
import type { SchemaEvolution } from './codec/schema-evolution.ts';
import { mayPrecedeStartFrom } from './reads/read-batch.ts';
import type { ReadBatch } from './reads/read-batch.ts';
import type { Task } from './task.ts';

/** A batch, and the records of it that are compared with the published images. */
export interface ComparedBatch extends ReadRecords {
  readonly batch: ReadBatch;
  /** Keys of the records that are processed one by one, and the keys that the batch presumes seen. */
  readonly keys: readonly string[];
  /** Runs (groups of adjacent records) recognized on the page: their records equal the published images without a comparison. */
  readonly runs: readonly PageRun[];
  /** Keys of the records that `START_FROM` leaves out. */
  readonly beforeStartFrom: readonly string[];
}

export interface CompareOptions {
  readonly task: Pick<Task, 'rules' | 'config'>;
  readonly store: Pick<StoreReads, 'get' | 'payloadDigest' | 'run' | 'isUnseen'>;
  readonly evolution: Pick<SchemaEvolution, 'values'>;
  /** The last published images, in the current schema. */
  readonly images: Images;
  readonly clock: LogicalClock;
  readonly confirmations: Confirmations;
  readonly volatile: VolatileFields | undefined;
  readonly personal: PersonalFields | undefined;
  readonly snapshot: () => InitialSnapshot;
  /** Whether the first response of the list had no records: every record read later is new. */
  readonly wasEmpty: boolean;
}

/** Compares each batch of records with the published images, as the previous batch has left them. */
export function compareBatches(
  options: CompareOptions,
): OperatorFunction<ReadBatch, Difference<ComparedBatch>> {
  const { task, store, evolution, images, clock, volatile, snapshot, wasEmpty } = options;
  const { confirmations, personal } = options;
  const { identities, windowed } = task.rules;
  const { startFrom } = task.config.poll;

  /**
   * Whether a record without an image is new (`c`) rather than old (`r`). It is new if it was created after the initial snapshot began, and
   * always once every record that the snapshot may have missed has been read (`caughtUp`). A record created before `START_FROM` is old. So
   * is, after a loss of events, one created no later than the newest stamp published before the loss (`publishedUpTo`): an API that caps
   * its list may show such a record again at any time. A record without `created_at` is new once the snapshot is done, or if the list was
   * empty at first.
   */
  const isNew = ({ createdAt }: KeyedRecord): boolean => {
    const { done, startedAt, caughtUp, publishedUpTo = -Infinity } = snapshot();
    if (createdAt !== null && startFrom !== undefined && createdAt < startFrom) return false;
    if (createdAt === null) return done || wasEmpty;
    if (createdAt <= publishedUpTo) return false;
    if (done && caughtUp) return true;
    return startedAt !== null && createdAt >= startedAt;
  };
  /**
   * Removes the records that `START_FROM` leaves out: those that are not published and were last modified before that time. Scans without
   * dates, or of a wide window, return such records.
   */
  const wantedOf = (records: readonly KeyedRecord[]): readonly KeyedRecord[] =>
    startFrom === undefined || !windowed
      ? records
      : records.filter(({ key, image, updatedAt }) => {
          if (image?.kind === 'published' || store.get(key)) return true;
          return updatedAt === null || updatedAt >= startFrom;
        });
  /** Whether the image that the decoder gave a record is still valid: the schema may have grown, or another image been stored since. */
  const isCurrent = (record: KeyedRecord, codec: ImageCodec) => {
    const { key, image, run } = record;
    if (run) return false; // a member of a run that is not treated as a unit: compared individually
    return image?.kind === 'published'
      ? store.payloadDigest(key)?.digest === record.digest?.digest
      : image?.codec === codec;
  };
  const isLive = ({ run }: PageRun) => store.run(run.id) !== undefined;
  const membersOf = (runs: readonly PageRun[]) =>
    runs.flatMap((run) => run.records() as readonly KeyedRecord[]);
  const compared = (batch: ReadBatch): ComparedBatch => {
    const codec = evolution.values;
    const live = batch.runs.filter(isLive);
    // A run may have been retired since the page was decoded: its members are compared one by one.
    const retired = batch.runs.filter((run) => !live.includes(run));
    const compare = [...batch.keyed, ...membersOf(retired)].map((each) =>
      isCurrent(each, codec) ? each : each.withImage(undefined),
    );
    // A resync publishes every record again, so it processes them one by one.
    const isApart = batch.lane === 'resync';
    const records = isApart ? [...compare, ...membersOf(live)] : compare;
    const runs = isApart ? [] : live;
    const { presumedSeen = [], absent } = batch.lane === 'sweep' ? batch : {};
    const wanted = mayPrecedeStartFrom(batch) ? wantedOf(records) : records;
    const wantedSet = wanted.length < records.length && new Set(wanted);
    return {
      batch,
      keys: [...records.map(({ key }) => key), ...presumedSeen],
      runs,
      beforeStartFrom: wantedSet
        ? records.filter((each) => !wantedSet.has(each)).map(({ key }) => key)
        : [],
      records: wanted,
      gone: absent ? absent.keys.filter((key) => store.isUnseen(key, absent.since)) : [],
      span: batch.span,
      age: batch.age,
    };
  };
  return pipe(
    map(compared),
    diff({
      get codec() {
        return evolution.values; // the codec that is current when the page is compared
      },
      images,
      isNew,
      newest: newestReads(clock),
      confirmations,
      hideStored: personal?.hideStored,
      ...(identities && { identities }),
      volatile,
    }),
  );
}
