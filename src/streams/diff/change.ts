import type { Op } from '../../schemas/events/envelope.ts';
import type { JsonObject } from '../../schemas/json/json.ts';
import type { ImageCodec } from '../records/image-codec.ts';
import { changedPaths } from './changed-paths.ts';
import type { Identities } from './identity.ts';

/** What happened to a record; the letters are Debezium's: initial snapshot, created, updated, deleted. */
export type Operation = Op;

/** A record that differs from the last published image of its key. */
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
 * A change by its images, decoded when somebody looks into them: nobody does for most of an initial snapshot.
 * Both sides go through the codec: what it holds to be equal is no difference between them, and a time
 * that tells two elements apart is the same text on both.
 */
export function changeOf(
  { key, op, images, updatedAt }: Pick<Change, 'key' | 'op' | 'images' | 'updatedAt'>,
  decode: ImageCodec['decode'],
  identities?: Identities,
): Change {
  let before: JsonObject | null | undefined;
  let after: JsonObject | null | undefined;
  let changed: readonly string[] | undefined;
  return {
    key,
    op,
    get before() {
      return (before ??= images.before && decode(images.before));
    },
    get after() {
      return (after ??= images.after && decode(images.after));
    },
    images,
    get changed() {
      return (changed ??= op === 'u' ? changedPaths(this.before!, this.after!, identities) : []);
    },
    updatedAt,
  };
}
