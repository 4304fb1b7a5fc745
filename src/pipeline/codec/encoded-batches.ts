import type { KeyedRecord } from '../../streams/records/page-record.ts';
import type { ReadBatch } from '../reads/read-batch.ts';
import type { SchemaEvolution } from './schema-evolution.ts';

/**
 * Returns a function that encodes each record of its batches that has no image (encoded record) yet; the decoder has encoded most already.
 * If such a record has new fields, the function first registers a schema with them. It is called while the previous batch is being
 * committed.
 */
export function encodedBatches(
  evolution: Pick<SchemaEvolution, 'encode' | 'values'>,
  keyFields: readonly string[],
): (batches: readonly ReadBatch[]) => Promise<readonly ReadBatch[]> {
  return async (batches) => {
    const parsed = batches.flatMap(({ keyed }) => keyed.filter(({ image }) => !image));
    if (parsed.length === 0) return batches;
    const records = parsed.map(({ json }) => json);
    const images = await evolution.encode(records, keyFields);
    const { values: codec } = evolution;
    let next = 0;
    const withImage = (each: KeyedRecord): KeyedRecord =>
      each.image ? each : each.withImage({ kind: 'encoded', bytes: images[next++]!, codec });
    return batches.map((batch) => ({ ...batch, keyed: batch.keyed.map(withImage) }));
  };
}
