import type { Reading } from './reading.ts';
import type { SchemaBook } from './schema-book.ts';
import type { SentTexts } from './sent-texts.ts';
import type { ImageCodec } from './streams/change.ts';
import type { EncodedRecord } from './streams/diff.ts';
import { KnownRecord } from './streams/known-record.ts';
import type { KeyedRecord } from './streams/records.ts';

/** A reading whose records are encoded, but for those that are known. */
export interface EncodedReading extends Reading {
  readonly records: readonly EncodedRecord[];
  /** What has encoded them: a schema that has grown since makes other bytes of them. */
  readonly values: ImageCodec;
}

/** Readings made ready for their turn, while the commit of the one before them goes on. */
export interface EncodedReadings {
  /** With the bytes of their records, in a schema that has a field for whatever these hold. */
  readonly encode: (readings: readonly Reading[]) => Promise<readonly EncodedReading[]>;
  /**
   * The records of a reading as they have to be compared, now that its turn has come: by then one may no
   * longer be as it was known, or the schema may have grown.
   */
  readonly current: (reading: EncodedReading) => readonly EncodedRecord[];
}

export function encodedReadings(
  book: SchemaBook,
  keyFields: readonly string[],
  texts: Pick<SentTexts, 'isStillKnown'> | undefined,
): EncodedReadings {
  return {
    encode: async (readings) => {
      const unknown = readings.flatMap(({ records }) => records.filter((each) => !isKnown(each)));
      const records = unknown.map(({ record }) => record);
      const images = await book.encode(records, keyFields);
      const { values } = book;
      let next = 0;
      const withImage = (each: KeyedRecord): EncodedRecord =>
        isKnown(each) ? each : { key: each.key, record: each.record, image: images[next++]! };
      return readings.map((reading) => ({ ...reading, records: reading.records.map(withImage), values })); // prettier-ignore
    },
    current: ({ records, values }) =>
      records.map((each) => {
        const isCurrent = isKnown(each) ? texts!.isStillKnown(each) : values === book.values;
        if (isCurrent) return each;
        return { key: each.key, record: each.record, image: book.values.encode(each.record) };
      }),
  };
}

const isKnown = (each: KeyedRecord): each is KnownRecord => each instanceof KnownRecord;
