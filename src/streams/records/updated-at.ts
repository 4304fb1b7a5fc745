import { dateDays, utcMillis, zonedMillis } from '../../schemas/avro/instant.ts';
import type { JsonObject } from '../../schemas/json/json.ts';

const DAY_MS = 86_400_000;

/**
 * A field read as an instant, ISO 8601: ms since the epoch, or null when it is not one. Without a
 * zone it is UTC, as in the schemas (`Date.parse` would take the machine's own).
 */
export function instantOf(record: JsonObject, field: string): number | null {
  const value = Object.hasOwn(record, field) ? record[field] : undefined;
  if (typeof value !== 'string') return null;
  if (value.length === 10) return instant(dateDays(value) * DAY_MS);
  return instant(utcMillis(value)) ?? instant(zonedMillis(value));
}

/** A record's `updated_at` in ms since the epoch, or null. */
export function updatedAtOf(record: JsonObject): number | null {
  return instantOf(record, 'updated_at');
}

function instant(ms: number): number | null {
  return Number.isNaN(ms) ? null : ms;
}
