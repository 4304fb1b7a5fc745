import { z } from 'zod';

const count = z.int().min(0);
const tally = { records: count, digest: z.string().regex(/^[0-9a-f]{16}$/) };

/**
 * What the service can vouch for after a complete reading of a list: JSON in the topic `<prefix>.certificates`, with
 * the key `<account>/<resource>`.
 */
const SCHEMA = z.object({
  account: z.string(),
  resource: z.string(),
  /** Of the list's certificates, rising. */
  number: count,
  /** Of the newest event at that moment. */
  sequence: count,
  /** When the reading began and ended, ms by the server's `Date`: the list was so at some moment since it began. */
  began_at: z.number(),
  ended_at: z.number(),
  /** As the API said it throughout the reading; null when it moved. */
  total_records: count.nullable(),
  /** Distinct keys that the reading saw. */
  read: count,
  /** Records without a usable key, or in conflict. */
  rejected: count,
  /** Too large for one message: the image is an older one, or there is none. */
  unpublished: count,
  /** Older than `START_FROM`. */
  left_out: count,
  /** Deletions held back by the limit. */
  held: count,
  /** Keys that the reading could not decide. */
  undecided: count,
  /** The first of them, 100 at most. */
  undecided_keys: z.array(z.string()),
  /**
   * `exact`: `read + rejected = total_records` throughout, and nothing undecided, held or unpublished. `complete`: read
   * from end to end, but not exact. `unsettled`: neither.
   */
  proof: z.enum(['exact', 'complete', 'unsettled']),
  /** Of all partitions together. */
  ...tally,
  /** By partition of the list's topic: of the live keys whose events lie before `position`. */
  partitions: z.record(z.string().regex(/^\d+$/), z.object({ position: count, ...tally })),
});

/** As {@link parseCertificate} gives it. */
export type Certificate = Readonly<z.infer<typeof SCHEMA>>;

/** Undefined when the text is no certificate: one of a later version may have other fields besides. */
export function parseCertificate(text: string): Certificate | undefined {
  try {
    return SCHEMA.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined; // no JSON
  }
}
