import type { Kafka } from 'kafkajs';
import { vi } from 'vitest';
import { withAdmin } from '../../support/with-admin.ts';
import { PATIENCE_MS } from './running-test.ts';

/** Deletes the records of a partition before an offset, as retention does, or somebody by hand. */
export const deleteRecords = (kafka: Kafka, topic: string, partition: number, offset: string) =>
  withAdmin(kafka, async (admin) => {
    await admin.fetchTopicOffsets(topic); // kafkajs deletes from topics only whose leaders it knows
    await admin.deleteTopicRecords({ topic, partitions: [{ partition, offset }] });
  });

/** Sets a topic's `cleanup.policy`. Brokers hear of it a moment later. */
export const setPolicy = (kafka: Kafka, topic: string, value: 'compact' | 'delete') =>
  withAdmin(kafka, (admin) =>
    admin.alterConfigs({
      validateOnly: false,
      resources: [{ type: 2, name: topic, configEntries: [{ name: 'cleanup.policy', value }] }],
    }),
  );

/** The same of a compacted topic: brokers delete nothing of one, so its policy is another meanwhile. */
export async function deleteCompacted(
  kafka: Kafka,
  topic: string,
  partition: number,
  offset: string,
): Promise<void> {
  await setPolicy(kafka, topic, 'delete');
  // A broker refuses until it has heard of the policy itself.
  await vi.waitFor(() => deleteRecords(kafka, topic, partition, offset), {
    timeout: PATIENCE_MS,
    interval: 200,
  });
  await setPolicy(kafka, topic, 'compact');
}
