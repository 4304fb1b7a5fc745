// A change of a record, and the same with personal fields hidden.

import type { Op } from '../../schemas/events/envelope.ts';
import type { JsonObject } from '../../schemas/json/json.ts';
import type { ImageCodec } from '../records/page-record.ts';
import type { PersonalFields } from '../records/personal-fields.ts';

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

/**
 * A change as it may be published: what was stored before these fields were to be hidden shows in
 * `before`, and in both images of what is published again.
 */
export function hidingChange(change: Change, codec: ImageCodec, personal?: PersonalFields): Change {
  if (!personal) return change;
  const shownOf = (record: JsonObject | null, image: Buffer | null) => {
    if (record === null) return [record, image] as const;
    const shown = personal.hideStored(record);
    return [shown, shown === record ? image : codec.encode(shown)] as const;
  };
  const [before, imageBefore] = shownOf(change.before, change.images.before);
  const [after, imageAfter] = shownOf(change.after, change.images.after);
  const { key, op, changed, updatedAt } = change;
  const images = { before: imageBefore, after: imageAfter };
  return { key, op, changed, updatedAt, before, after, images };
}
