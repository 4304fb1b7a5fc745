import type { Certificate } from '../../schemas/events/certificate.ts';
import { KeyTally } from '../../schemas/events/key-tally.ts';
import { sizeOf } from '../../streams/paging/reading-counts.ts';
import type { SweepProgress } from '../../streams/paging/sweep-progress.ts';
import type { Checkpoint } from '../checkpoint/checkpoint.ts';

/** A complete reading at its end, and the topic as it is then. */
export interface Reading {
  readonly account: string;
  readonly resource: string;
  /** Of the certificate. */
  readonly number: number;
  /** Of the newest event. */
  readonly sequence: number;
  readonly sweep: SweepProgress;
  /** Deletions that were held back. */
  readonly held: number;
  /** Published, alive, and neither seen since the reading began nor deleted: how many, and the first of them. */
  readonly unseen: { readonly count: number; readonly keys: readonly string[] };
  readonly live: ReturnType<Checkpoint['live']>;
  /** When there is nothing to tell the time by, ms. */
  readonly now: number;
}

/** Keys that a certificate names. */
export const MAX_NAMED = 100;

/** What can be vouched for at the end of a complete reading. */
export function certificateOf(reading: Reading): Certificate {
  const { account, resource, number, sequence, sweep, live, now } = reading;
  const { distinct: read, total } = sweep;
  const counts = sweep.counts!; // null only before the first reading
  const held = Math.min(reading.held, reading.unseen.count);
  // Those that are held back are missing by name: which of the others are it can't be told.
  const missing = reading.unseen.count - held;
  const names = missing > 0 ? reading.unseen.keys : [];
  const undecided = missing + sizeOf(counts.undecided);
  const facts = {
    total_records: typeof total === 'number' ? total : null,
    read,
    rejected: counts.rejected,
    unpublished: sizeOf(counts.unpublished),
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
  // A list that is cut off lacks records that are published.
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
    proof: proofOf(sweep, facts, isCredible),
    ...all.toJSON(),
    partitions: Object.fromEntries(partitions),
  };
}

type Facts = Pick<
  Certificate,
  'total_records' | 'read' | 'rejected' | 'unpublished' | 'held' | 'undecided'
>;

function proofOf(
  { counts, proof, interrupted }: SweepProgress,
  { total_records, read, rejected, unpublished, held, undecided }: Facts,
  isCredible: boolean,
): Certificate['proof'] {
  // A list that seems empty may be, if nothing says otherwise; one that ends in an empty page shows nothing.
  const isEmpty = proof === 'nothing' && read === 0;
  const isWhole = proof === 'exact' || proof === 'anchored' || proof === 'complete' || isEmpty;
  if (!isWhole || interrupted || !counts?.settled) return 'unsettled';
  const isExact = isCredible && read + rejected === total_records;
  if (isExact && undecided + held + unpublished === 0) return 'exact';
  return isEmpty ? 'unsettled' : 'complete';
}
