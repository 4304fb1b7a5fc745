import { describe, expect, it } from 'vitest';
import {
  existing,
  offsetsSince,
  partitionCount,
  topicBounds,
  topicSettings,
} from '../../../src/kafka/client/topic-facts.ts';
import {
  checkServers,
  kafkaOf,
  messages,
  openOn,
  PARTITIONS,
  startCluster,
  TOPIC,
} from '../../sinks/producer/on-scripted-cluster.ts';

checkServers();

describe('what brokers know of topics', () => {
  it('is where they begin and end, and how they are set', async () => {
    const cluster = await startCluster({ brokers: 3 });
    const asked = { kafka: kafkaOf(cluster) };
    const sink = await openOn(cluster);
    await sink.commit(messages('1'));
    const { open } = cluster;
    const bounds = await topicBounds(asked, TOPIC);
    const all = Array.from({ length: PARTITIONS }, (_, partition) => partition);
    expect([...bounds]).toEqual(all.map((partition) => [partition, { low: 0n, high: 2n }]));
    expect(await partitionCount(asked, TOPIC, 'make it')).toBe(PARTITIONS);
    expect(await topicSettings(asked, TOPIC, ['cleanup.policy'])).toEqual(
      new Map([['cleanup.policy', 'compact']]),
    );
    expect([...(await existing(asked, [TOPIC, 'nowhere']))]).toEqual([TOPIC]);
    expect([...(await offsetsSince(asked, TOPIC, Date.now())).keys()]).toEqual(all);
    await expect.poll(() => cluster.open).toBe(open); // none is left of those who asked
  });

  it('is asked again while a partition has no leader, or another one', async () => {
    const cluster = await startCluster({ brokers: 2 });
    cluster.fault({ api: 'ListOffsets', deed: { refuse: 6 }, times: 2 });
    cluster.lead(TOPIC, 0, -1);
    const bounds = topicBounds({ kafka: kafkaOf(cluster) }, TOPIC);
    await expect.poll(() => cluster.of('Metadata').length).toBeGreaterThan(2);
    cluster.lead(TOPIC, 0, 1);
    expect((await bounds).size).toBe(PARTITIONS);
  });

  it('is that a topic is not there, at once', async () => {
    const cluster = await startCluster();
    const asked = { kafka: kafkaOf(cluster) };
    for (const work of [
      () => topicBounds(asked, 'nowhere', 'make it'),
      () => partitionCount(asked, 'nowhere', 'make it'),
    ]) {
      await expect(work()).rejects.toMatchObject({
        code: 'POSITION',
        message: 'there is no topic nowhere: make it',
        context: { topic: 'nowhere' },
      });
    }
  });
});
