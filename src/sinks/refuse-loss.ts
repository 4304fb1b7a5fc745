import type { Batch } from 'kafkajs';
import { CellarstreamError } from '../errors.ts';

/** What kafkajs would pass over in silence: it goes on at the beginning of what is left. */
export function refuseLoss(topic: string, batch: Batch, at: bigint): void {
  const { partition, highWatermark } = batch;
  // Not among kafkajs' types: where the fetch began that brought this batch.
  const { fetchedOffset } = batch as Batch & { readonly fetchedOffset?: string };
  if (fetchedOffset !== undefined && BigInt(fetchedOffset) > at) {
    throw deletedBefore(topic, partition, at, BigInt(fetchedOffset));
  }
  if (BigInt(highWatermark) >= at) return;
  throw new CellarstreamError(
    'POSITION',
    `partition ${partition} of ${topic} ends at ${highWatermark}, it was at ${at} before: the topic was made anew, begin at its beginning`,
    { context: { topic, partition } },
  );
}

export function deletedBefore(topic: string, partition: number, at: bigint, low: bigint) {
  return new CellarstreamError(
    'POSITION',
    `offsets ${at} to ${low - 1n} of partition ${partition} of ${topic} were deleted before they were read: begin at ${low} or later, and keep more of it with retention.ms`,
    { context: { topic, partition } },
  );
}
