import { createHash } from 'node:crypto';
import { canonicalJson } from '../../schemas/json/json.ts';
import type { RejectedRecord } from './records.ts';
import type { VolatileFields } from './volatile-fields.ts';

/** Whether a reject is news. */
export type KnownRejects = (record: RejectedRecord) => boolean;

/**
 * True for a reject of a page that is told for the first time: it is none of those that `isKnown` by their digests,
 * nor came before on its page. So the same bad record is not reported again at every read. Its content counts: one
 * that has changed is news.
 */
export function knownRejects(
  isKnown: (digest: string) => boolean = () => false,
  volatile?: VolatileFields,
): KnownRejects {
  const told = new Set<string>();
  return (record) => {
    const digest = rejectDigest(record, volatile);
    if (told.has(digest) || isKnown(digest)) return false;
    told.add(digest);
    return true;
  };
}

const DIGEST_BYTES = 16;

/** What tells rejects apart, volatile fields not among it: 16 bytes, as `latin1`. */
export function rejectDigest({ reason, raw }: RejectedRecord, volatile?: VolatileFields): string {
  return createHash('sha256')
    .update(`${reason} ${canonicalJson(volatile ? volatile.without(raw) : raw)}`)
    .digest()
    .toString('latin1', 0, DIGEST_BYTES);
}
