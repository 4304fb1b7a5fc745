import type { KeyedRecord } from '../../streams/records/page-record.ts';
import type { ReadBatch } from '../reads/read-batch.ts';
import type { PayloadDigests } from './payload-digests.ts';
import type { SchemaEvolution } from './schema-evolution.ts';

/** Batches made ready for their turn, while the commit of the one before them goes on. */
export interface EncodedBatches {
  /** With images of all their records, in a schema that has a field for whatever these hold. */
  readonly encode: (batches: readonly ReadBatch[]) => Promise<readonly ReadBatch[]>;
  /**
   * The records of a batch as they have to be compared, now that its turn has come: by then one may no
   * longer be as it was known, or the schema may have grown.
   */
  readonly current: (batch: ReadBatch) => readonly KeyedRecord[];
}

export function encodedBatches(
  evolution: Pick<SchemaEvolution, 'encode' | 'values'>,
  keyFields: readonly string[],
  { isStillKnown }: Pick<PayloadDigests, 'isStillKnown'>,
): EncodedBatches {
  return {
    encode: async (batches) => {
      const parsed = batches.flatMap(({ keyed }) => keyed.filter(({ image }) => !image));
      const records = parsed.map(({ json }) => json);
      const images = await evolution.encode(records, keyFields);
      const { values: codec } = evolution;
      let next = 0;
      const withImage = (each: KeyedRecord): KeyedRecord =>
        each.image ? each : each.withImage({ kind: 'encoded', bytes: images[next++]!, codec });
      return batches.map((batch) => ({ ...batch, keyed: batch.keyed.map(withImage) }));
    },
    current: ({ keyed }) => {
      const { values: codec } = evolution;
      const isCurrent = (each: KeyedRecord): boolean =>
        each.image?.kind === 'encoded' ? each.image.codec === codec : isStillKnown(each);
      return keyed.map((each) =>
        isCurrent(each)
          ? each
          : each.withImage({ kind: 'encoded', bytes: codec.encode(each.json), codec }),
      );
    },
  };
}
