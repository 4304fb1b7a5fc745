import type { ReadingRules } from '../../description/levels.ts';
import type { Certificate } from '../../schemas/events/certificate.ts';
import { KeyTally } from '../../schemas/events/key-tally.ts';
import { sampleSize } from '../../streams/paging/scan-counts.ts';
import { levelOf } from '../../streams/paging/sweep-progress.ts';
import type { SweepProgress } from '../../streams/paging/sweep-progress.ts';
import type { Checkpoint } from '../checkpoint/checkpoint.ts';

/** A completed full scan, and the state of the events' topic after the scan's last commit. */
export interface CompletedScan {
  readonly account: string;
  readonly resource: string;
  /** Number of the certificate; the certificates of a task are numbered consecutively. */
  readonly number: number;
  readonly sequence: number;
  readonly sweep: SweepProgress;
  readonly rules: ReadingRules;
  /** Minimum time between two full scans that together prove which records were deleted, in ms (`DELETE_PROOF_MS`). */
  readonly proofMs: number;
  /** Number of deletions that the scan detected but that are not published, because they exceed `DELETE_LIMIT_PERCENT`. */
  readonly heldBack: number;
  /** Live keys that were not seen since the scan began: their number, and up to {@link MAX_NAMED} of them. */
  readonly unseen: { readonly count: number; readonly keys: readonly string[] };
  readonly live: Checkpoint['liveKeys'];
  /** Current time by the local clock, in epoch ms. Used as the certificate's `ended_at` if `sweep.counts.endedAt` is missing. */
  readonly now: number;
}

/** Maximum number of keys in a certificate's `undecided_keys`: keys with undecided content, and live keys that the scan did not show. */
export const MAX_NAMED = 100;

/** Returns the certificate of a full scan: how many records it read, and count and digest of the records in the topic. */
export function certificateOf(scan: CompletedScan): Certificate {
  const { account, resource, number, sequence, sweep, live, now } = scan;
  const { distinct: read, total } = sweep;
  const counts = sweep.counts!; // null only before the first full scan
  const held = Math.min(scan.heldBack, scan.unseen.count);
  // Which of the unseen keys are held back is unknown here, only how many; the others count as undecided.
  const missing = scan.unseen.count - held;
  const names = missing > 0 ? scan.unseen.keys : [];
  const undecided = missing + sampleSize(counts.undecided);
  const facts = {
    total_records: typeof total === 'number' ? total : null,
    read,
    rejected: counts.rejected,
    unpublished: sampleSize(counts.unpublished),
    left_out: counts.leftOut,
    held,
    undecided,
  };
  const all = new KeyTally();
  for (const tally of live.keys) all.merge(tally);
  const partitions = live.keys.map((tally, partition) => {
    const position = Number(live.ends[partition] ?? 0);
    return [String(partition), { position, ...tally.toJSON() }] as const;
  });
  // If the list seems capped, the scan can be exact only if it read at least as many records as the topic has.
  const isCredible = sweep.cut === null || all.toJSON().records <= read;
  return {
    account,
    resource,
    number,
    sequence,
    began_at: counts.beganAt ?? sweep.beganAt,
    ended_at: counts.endedAt ?? now,
    ...facts,
    undecided_keys: [...counts.undecided.keys, ...names].slice(0, MAX_NAMED),
    ...proofWithLevel(sweep, proofOf(sweep, facts, isCredible), scan),
    ...all.toJSON(),
    partitions: Object.fromEntries(partitions),
  };
}

function proofWithLevel(
  sweep: SweepProgress,
  proof: Certificate['proof'],
  { rules, proofMs, unseen }: CompletedScan,
): Pick<Certificate, 'proof' | 'level'> {
  if (proof !== 'complete' || rules.hasTotal) return { proof };
  const reached = levelOf(sweep, rules, proofMs);
  const level = reached === 'agreed' && unseen.count > 0 ? 'read' : reached;
  return { proof, ...(level && { level }) };
}

type CertificateCounts = Pick<
  Certificate,
  'total_records' | 'read' | 'rejected' | 'unpublished' | 'held' | 'undecided'
>;

function proofOf(
  { counts, proof, interrupted }: SweepProgress,
  { total_records, read, rejected, unpublished, held, undecided }: CertificateCounts,
  isCredible: boolean,
): Certificate['proof'] {
  // An empty list may really be empty if its total agrees. A list that ends with an empty page proves nothing.
  const isEmpty = proof === 'nothing' && read === 0;
  const isWhole = proof === 'exact' || proof === 'anchored' || proof === 'complete' || isEmpty;
  if (!isWhole || interrupted || !counts?.settled) return 'unsettled';
  const isExact = isCredible && read + rejected === total_records;
  if (isExact && undecided + held + unpublished === 0) return 'exact';
  return isEmpty ? 'unsettled' : 'complete';
}
