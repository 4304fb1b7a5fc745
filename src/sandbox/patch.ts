import type { JsonObject, JsonValue } from './resources.ts';

/** What becomes of a record: fields to set, or a function that alters it or returns another. */
export type Patch = JsonObject | ((record: JsonObject) => JsonValue | void);

/** The record after the patch, which may have altered the one before. */
export function patched(record: JsonObject, patch: Patch): JsonValue {
  return typeof patch === 'function' ? (patch(record) ?? record) : { ...record, ...patch };
}
