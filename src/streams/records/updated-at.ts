import { instantOf } from '../../schemas/avro/instant.ts';
import type { JsonObject } from '../../schemas/json/json.ts';

/** A record's `updated_at` in ms since the epoch, or null. */
export function updatedAtOf(record: JsonObject): number | null {
  return instantOf(record, 'updated_at');
}
