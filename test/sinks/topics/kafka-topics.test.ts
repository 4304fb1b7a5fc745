import { KafkaJSProtocolError } from 'kafkajs';
import type { Admin, ITopicConfig, Kafka } from 'kafkajs';
import { describe, expect, it } from 'vitest';
import { topicTable } from '../../../src/schemas/events/topics.ts';
import type { Connections } from '../../../src/sinks/client/connections.ts';
import type { Metadata } from '../../../src/sinks/producer/calls.ts';
import { ensureTopics } from '../../../src/sinks/topics/kafka-topics.ts';

const topics = (replication: number) =>
  topicTable({ prefix: 'wine', resources: ['products'], partitions: 3, replication });

function refusal(type: string): Error {
  return Object.assign(new KafkaJSProtocolError(new Error('refused')), { type });
}

const partitionsOf = ({ numPartitions = 0 }: ITopicConfig) =>
  Array.from({ length: numPartitions }, (_, partitionId) => ({
    ...{ partitionErrorCode: 0, partitionId, leader: 0, replicas: [0], isr: [0] },
  }));

const entryOf = ({ name, value }: { name: string; value: string }) => ({
  ...{ configName: name, configValue: value, configSource: 1, configSynonyms: [] },
  ...{ isDefault: false, isSensitive: false, readOnly: false },
});

/** A cluster without topics, whose brokers answer so when they are asked about those that were made. */
function cluster(answers: readonly Error[]) {
  const left = [...answers];
  let made: readonly ITopicConfig[] = [];
  const admin: Partial<Admin> = {
    connect: () => Promise.resolve(),
    disconnect: () => Promise.resolve(),
    createTopics: (request) => {
      made = request.topics;
      return Promise.resolve(true);
    },
    fetchTopicMetadata: () => {
      const refused = left.shift();
      if (refused) return Promise.reject(refused);
      const found = made.map((spec) => ({ name: spec.topic, partitions: partitionsOf(spec) }));
      return Promise.resolve({ topics: found });
    },
    describeConfigs: () => {
      const resources = made.map(({ topic, configEntries = [] }) => ({
        ...{ errorCode: 0, errorMessage: '', resourceType: 2, resourceName: topic },
        configEntries: (configEntries as { name: string; value: string }[]).map(entryOf),
      }));
      return Promise.resolve({ throttleTime: 0, resources });
    },
  };
  const address = { host: 'localhost', port: 1 };
  const found: Metadata = { clusterId: '', brokers: [{ id: 0, ...address }], topics: [] };
  const connections = {
    seeds: () => Promise.resolve([address]),
    ask: () => Promise.resolve(found),
  } as unknown as Connections;
  return { asked: { kafka: { admin: () => admin as Admin } as Kafka, connections }, left };
}

it('says of a wrong cleanup.policy the command that mends it', async () => {
  const wrong = (replication: number) =>
    topics(replication).map((spec) => ({
      ...spec,
      configEntries: [{ name: 'cleanup.policy', value: 'compact,delete' }],
    }));
  const { asked } = cluster([]);
  const refused = ensureTopics({ ...asked, topics: wrong, replication: undefined });
  await expect(refused).rejects.toMatchObject({
    code: 'TOPIC_SETTINGS',
    message: expect.stringContaining(
      'or set another TOPIC_PREFIX: kafka-configs.sh --bootstrap-server "$KAFKA_BROKERS" --alter --entity-type topics --entity-name wine.products --add-config cleanup.policy=compact && kafka-configs.sh',
    ),
  });
});

describe('topics that were made just now', () => {
  it('are waited for until the brokers know of them', async () => {
    const { asked, left } = cluster([
      refusal('UNKNOWN_TOPIC_OR_PARTITION'),
      refusal('LEADER_NOT_AVAILABLE'),
    ]);
    const made = topics(1).map(({ topic, numPartitions }) => [topic, numPartitions] as const);
    expect(await ensureTopics({ ...asked, topics, replication: 1 })).toEqual(new Map(made));
    expect(left).toEqual([]);
  });

  it('are not waited for when the broker says something else', async () => {
    const { asked, left } = cluster([refusal('BROKER_NOT_AVAILABLE'), refusal('OTHER')]);
    await expect(ensureTopics({ ...asked, topics, replication: 1 })).rejects.toMatchObject({
      code: 'KAFKA_UNREACHABLE',
    });
    expect(left).toHaveLength(1);
  });
});
