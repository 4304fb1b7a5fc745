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
import type { Checkpoint } from './checkpoint/checkpoint.ts';
import type { InitialSnapshot } from './checkpoint/cursor.ts';
import type { SchemaEvolution } from './codec/schema-evolution.ts';
import { isUnbounded } from './reads/read-batch.ts';
import type { ReadBatch } from './reads/read-batch.ts';
import type { Task } from './task.ts';

/** A batch whose turn has come, and what of it is compared. */
export interface ComparedBatch extends ReadRecords {
  readonly batch: ReadBatch;
  /** Of records that are looked at one by one, and those that count as seen. */
  readonly keys: readonly string[];
  /** What all its other records were known again with. */
  readonly runs: readonly PageRun[];
  /** Those that START_FROM leaves out. */
  readonly leftOut: readonly string[];
}

export interface ComparingOptions {
  readonly task: Pick<Task, 'rules' | 'config'>;
  readonly checkpoint: Pick<Checkpoint, 'get' | 'text' | 'run' | 'isUnseen'>;
  readonly evolution: Pick<SchemaEvolution, 'values'>;
  /** The last published images, in the current schema. */
  readonly images: Images;
  readonly clock: LogicalClock;
  /** Recent events of this process, and the sightings of earlier states that wait for a second read. */
  readonly confirmations: Confirmations;
  readonly volatile: VolatileFields | undefined;
  readonly personal: PersonalFields | undefined;
  /** The initial snapshot as it is known now. */
  readonly snapshot: () => InitialSnapshot;
  /** Whether the list was empty when it was first looked at: all that is in it now is new. */
  readonly wasEmpty: boolean;
}

/** Holds each batch against the images that the one before has left. */
export function comparing(
  options: ComparingOptions,
): OperatorFunction<ReadBatch, Difference<ComparedBatch>> {
  const { task, checkpoint, evolution, images, clock, volatile, snapshot, wasEmpty } = options;
  const { confirmations, personal } = options;
  const { identities, windowed } = task.rules;
  const { startFrom } = task.config.poll;

  /**
   * Whether a record whose key is not known is new (`c`) or old (`r`). It is new if it was made after the initial snapshot began.
   * Once the snapshot is done and all that it may have missed has turned up (`caughtUp`), every such record is new. After a loss of events a
   * record is never new if it was created by the newest stamp published before the loss (`publishedUpTo`): an API that cuts its list
   * off may show it again at any time. A record that START_FROM had left out is old. A record that does not say when it was made is new once the
   * snapshot is done, or where the list was empty when it was first looked at.
   */
  const isNew = ({ createdAt }: KeyedRecord): boolean => {
    const { done, startedAt, caughtUp = true, publishedUpTo = -Infinity } = snapshot();
    if (createdAt !== null && startFrom !== undefined && createdAt < startFrom) return false;
    if (createdAt === null) return done || wasEmpty;
    if (createdAt <= publishedUpTo) return false;
    if (done && caughtUp) return true;
    return startedAt !== null && createdAt >= startedAt;
  };
  /** Readings without dates, or with a wide window, meet what START_FROM leaves out: that stays out until it changes. */
  const wantedOf = (records: readonly KeyedRecord[]): readonly KeyedRecord[] =>
    startFrom === undefined || !windowed
      ? records
      : records.filter(({ key, image, updatedAt }) => {
          if (image?.kind === 'published' || checkpoint.get(key)) return true;
          return updatedAt === null || updatedAt >= startFrom;
        });
  /** Since it was given its image the schema may have grown, or the image may have become one of other bytes. */
  const isCurrent = (record: KeyedRecord, codec: ImageCodec) => {
    const { key, image, run } = record;
    if (run) return false; // it has left it, or stands beside another one of its key
    return image?.kind === 'published'
      ? checkpoint.text(key)?.digest === record.digest?.digest
      : image?.codec === codec;
  };
  const isLive = ({ run }: PageRun) => checkpoint.run(run.id) !== undefined;
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
    // What is published again is looked at one by one.
    const isApart = batch.lane === 'resync';
    const records = isApart ? [...compare, ...membersOf(live)] : compare;
    const runs = isApart ? [] : live;
    const { spared = [], gone } = batch.lane === 'sweep' ? batch : {};
    const wanted = isUnbounded(batch) ? wantedOf(records) : records;
    const kept = wanted.length < records.length && new Set(wanted);
    return {
      batch,
      keys: [...records.map(({ key }) => key), ...spared],
      runs,
      leftOut: kept ? records.filter((each) => !kept.has(each)).map(({ key }) => key) : [],
      records: wanted,
      gone: gone ? gone.keys.filter((key) => checkpoint.isUnseen(key, gone.since)) : [],
      span: batch.span,
      age: batch.age,
    };
  };
  return pipe(
    map(compared),
    diff({
      get codec() {
        return evolution.values; // of the page's own time
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
