import type { Kafka } from 'kafkajs';
import { CellarstreamError } from '../../core/errors.ts';
import { topicBounds } from '../client/topic-bounds.ts';
import { withAdmin } from '../client/with-admin.ts';

/** A partition that is read, and the offset that is next. */
export interface ReadPlace {
  readonly kafka: Kafka;
  readonly topic: string;
  readonly partition: number;
  readonly at: bigint;
}

/**
 * Tells why a broker says that this offset is out of range: nobody may pass over in silence what is not
 * there any more.
 *
 * @throws CellarstreamError `POSITION`: retention has taken the next message, or the topic was made
 * anew; `KAFKA_UNREACHABLE`: asked again, the brokers say that it is there.
 */
export async function refuseLoss(place: ReadPlace): Promise<never> {
  const { kafka, topic, partition, at } = place;
  const bounds = await withAdmin(kafka, (admin) => topicBounds(admin, topic));
  const { low, high } = bounds.get(partition) ?? { low: 0n, high: 0n };
  if (low > at) throw deletedBefore(place, low);
  if (high < at) throw madeAnew(place, high);
  throw new CellarstreamError(
    'KAFKA_UNREACHABLE',
    `the brokers do not agree whether partition ${partition} of ${topic} has an offset ${at}`,
    { context: { topic, partition } },
  );
}

function deletedBefore({ topic, partition, at }: ReadPlace, low: bigint) {
  return new CellarstreamError(
    'POSITION',
    `offsets ${at} to ${low - 1n} of partition ${partition} of ${topic} were deleted before they were read: begin at ${low} or later, and raise the topic's retention.ms`,
    { context: { topic, partition } },
  );
}

function madeAnew({ topic, partition, at }: ReadPlace, end: bigint) {
  return new CellarstreamError(
    'POSITION',
    `partition ${partition} of ${topic} ends at ${end} and not at ${at} as before: the topic was made anew. Begin at its beginning`,
    { context: { topic, partition } },
  );
}
