import type { Admin, Kafka } from 'kafkajs';
import { vi } from 'vitest';
import { withAdmin } from '../../support/with-admin.ts';

/** A partition as the cluster knows it: ids of nodes. */
export interface PartitionState {
  readonly topic: string;
  readonly partition: number;
  /** -1: none. */
  readonly leader: number;
  readonly replicas: readonly number[];
  readonly inSync: readonly number[];
}

/** All partitions of these topics; of all there are, Kafka's own too, by default. */
export async function partitionStates(
  admin: Admin,
  topics?: readonly string[],
): Promise<PartitionState[]> {
  const found = await admin.fetchTopicMetadata(topics && { topics: [...topics] });
  return found.topics.flatMap(({ name, partitions }) =>
    partitions.map(({ partitionId, leader, replicas, isr }) => ({
      ...{ topic: name, partition: partitionId, leader, replicas, inSync: isr },
    })),
  );
}

/** Resolves when every partition has a leader, and all its replicas are in sync. */
export async function inSync(kafka: Kafka, withinMs = 60_000): Promise<void> {
  await withAdmin(kafka, (admin) =>
    vi.waitUntil(
      async () =>
        (await partitionStates(admin)).every(
          ({ leader, replicas, inSync }) => leader >= 0 && inSync.length === replicas.length,
        ),
      { timeout: withinMs, interval: 100 },
    ),
  );
}

/**
 * Gives a partition another leader while all brokers are up: the controller elects the first of its
 * replicas. Resolves when that leads.
 */
export async function moveLeader(
  admin: Admin,
  { topic, partition, replicas }: Pick<PartitionState, 'topic' | 'partition' | 'replicas'>,
  to: number,
): Promise<void> {
  const others = replicas.filter((id) => id !== to);
  await admin.alterPartitionReassignments({
    topics: [{ topic, partitionAssignment: [{ partition, replicas: [to, ...others] }] }],
  });
  const leads = async () =>
    (await partitionStates(admin, [topic])).some(
      (state) => state.partition === partition && state.leader === to,
    );
  await vi.waitUntil(leads, { timeout: 30_000, interval: 100 });
}
