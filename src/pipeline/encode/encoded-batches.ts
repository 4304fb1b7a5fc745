import type { ReadBatch } from '../reads/read-batch.ts';
import type { SchemaEvolution } from './schema-evolution.ts';
import type { PayloadDigests } from './payload-digests.ts';
import type { ImageCodec } from '../../streams/diff/change.ts';
import type { EncodedRecord } from '../../streams/diff/diff.ts';
import { FreshRecord } from '../../streams/records/fresh-record.ts';
import { KnownRecord } from '../../streams/records/known-record.ts';
import type { KeyedRecord } from '../../streams/records/records.ts';
import { SentRecord } from '../../streams/records/sent-record.ts';

/** A reading whose records are encoded, but for those that are known without. */
export interface EncodedBatch extends ReadBatch {
  readonly records: readonly EncodedRecord[];
  /**
   * What has encoded those that were not encoded as they arrived: a schema that has grown since makes
   * other bytes of them.
   */
  readonly values: ImageCodec;
}

/** Readings made ready for their turn, while the commit of the one before them goes on. */
export interface EncodedBatches {
  /** With the bytes of their records, in a schema that has a field for whatever these hold. */
  readonly encode: (readings: readonly ReadBatch[]) => Promise<readonly EncodedBatch[]>;
  /**
   * The records of a reading as they have to be compared, now that its turn has come: by then one may no
   * longer be as it was known, or the schema may have grown.
   */
  readonly current: (reading: EncodedBatch) => readonly EncodedRecord[];
}

export function encodedBatches(
  book: SchemaEvolution,
  keyFields: readonly string[],
  texts: Pick<PayloadDigests, 'isStillKnown'> | undefined,
): EncodedBatches {
  return {
    encode: async (readings) => {
      const parsed = readings.flatMap(({ records }) => records.filter((each) => !isSent(each)));
      const records = parsed.map(({ record }) => record);
      const images = await book.encode(records, keyFields);
      const { values } = book;
      let next = 0;
      const withImage = (each: KeyedRecord): EncodedRecord =>
        isSent(each) ? each : { key: each.key, record: each.record, image: images[next++]! };
      return readings.map((reading) => ({
        ...reading,
        records: reading.records.map(withImage),
        values,
      }));
    },
    current: ({ records, values }) => {
      const isCurrent = (each: EncodedRecord): boolean => {
        if (each instanceof KnownRecord) return texts!.isStillKnown(each);
        return (each instanceof FreshRecord ? each.values : values) === book.values;
      };
      return records.map((each) => {
        if (isCurrent(each)) return each;
        return { key: each.key, record: each.record, image: book.values.encode(each.record) };
      });
    },
  };
}

/** It came as an image, or is known to be like its image. */
const isSent = (each: KeyedRecord): boolean => each instanceof SentRecord;
