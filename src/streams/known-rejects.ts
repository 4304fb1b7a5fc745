import { createHash } from 'node:crypto';
import { canonicalJson } from '../schemas/json.ts';
import type { RejectedRecord } from './records.ts';

/** Whether a reject is news. */
export type KnownRejects = (record: RejectedRecord) => boolean;

/**
 * True for a reject that is not among the newest `most` (default 10,000), nor among those of the
 * `known` digests: the same bad record is not reported again at every read. Its content counts: one
 * that has changed is news.
 */
export function knownRejects(known: readonly string[] = [], most = 10_000): KnownRejects {
  const digests = new Set<string>(known); // the oldest first
  return (record) => {
    const digest = rejectDigest(record);
    const news = !digests.delete(digest);
    digests.add(digest);
    if (digests.size > most) digests.delete(digests.values().next().value!);
    return news;
  };
}

/** What tells rejects apart. */
export function rejectDigest({ reason, raw }: RejectedRecord): string {
  return createHash('sha256')
    .update(`${reason} ${canonicalJson(raw)}`)
    .digest('base64url');
}
