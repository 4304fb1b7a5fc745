import type { Certificate } from '../../src/schemas/events/certificate.ts';
import { KeyTally } from '../../src/schemas/events/key-tally.ts';

/** An exact certificate of a list that has come to these partitions. */
export function certificateOf(
  partitions: Certificate['partitions'],
  more: Partial<Certificate> = {},
): Certificate {
  const sum = new KeyTally();
  for (const { records, digest } of Object.values(partitions)) {
    sum.merge(KeyTally.of({ records, digest }));
  }
  const { records } = sum;
  return {
    account: 'default',
    resource: 'orders',
    number: 1,
    sequence: 1_000,
    began_at: Date.UTC(2026, 0, 31, 14, 3),
    ended_at: Date.UTC(2026, 0, 31, 14, 3, 7),
    total_records: records,
    read: records,
    rejected: 0,
    unpublished: 0,
    left_out: 0,
    held: 0,
    undecided: 0,
    undecided_keys: [],
    proof: 'exact',
    ...sum.toJSON(),
    partitions,
    ...more,
  };
}
