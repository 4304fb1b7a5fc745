import type { JsonObject, JsonValue } from '../../src/schemas/json/json.ts';
import type { KeyOf } from '../../src/streams/records/key-of.ts';
import { PageRecord } from '../../src/streams/records/page-record.ts';
import type { KeyedRecord, RecordFacts } from '../../src/streams/records/page-record.ts';

/** Records of a page, parsed. Without `keyOf` none has a key. */
export function records(
  data: readonly JsonValue[],
  keyOf: KeyOf = () => undefined,
): readonly PageRecord[] {
  return data.map((json) => PageRecord.ofJson(json, { key: keyOf(json) }));
}

/** What was sent, of each record. */
export function jsonsOf(data: readonly PageRecord[]): readonly JsonValue[] {
  return data.map(({ json }) => json);
}

/** A record that can be published. */
export function keyedRecord(key: string, json: JsonObject, facts: RecordFacts = {}): KeyedRecord {
  return PageRecord.ofJson(json, { ...facts, key }) as KeyedRecord;
}
