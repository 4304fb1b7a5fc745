import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { Brokers } from '../../../src/kafka/client/brokers.ts';
import { CallUnanswered, CallNotSent } from '../../../src/kafka/client/protocol.ts';
import { metadata } from '../../../src/kafka/client/topic-calls.ts';
import type { ScriptedCluster } from '../../support/scripted-cluster.ts';
import type { Api } from '../../support/scripted-cluster/protocol.ts';
import {
  TOPIC,
  arrived,
  checkServers,
  gate,
  kafkaOf,
  messages,
  openOn,
  startCluster,
} from './on-scripted-cluster.ts';

checkServers();

const timers = () => process.getActiveResourcesInfo().filter((each) => each === 'Timeout').length;
/** Turns of the event loop: a timer of a second would outlast them. */
const settled = async (isDone: () => boolean) => {
  const until = performance.now() + 1_000;
  while (!isDone() && performance.now() < until) await new Promise(setImmediate);
};
async function expectNothingLeft(cluster: ScriptedCluster, timersBefore: number): Promise<void> {
  await settled(() => cluster.open === 0 && timers() <= timersBefore);
  expect(cluster.open).toBe(0);
  expect(timers()).toBeLessThanOrEqual(timersBefore);
}
const NOT_LEADER_OR_FOLLOWER = 6;
const OUT_OF_ORDER_SEQUENCE_NUMBER = 45;

describe('close', () => {
  it.each(['Metadata', 'AddPartitionsToTxn', 'Produce', 'EndTxn'] as const)(
    'ends all at once while an answer is awaited: %s',
    async (api: Api) => {
      const cluster = await startCluster({ brokers: 3 });
      const before = timers();
      const sink = await openOn(cluster);
      const { isOpen, open } = gate();
      cluster.fault({ api, times: 9, first: () => isOpen });
      const done = sink.commit(messages('1')).catch((error: unknown) => error);
      await arrived(cluster, api, 1);
      const began = performance.now();
      await sink.close();
      expect(await done).toMatchObject({ code: 'COMMIT_FAILED' });
      expect(performance.now() - began).toBeLessThan(500);
      await expectNothingLeft(cluster, before);
      open();
    },
  );

  it('ends all at once while a connection is being made', async () => {
    const cluster = await startCluster({ brokers: 2 });
    const before = timers();
    const sink = await openOn(cluster);
    cluster.fault({ api: 'ApiVersions', deed: 'lose request' });
    const done = sink.commit(messages('1')).catch((error: unknown) => error);
    await arrived(cluster, 'ApiVersions', 2);
    const began = performance.now();
    await sink.close();
    expect(await done).toMatchObject({ code: 'COMMIT_FAILED' });
    expect(performance.now() - began).toBeLessThan(500);
    await expectNothingLeft(cluster, before);
  });

  it('ends all at once between two tries', async () => {
    const cluster = await startCluster();
    const before = timers();
    const sink = await openOn(cluster);
    cluster.fault({ api: 'Produce', times: 99, deed: { refuse: NOT_LEADER_OR_FOLLOWER } });
    const done = sink.commit(messages('1')).catch((error: unknown) => error);
    await arrived(cluster, 'Produce', 5); // the pause is 320 ms by now
    await arrived(cluster, 'Metadata', 5);
    await sink.close();
    expect(await done).toMatchObject({ code: 'COMMIT_FAILED' });
    await expectNothingLeft(cluster, before);
  });

  it('ends all at once during an abort', async () => {
    const cluster = await startCluster();
    const before = timers();
    const sink = await openOn(cluster);
    cluster.fault({ api: 'Produce', deed: { refuse: OUT_OF_ORDER_SEQUENCE_NUMBER } });
    cluster.fault({ api: 'EndTxn', deed: 'lose request' });
    const done = sink.commit(messages('1')).catch((error: unknown) => error);
    await arrived(cluster, 'EndTxn', 1);
    await sink.close();
    expect(await done).toMatchObject({ code: 'COMMIT_FAILED' });
    await expectNothingLeft(cluster, before);
  });

  it('is not needed behind an error: nothing is left, of an abort either', async () => {
    const cluster = await startCluster({ brokers: 2 });
    const before = timers();
    const sink = await openOn(cluster);
    cluster.fault({ api: 'Produce', deed: { refuse: OUT_OF_ORDER_SEQUENCE_NUMBER } });
    await expect(sink.commit(messages('1'))).rejects.toMatchObject({ code: 'COMMIT_FAILED' });
    await expectNothingLeft(cluster, before);
  });

  it('waits for an abort that nobody answers no longer than two seconds', async () => {
    const cluster = await startCluster();
    const sink = await openOn(cluster);
    cluster.fault({ api: 'Produce', deed: { refuse: OUT_OF_ORDER_SEQUENCE_NUMBER } });
    cluster.fault({ api: 'EndTxn', deed: 'lose request' });
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const failed = expect(sink.commit(messages('1'))).rejects.toMatchObject({
      code: 'COMMIT_FAILED',
    });
    await vi.waitUntil(() => cluster.of('EndTxn').length > 0);
    await vi.advanceTimersByTimeAsync(2_000);
    await failed;
    await settled(() => cluster.open === 0);
    expect(cluster.open).toBe(0);
  });
});

describe('Brokers', () => {
  it('closes a connection whose answer is late: it belongs to nothing any more', async () => {
    const cluster = await startCluster();
    const brokers = new Brokers({ kafka: kafkaOf(cluster) });
    const [address] = cluster.addresses;
    cluster.fault({ api: 'Metadata', deed: 'lose answer' });
    const late = brokers.send(address!, metadata([TOPIC]), 100);
    await expect(late).rejects.toBeInstanceOf(CallUnanswered);
    await settled(() => cluster.open === 0);
    expect(cluster.open).toBe(0);
    await brokers.send(address!, metadata([TOPIC]));
    expect(cluster.of('Metadata').map(({ connection }) => connection)).toEqual([0, 1]);
    brokers.close();
  });

  it('tells what nobody has got from what nobody has answered', async () => {
    const cluster = await startCluster({ brokers: 2 });
    const brokers = new Brokers({ kafka: kafkaOf(cluster) });
    cluster.fault({ api: 'ApiVersions', deed: 'hang up before' });
    const [address] = cluster.addresses;
    await expect(brokers.send(address!, metadata([TOPIC]))).rejects.toBeInstanceOf(CallNotSent);
    cluster.fault({ api: 'Metadata', deed: 'hang up before' });
    await expect(brokers.send(address!, metadata([TOPIC]))).rejects.toBeInstanceOf(CallUnanswered);
    brokers.close();
    await expect(brokers.send(address!, metadata([TOPIC]))).rejects.toBeInstanceOf(CallNotSent);
  });

  it('asks all whom it knows, and first whoever has answered', async () => {
    const cluster = await startCluster({ brokers: 3 });
    const brokers = new Brokers({ kafka: kafkaOf(cluster) });
    const isFirst = ({ broker }: { broker: number }) => broker === 0;
    cluster.fault({ api: 'Metadata', times: 9, when: isFirst, deed: 'hang up before' });
    for (let n = 0; n < 3; n++) {
      const { topics } = await brokers.sendToAny(metadata([TOPIC]));
      expect(topics[0]!.partitions.length).toBe(6);
    }
    expect(cluster.of('Metadata').map(({ broker }) => broker)).toEqual([0, 1, 1, 1]);
    brokers.close();
  });
});
