import { map, pipe } from 'rxjs';
import type { OperatorFunction } from 'rxjs';
import { pointerNames, valueAt } from '../schemas/json/json.ts';
import type { ListDescription } from '../description/description.ts';
import { diff } from '../streams/diff/diff.ts';
import type { Difference, DiffOptions, ReadRecords } from '../streams/diff/diff.ts';
import { NewestReads } from '../streams/diff/newest.ts';
import type { LogicalClock } from '../streams/http/logical-clock.ts';
import type { ImageCodec, KeyedRecord, PageRun } from '../streams/records/page-record.ts';
import type { PersonalFields } from '../streams/records/personal-fields.ts';
import type { StoreReads } from './checkpoint/checkpoint.ts';
import type { InitialSnapshot } from './checkpoint/cursor.ts';
import type { SchemaEvolution } from './codec/schema-evolution.ts';
import { mayPrecedeStartFrom } from './reads/read-batch.ts';
import type { ReadBatch } from './reads/read-batch.ts';
import type { Task } from './task.ts';

/** A batch, prepared for the comparison of its records with the published images. */
export interface ComparedBatch extends ReadRecords {
  readonly batch: ReadBatch;
  /**
   * Keys of the batch's records, except the records in `runs`. Also keys that no page showed, but that count as seen in a sweep because
   * their records may exist.
   */
  readonly keys: readonly string[];
  /**
   * Groups of adjacent records (runs) of the page that equal the published images, recognized by a digest of their bytes. Empty in a
   * resync.
   */
  readonly runs: readonly PageRun[];
  /** Keys of the records that are not published: `START_FROM` leaves them out, or the list shows them as deleted. */
  readonly leftOut: readonly string[];
}

export interface CompareOptions extends Required<
  Pick<DiffOptions, 'images' | 'stamps' | 'confirmations' | 'volatile'>
> {
  readonly task: Pick<Task, 'list' | 'config'>;
  readonly store: Pick<StoreReads, 'get' | 'payloadDigest' | 'run' | 'isUnseen'>;
  readonly evolution: Pick<SchemaEvolution, 'values'>;
  readonly clock: LogicalClock;
  readonly personal: PersonalFields | undefined;
  readonly snapshot: () => InitialSnapshot;
  /** Whether the first response of the list had no records. A record without a creation time then counts as new. */
  readonly wasEmpty: boolean;
}

/**
 * Compares the records of each batch with the published images. The images are encoded with the current schema, and include the changes of
 * the previous batch.
 */
export function compareBatches(
  options: CompareOptions,
): OperatorFunction<ReadBatch, Difference<ComparedBatch>> {
  const { task, store, evolution, images, stamps, clock, volatile, snapshot, wasEmpty } = options;
  const { confirmations, personal } = options;
  const { arrays, dates, deleted } = task.list;
  const { startFrom } = task.config.poll;
  const isTombstone = deleted && tombstoneTest(deleted);

  /**
   * Whether a record without a published image is published as new (event `c`). If false, it is published as older than the initial
   * snapshot (event `r`).
   */
  const isNew = ({ createdAt }: KeyedRecord): boolean => {
    const { done, startedAt, caughtUp, publishedUpTo = -Infinity } = snapshot();
    // An API that caps its list may show old records at any time.
    if (createdAt !== null && startFrom !== undefined && createdAt < startFrom) return false;
    if (createdAt === null) return done || wasEmpty;
    if (createdAt <= publishedUpTo) return false;
    if (done && caughtUp) return true;
    return startedAt !== null && createdAt >= startedAt;
  };
  /** Removes the records without a published image that were last modified before `START_FROM`. Removes none from a list without dates. */
  const wantedOf = (records: readonly KeyedRecord[]): readonly KeyedRecord[] =>
    startFrom === undefined || !dates
      ? records
      : records.filter(({ key, image, updatedAt }) => {
          if (image?.kind === 'published' || store.get(key)) return true;
          return updatedAt === null || updatedAt >= startFrom;
        });
  /** Whether the image that a record got when its page was decoded can still be used. */
  const isCurrent = (record: KeyedRecord, codec: ImageCodec) => {
    const { key, image, run } = record;
    if (run) return false; // a member of a run that is not treated as a unit: compared individually
    // A published image may have been replaced since, and the schema of an encoded one may have changed.
    return image?.kind === 'published'
      ? store.payloadDigest(key)?.digest === record.digest?.digest
      : image?.codec === codec;
  };
  const membersOf = (runs: readonly PageRun[]) =>
    runs.flatMap((run) => run.records() as readonly KeyedRecord[]);
  const compared = (batch: ReadBatch): ComparedBatch => {
    const codec = evolution.values;
    const live = batch.runs.filter(({ run }) => store.run(run.id) !== undefined);
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
    // A record that was recognized as equal to its published image was not shown as deleted when it was published. A resync tests it all
    // the same: the API's description may have had no `deleted` at that time.
    const isTested = ({ image }: KeyedRecord) => isApart || image?.kind !== 'published';
    const tombstones = isTombstone
      ? records.filter((each) => isTested(each) && isTombstone(each))
      : [];
    const tombstoneSet = new Set(tombstones);
    const shown =
      tombstones.length > 0 ? records.filter((each) => !tombstoneSet.has(each)) : records;
    const wanted = mayPrecedeStartFrom(batch) ? wantedOf(shown) : shown;
    const wantedSet = wanted.length < records.length && new Set(wanted);
    return {
      batch,
      keys: [...records.map(({ key }) => key), ...presumedSeen],
      runs,
      leftOut: wantedSet
        ? records.filter((each) => !wantedSet.has(each)).map(({ key }) => key)
        : [],
      records: wanted,
      gone: absent ? absent.keys.filter((key) => store.isUnseen(key, absent.since)) : [],
      tombstones,
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
      newest: new NewestReads(clock),
      confirmations,
      hideStored: personal?.hideStored,
      stamps,
      identities: arrays,
      volatile,
    }),
  );
}

/**
 * Returns a function that tells whether the list shows a record as deleted, which means that its value at the JSON Pointer `at` equals
 * `is`.
 */
function tombstoneTest({ at, is }: NonNullable<ListDescription['deleted']>) {
  const path = pointerNames(at);
  return ({ json }: KeyedRecord): boolean => valueAt(json, path) === is;
}
