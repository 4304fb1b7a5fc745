import { createHash } from 'node:crypto';
import { canonicalJson } from '../schemas/json.ts';
import type { RejectedRecord } from './records.ts';

/** Whether a reject is news. */
export type KnownRejects = (record: RejectedRecord) => boolean;

/**
 * True for a reject that is not among the newest `most` (default 10,000): the same bad record is not
 * reported again at every read. Its content counts: one that has changed is news.
 */
export function knownRejects(most = 10_000): KnownRejects {
  const known = new Set<string>(); // by digest, the oldest first
  return ({ reason, raw }) => {
    const digest = createHash('sha256')
      .update(`${reason} ${canonicalJson(raw)}`)
      .digest('base64url');
    const news = !known.delete(digest);
    known.add(digest);
    if (known.size > most) known.delete(known.values().next().value!);
    return news;
  };
}
