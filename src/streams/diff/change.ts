// A record's change, and how personal fields are hidden in it.

import type { Op } from '../../schemas/events/envelope.ts';
import type { JsonObject } from '../../schemas/json/json.ts';
import type { ImageCodec } from '../records/page-record.ts';
import type { PersonalFields } from '../records/personal-fields.ts';

/** Kind of a record's change, as in Debezium: `r` read in an initial snapshot, `c` created, `u` updated, `d` deleted. */
export type Operation = Op;

/**
 * A change of a record with respect to its published image. In the changes that `diff` emits, `before`, `after`, `changed` and
 * `updatedBefore` are getters of a class, so `{ ...change }` does not copy them.
 */
export interface Change {
  readonly key: string;
  readonly op: Operation;
  /** The record as last published; null if it is not published. */
  readonly before: JsonObject | null;
  /** The record's new content; null if the record is deleted. */
  readonly after: JsonObject | null;
  /** `before` and `after`, encoded by the image codec (in the service: as Avro without a header). Each is null if that record is null. */
  readonly images: { readonly before: Buffer | null; readonly after: Buffer | null };
  /** Paths of the fields that differ between `before` and `after`; empty unless `op` is `u`. */
  readonly changed: readonly string[];
  /** The record's modification time in epoch ms; null if it has none or is deleted. */
  readonly updatedAt: number | null;
  /** Modification time of `before` in epoch ms; null if it has none. Default: null. */
  readonly updatedBefore?: number | null;
}

/**
 * Hides the personal fields in `before` and `after` of a change. An image that was stored before a field was configured as personal still
 * contains that field.
 */
export function withHiddenFields(
  change: Change,
  codec: ImageCodec,
  personal?: PersonalFields,
): Change {
  if (!personal) return change;
  const shownOf = (record: JsonObject | null, image: Buffer | null) => {
    if (record === null) return [record, image] as const;
    const shown = personal.hideStored(record);
    return [shown, shown === record ? image : codec.encode(shown)] as const;
  };
  const [before, imageBefore] = shownOf(change.before, change.images.before);
  const [after, imageAfter] = shownOf(change.after, change.images.after);
  const { key, op, changed, updatedAt, updatedBefore = null } = change;
  const images = { before: imageBefore, after: imageAfter };
  return { key, op, changed, updatedAt, updatedBefore, before, after, images };
}
