import { z } from 'zod';
import { objectIn } from '../../core/http-text.ts';
import type { TallyText } from './key-tally.ts';

/** The levels of evidence that a full scan read the whole list, strongest first. */
export const READING_LEVELS = ['anchored', 'counted', 'agreed', 'whole', 'read'] as const;

/**
 * Evidence that a full scan read the whole list, strongest first:
 *
 * - `anchored`: each page after the first contained a record of an earlier page, unchanged.
 * - `counted`: the number of distinct keys matched a total that did not change.
 * - `agreed`: two scans, at least `DELETE_PROOF_MS` apart, had the same keys.
 * - `whole`: one response contained the whole list.
 * - `read`: the scan reached the end of the list, without any of this evidence.
 */
export type ReadingLevel = (typeof READING_LEVELS)[number];

/**
 * Statement about a list and its topic after a full scan: JSON in the topic `<prefix>.certificates`, with the key `<account>/<resource>`.
 */
export interface Certificate extends TallyText {
  readonly account: string;
  readonly resource: string;
  /** Serial number of this certificate among the certificates of its list. */
  readonly number: number;
  /** Sequence number of the list's newest event when the certificate was made. */
  readonly sequence: number;
  /**
   * When the first page of the full scan was requested, in epoch ms by the server's `Date`; by the local clock if the server sends none.
   */
  readonly began_at: number;
  /**
   * When the last page of the full scan was requested, in epoch ms by the server's `Date`. If the server sends none: when that page was
   * processed, by the local clock.
   */
  readonly ended_at: number;
  /** The API's `total_records` if it was the same throughout the scan; null if it changed, or if the API sends none. */
  readonly total_records: number | null;
  /** Number of distinct keys that the full scan read. */
  readonly read: number;
  /**
   * Number of elements that the full scan rejected: not valid JSON, no object, no usable key, or the key of an earlier record of the page
   * with different content.
   */
  readonly rejected: number;
  /** Number of records that are too large for a message. For such a record the topic has an older image, or none. */
  readonly unpublished: number;
  /** Number of records that are not published because they are older than `START_FROM`, or because the list shows them as deleted. */
  readonly left_out: number;
  /** Number of deletions held back by `DELETE_LIMIT_PERCENT`. */
  readonly held: number;
  /**
   * Number of keys whose current state is uncertain:
   *
   * - Overlapping reads showed different content.
   * - A second read has not confirmed the content yet.
   * - No response shows whether the record still exists. Held-back deletions are not counted here, but in `held`.
   */
  readonly undecided: number;
  /** Up to 100 keys, each of which `undecided` or `held` counts. Empty if `undecided` is 0. */
  readonly undecided_keys: readonly string[];
  /**
   * How complete the full scan was:
   *
   * - `exact`: the scan read the whole list, `read + rejected` equals `total_records`, and `undecided`, `held` and `unpublished` are 0.
   * - `complete`: the scan read every page from beginning to end, but is not `exact`.
   * - `unsettled`: the scan may have missed records.
   */
  readonly proof: 'exact' | 'complete' | 'unsettled';
  /**
   * Evidence that the scan read the whole list (see `ReadingLevel` in the library reference). Present only if `proof` is `complete` and the
   * API reports no total for the list.
   */
  readonly level?: ReadingLevel;
  /**
   * Count and digest of the live keys in each partition of the list's topic. A key is live if its newest event before the offset `position`
   * is not a deletion.
   */
  readonly partitions: Readonly<Record<string, CertifiedPartition>>;
}

/** Count and digest of the live keys (keys whose newest event is not a deletion) in one partition. */
export interface CertifiedPartition extends TallyText {
  /** Kafka offset in the partition: only events before this offset are counted. */
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
  level: z.enum(READING_LEVELS).exactOptional(),
  ...tally,
  partitions: z.record(z.string().regex(/^\d+$/), z.object({ position: count, ...tally })),
});

/** Parses a certificate; undefined for other text. Ignores unknown fields, which later versions may add. */
export function parseCertificate(text: string): Certificate | undefined {
  return SCHEMA.safeParse(objectIn(text)).data;
}
