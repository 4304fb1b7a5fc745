import { describe, expect, it } from 'vitest';
import { describeError } from '../../../src/core/errors.ts';
import { withBrokers } from '../../../src/kafka/client/brokers.ts';
import { metadata } from '../../../src/kafka/client/topic-calls.ts';
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

  it('is asked again where an answer makes no sense', async () => {
    const cluster = await startCluster();
    cluster.fault({ api: 'Metadata', deed: { bytes: Buffer.alloc(9) } });
    cluster.fault({ api: 'ListOffsets', deed: { bytes: Buffer.alloc(5) } });
    expect((await topicBounds({ kafka: kafkaOf(cluster) }, TOPIC)).size).toBe(PARTITIONS);
  });

  it('is asked again where an answer says nothing of a partition', async () => {
    const cluster = await startCluster();
    cluster.fault({ api: 'ListOffsets', times: 2, deed: { answer: { topics: [] } } });
    expect((await topicBounds({ kafka: kafkaOf(cluster) }, TOPIC)).size).toBe(PARTITIONS);
  });

  it('is not known where no answer makes sense: who has answered what is said', async () => {
    const cluster = await startCluster();
    cluster.fault({ api: 'Metadata', times: Infinity, deed: { bytes: Buffer.alloc(9) } });
    const error = await withBrokers({ kafka: kafkaOf(cluster) }, { ms: 100 }, (brokers) =>
      brokers.sendToAny(metadata([TOPIC])),
    ).catch((cause: unknown) => cause);
    expect(error).toMatchObject({ code: 'KAFKA_UNREACHABLE' });
    expect(describeError(error)).toContain(
      `check whether a proxy alters the responses of the brokers): the response of ${cluster.brokers[0]} to Metadata can't be decoded`,
    );
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
