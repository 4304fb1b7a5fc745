import { Kafka, logLevel } from 'kafkajs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { JavaServices } from '../../src/devstack/services.ts';
import { withAdmin } from '../support/with-admin.ts';
import { scaled } from '../support/scale.ts';
import { startCluster } from './support/cluster.ts';
import { createTopic } from './support/created-topic.ts';
import { inSync, moveLeader, partitionStates } from './support/partitions.ts';

const PASSWORD = 'scram password-cL3';

describe('three brokers', () => {
  let cluster: JavaServices | string;
  beforeAll(async () => {
    cluster = await startCluster({
      kafka: {
        listeners: { LOGIN: 'SASL_PLAINTEXT' },
        users: { alice: PASSWORD },
        settings: {
          'listener.name.login.sasl.enabled.mechanisms': 'SCRAM-SHA-256',
          'listener.name.login.scram-sha-256.sasl.jaas.config':
            'org.apache.kafka.common.security.scram.ScramLoginModule required;',
        },
      },
    });
  });
  afterAll(() => (typeof cluster === 'string' ? undefined : cluster.stop()));

  const clientOf = ({ brokers }: Pick<JavaServices, 'brokers'>) =>
    new Kafka({ brokers, logLevel: logLevel.NOTHING });

  const leaders = (kafka: Kafka) =>
    withAdmin(kafka, async (admin) => (await partitionStates(admin)).map(({ leader }) => leader));

  it('are one cluster, whose own topics have three replicas, and so have those of others', async ({
    skip,
  }) => {
    if (typeof cluster === 'string') return skip(cluster);
    const kafka = clientOf(cluster);
    const addresses = cluster.nodes.map(({ id, address }) => `${id} ${address}`);
    for (const broker of cluster.brokers) {
      const { brokers } = await withAdmin(clientOf({ brokers: [broker] }), (admin) =>
        admin.describeCluster(),
      );
      const named = brokers.map(({ nodeId, host, port }) => `${nodeId} ${host}:${port}`);
      expect(named.sort()).toEqual(addresses);
    }
    const group = kafka.consumer({ groupId: 'makes-the-topic-of-offsets' });
    await group.connect();
    await createTopic(kafka, { topic: 'of-others' });
    await group.subscribe({ topic: 'of-others' });
    const joined = new Promise((resolve) => group.on(group.events.GROUP_JOIN, resolve));
    await group.run({ eachMessage: () => Promise.resolve() });
    await joined;
    await group.disconnect();
    await withAdmin(kafka, async (admin) => {
      const states = await partitionStates(admin, ['__consumer_offsets', 'of-others']);
      expect(states).toHaveLength(5);
      for (const { replicas } of states) expect([...replicas].sort()).toEqual([1, 2, 3]);
      const { resources } = await admin.describeConfigs({
        includeSynonyms: false,
        resources: [{ type: 2, name: 'of-others', configNames: ['min.insync.replicas'] }],
      });
      expect(resources[0]!.configEntries[0]!.configValue).toBe('2');
    });
  });

  it('go on without one, which is in sync again when it is back: stopped gently, and killed', async ({
    skip,
  }) => {
    if (typeof cluster === 'string') return skip(cluster);
    const kafka = clientOf(cluster);
    const topic = 'outlives-brokers';
    await createTopic(kafka, { topic, numPartitions: 6 });
    const producer = kafka.producer({ retry: { retries: 20 } });
    await producer.connect();
    // One of each kind.
    const struck = cluster.nodes.slice(0, scaled(2, 3));
    for (const node of struck) {
      const { pid } = node;
      await (node.id === 2 ? node.kill() : node.stop());
      expect(node.pid).toBeUndefined();
      expect(() => process.kill(pid!, 0)).toThrow();
      // Who is stopped gently hands its leaders over before it goes; whoever is killed is missed only later.
      if (node.id !== 2) expect((await leaders(kafka)).includes(node.id)).toBe(false);
      const messages = Array.from({ length: 60 }, (_, k) => ({ value: `${node.id} ${k}` }));
      await producer.send({ topic, acks: -1, messages });
      await withAdmin(kafka, async (admin) => {
        for (const { inSync } of await partitionStates(admin, [topic]))
          expect(inSync).not.toContain(node.id);
      });
      await node.start();
      await inSync(kafka);
    }
    await producer.disconnect();
    const ends = await withAdmin(kafka, (admin) => admin.fetchTopicOffsets(topic));
    expect(ends.reduce((sum, { high }) => sum + Number(high), 0)).toBeGreaterThanOrEqual(
      60 * struck.length,
    );
  });

  it('have a leader moved by the order of replicas, while all are up', async ({ skip }) => {
    if (typeof cluster === 'string') return skip(cluster);
    const kafka = clientOf(cluster);
    const topic = 'has-its-leader-moved';
    await createTopic(kafka, { topic });
    await withAdmin(kafka, async (admin) => {
      const [partition] = await partitionStates(admin, [topic]);
      for (const to of partition!.replicas.slice(1)) await moveLeader(admin, partition!, to);
    });
  });

  it('are reached with a login too, all three', async ({ skip }) => {
    if (typeof cluster === 'string') return skip(cluster);
    const brokers = cluster.listeners.LOGIN!.split(',');
    expect(new Set([...brokers, ...cluster.brokers]).size).toBe(6);
    const kafka = new Kafka({
      brokers,
      sasl: { mechanism: 'scram-sha-256', username: 'alice', password: PASSWORD },
      logLevel: logLevel.NOTHING,
    });
    const found = await withAdmin(kafka, (admin) => admin.describeCluster());
    expect(found.brokers.map(({ host, port }) => `${host}:${port}`).sort()).toEqual(brokers.sort());
  });
});
