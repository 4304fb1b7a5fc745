import { describe, expect, it } from 'vitest';
import {
  PARTITIONS,
  TOPIC,
  checkServers,
  messages,
  openOn,
  startCluster,
} from './on-scripted-cluster.ts';

checkServers();

const NOT_LEADER_OR_FOLLOWER = 6;
const TOPIC_AUTHORIZATION_FAILED = 29;

/** In each partition, a transaction of one message: it, and the marker behind it. */
const ended = (transactions: number) =>
  new Map(
    Array.from({ length: PARTITIONS }, (_, partition) => [
      partition,
      { low: 0n, high: BigInt(2 * transactions) },
    ]),
  );

describe('where a topic begins and ends', () => {
  it('is known of all partitions, whoever leads them', async () => {
    const cluster = await startCluster({ brokers: 3 });
    const sink = await openOn(cluster);
    expect(await sink.bounds(TOPIC)).toEqual(ended(0));
    await sink.commit(messages('1'));
    expect(await sink.bounds(TOPIC)).toEqual(ended(1));
  });

  it('is not told by a broker that stood still, and has not heard that it leads no longer', async () => {
    const cluster = await startCluster({ brokers: 3 });
    const sink = await openOn(cluster);
    await sink.commit(messages('1'));
    cluster.coordinator = 1;
    cluster.standStill(0);
    for (let partition = 0; partition < PARTITIONS; partition++) cluster.lead(TOPIC, partition, 1);
    await sink.commit(messages('2'));
    const next = await openOn(cluster);
    expect(await next.bounds(TOPIC)).toEqual(ended(2));
  });

  it('is not told by a leader that was one before and is one again, as long as it knows of neither', async () => {
    const cluster = await startCluster({ brokers: 2 });
    cluster.coordinator = 1;
    const sink = await openOn(cluster);
    await sink.commit(messages('1'));
    cluster.standStill(0);
    for (const leader of [1, 0]) cluster.lead(TOPIC, 0, leader);
    const bounds = sink.bounds(TOPIC);
    await expect.poll(() => cluster.of('ListOffsets').length).toBeGreaterThan(4);
    cluster.wakeUp(0);
    expect(await bounds).toEqual(ended(1));
  });

  it('is asked again of whoever leads now', async () => {
    const cluster = await startCluster({ brokers: 2 });
    const sink = await openOn(cluster);
    cluster.fault({ api: 'ListOffsets', deed: { refuse: NOT_LEADER_OR_FOLLOWER, partition: 3 } });
    cluster.fault({ api: 'ListOffsets', deed: 'hang up before' });
    expect(await sink.bounds(TOPIC)).toEqual(ended(0));
  });

  it('is not asked again where we may not know', async () => {
    const cluster = await startCluster();
    const sink = await openOn(cluster);
    cluster.fault({ api: 'ListOffsets', deed: { refuse: TOPIC_AUTHORIZATION_FAILED } });
    await expect(sink.bounds(TOPIC)).rejects.toMatchObject({ code: 'KAFKA_REFUSED' });
  });
});
