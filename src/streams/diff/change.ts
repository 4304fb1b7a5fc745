import type { Op } from '../../schemas/events/envelope.ts';
import type { JsonObject } from '../../schemas/json/json.ts';

/** What happened to a record; the letters are Debezium's: initial snapshot, created, updated, deleted. */
export type Operation = Op;

/**
 * A record that differs from the last published image of its key. `before`, `after` and `changed` are worked out when somebody
 * asks for them. Those of `diff` are getters of a class: `JSON.stringify` has them, and `{ ...change }` has not.
 */
export interface Change {
  readonly key: string;
  readonly op: Operation;
  /** As the codec gives them back. */
  readonly before: JsonObject | null;
  readonly after: JsonObject | null;
  /** `before` and `after` as the codec encodes them. */
  readonly images: { readonly before: Buffer | null; readonly after: Buffer | null };
  /** The paths that differ; empty unless `op` is `u`. */
  readonly changed: readonly string[];
  /** The record's `updated_at` in ms since the epoch; null when it has none. */
  readonly updatedAt: number | null;
}
