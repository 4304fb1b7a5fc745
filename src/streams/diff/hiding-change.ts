import type { JsonObject } from '../../schemas/json/json.ts';
import type { Change } from './change.ts';
import type { ImageCodec } from '../records/image-codec.ts';
import type { PersonalFields } from '../records/personal-fields.ts';

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
