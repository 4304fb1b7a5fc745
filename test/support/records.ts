import type { JsonObject, JsonValue } from '../../src/schemas/json/json.ts';
import type { KeyOf } from '../../src/streams/records/key-of.ts';
import { PageRecord } from '../../src/streams/records/page-record.ts';
import type { KeyedRecord, RecordFacts } from '../../src/streams/records/page-record.ts';
import { Stamps } from '../../src/streams/records/stamps.ts';

/** Reads the stamps of the wine API's records. */
export const WINE_STAMPS = new Stamps({ updated: ['updated_at'], created: 'created_at' });

/** Records of a page, parsed. Without `keyOf` none has a key. */
export function records(
  data: readonly JsonValue[],
  keyOf: KeyOf = () => undefined,
): readonly PageRecord[] {
  return data.map((json) => PageRecord.ofJson(json, { key: keyOf(json), stamps: WINE_STAMPS }));
}

/** What was sent, of each record. */
export function jsonsOf(data: readonly PageRecord[]): readonly JsonValue[] {
  return data.map(({ json }) => json);
}

/** A record that can be published. */
export function keyedRecord(key: string, json: JsonObject, facts: RecordFacts = {}): KeyedRecord {
  return PageRecord.ofJson(json, { stamps: WINE_STAMPS, ...facts, key }) as KeyedRecord;
}
