import { KafkaJSProtocolError } from 'kafkajs';
import type { Admin, Kafka } from 'kafkajs';
import { describe, expect, it } from 'vitest';
import { topicTable } from '../../src/schemas/topics.ts';
import { ensureTopics } from '../../src/sinks/kafka-topics.ts';

const topics = (replication: number) =>
  topicTable({ prefix: 'wine', resources: ['products'], partitions: 3, replication });

function refusal(type: string): Error {
  return Object.assign(new KafkaJSProtocolError(new Error('refused')), { type });
}

/** A cluster that has no topics, and whose brokers say so for a while after they were made. */
function cluster(answers: readonly Error[]) {
  const left = [...answers];
  let made: { topic: string }[] = [];
  const admin: Partial<Admin> = {
    connect: () => Promise.resolve(),
    disconnect: () => Promise.resolve(),
    describeCluster: () => Promise.resolve({ brokers: [{ nodeId: 0, host: '', port: 1 }], controller: 0, clusterId: 'c' }), // prettier-ignore
    listTopics: () => Promise.resolve([]),
    createTopics: ({ topics: all }) => Promise.resolve(Boolean((made = all))),
    fetchTopicMetadata: () => {
      const refused = left.shift();
      if (refused) return Promise.reject(refused);
      return Promise.resolve({
        topics: made.map(({ topic }) => ({ name: topic, partitions: [] })),
      });
    },
    describeConfigs: () =>
      Promise.resolve({
        throttleTime: 0,
        resources: topics(1).map(({ topic, configEntries }) => ({
          ...{ errorCode: 0, errorMessage: '', resourceType: 2, resourceName: topic },
          configEntries: configEntries.map(({ name, value }) => ({ configName: name, configValue: value, isDefault: false, isSensitive: false, readOnly: false, configSource: 1, configSynonyms: [] })), // prettier-ignore
        })),
      }),
  };
  return { kafka: { admin: () => admin } as unknown as Kafka, left, made: () => made.length };
}

describe('topics that were made just now', () => {
  it('are waited for until the brokers know of them', async () => {
    const { kafka, left } = cluster([
      refusal('UNKNOWN_TOPIC_OR_PARTITION'),
      refusal('LEADER_NOT_AVAILABLE'),
    ]);
    // Fixed numbers of partitions are not what this one tells of.
    await expect(ensureTopics({ kafka, topics, replication: 1 })).rejects.toMatchObject({
      code: 'TOPIC_SETTINGS',
    });
    expect(left).toEqual([]);
  });

  it('are not waited for when the broker says something else', async () => {
    const { kafka, left } = cluster([refusal('BROKER_NOT_AVAILABLE'), refusal('OTHER')]);
    await expect(ensureTopics({ kafka, topics, replication: 1 })).rejects.toMatchObject({
      code: 'KAFKA_UNREACHABLE',
    });
    expect(left).toHaveLength(1);
  });
});
