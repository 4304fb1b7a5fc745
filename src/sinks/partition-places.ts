import type { Kafka } from 'kafkajs';
import { topicBounds } from './topic-bounds.ts';
import type { Bounds } from './topic-bounds.ts';
import { withAdmin } from './with-admin.ts';

/** Of a partition, the address of the broker that has it, its first offset and its end. */
export interface Place extends Bounds {
  readonly leader: string;
}
export type Places = ReadonlyMap<number, Place>;

export const NOWHERE: Place = { leader: '', low: 0n, high: -1n };

export function partitionPlaces(kafka: Kafka, topic: string): Promise<Places> {
  return withAdmin(kafka, async (admin) => {
    const { brokers } = await admin.describeCluster();
    const { topics } = await admin.fetchTopicMetadata({ topics: [topic] });
    const bounds = await topicBounds(admin, topic);
    const addresses = new Map(brokers.map(({ nodeId, host, port }) => [nodeId, `${host}:${port}`]));
    const leaders = new Map(
      topics[0]?.partitions.map(({ partitionId, leader }) => [partitionId, leader]),
    );
    return new Map(
      [...bounds].map(([partition, bound]) => {
        const leader = addresses.get(leaders.get(partition) ?? -1) ?? '';
        return [partition, { leader, ...bound }];
      }),
    );
  });
}
