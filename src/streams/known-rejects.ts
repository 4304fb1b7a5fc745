import { createHash } from 'node:crypto';
import { canonicalJson } from '../schemas/json.ts';
import type { RejectedRecord } from './records.ts';
import type { VolatileFields } from './volatile-fields.ts';

/** Whether a reject is news. */
export type KnownRejects = (record: RejectedRecord) => boolean;

/**
 * True for a reject that is not among the newest `most` (default 10,000), nor among those of the
 * `known` digests: the same bad record is not reported again at every read. Its content counts: one
 * that has changed is news.
 */
export function knownRejects(
  known: readonly string[] = [],
  most = 10_000,
  volatile?: VolatileFields,
): KnownRejects {
  const digests = new Set<string>(known); // the oldest first
  return (record) => {
    const digest = rejectDigest(record, volatile);
    const news = !digests.delete(digest);
    digests.add(digest);
    if (digests.size > most) digests.delete(digests.values().next().value!);
    return news;
  };
}

/** What tells rejects apart; volatile fields do not. */
export function rejectDigest({ reason, raw }: RejectedRecord, volatile?: VolatileFields): string {
  return createHash('sha256')
    .update(`${reason} ${canonicalJson(volatile ? volatile.without(raw) : raw)}`)
    .digest('base64url');
}
