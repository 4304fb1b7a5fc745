// The certificate of a list: its fields, and how one is parsed.

import { z } from 'zod';
import type { TallyText } from './key-tally.ts';

/**
 * What the service can vouch for after a complete reading of a list: JSON in the topic `<prefix>.certificates`, with
 * the key `<account>/<resource>`.
 */
export interface Certificate extends TallyText {
  readonly account: string;
  readonly resource: string;
  /** Of the list's certificates, rising. */
  readonly number: number;
  /** Of the newest event at that moment. */
  readonly sequence: number;
  /** When the reading began, ms by the server's `Date`: the list was so at some moment since. */
  readonly began_at: number;
  /** When it ended. */
  readonly ended_at: number;
  /** As the API said it throughout the reading; null when it moved. */
  readonly total_records: number | null;
  /** Distinct keys that the reading saw. */
  readonly read: number;
  /** Records without a usable key, or in conflict. */
  readonly rejected: number;
  /** Too large for one message: the image is an older one, or there is none. */
  readonly unpublished: number;
  /** Older than `START_FROM`. */
  readonly left_out: number;
  /** Deletions held back by the limit. */
  readonly held: number;
  /** Keys that the reading could not decide. */
  readonly undecided: number;
  /** The first of them, 100 at most. */
  readonly undecided_keys: readonly string[];
  /**
   * `exact`: `read + rejected = total_records` throughout, and nothing undecided, held or unpublished. `complete`: read
   * from end to end, but not exact. `unsettled`: neither.
   */
  readonly proof: 'exact' | 'complete' | 'unsettled';
  /** By partition of the list's topic: of the live keys whose events lie before `position`. */
  readonly partitions: Readonly<Record<string, CertifiedPartition>>;
}

/** What is certified of a partition. */
export interface CertifiedPartition extends TallyText {
  /** An offset. */
  readonly position: number;
}

const count = z.int().min(0);
const tally = { records: count, digest: z.string().regex(/^[0-9a-f]{16}$/) };

const SCHEMA = z.object({
  account: z.string(),
  resource: z.string(),
  number: count,
  sequence: count,
  began_at: z.number(),
  ended_at: z.number(),
  total_records: count.nullable(),
  read: count,
  rejected: count,
  unpublished: count,
  left_out: count,
  held: count,
  undecided: count,
  undecided_keys: z.array(z.string()),
  proof: z.enum(['exact', 'complete', 'unsettled']),
  ...tally,
  partitions: z.record(z.string().regex(/^\d+$/), z.object({ position: count, ...tally })),
});

/** Undefined when the text is no certificate: one of a later version may have other fields besides. */
export function parseCertificate(text: string): Certificate | undefined {
  try {
    return SCHEMA.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined; // no JSON
  }
}
