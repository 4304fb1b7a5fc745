import { describe, expect, it, onTestFinished } from 'vitest';
import { Connections } from '../../../src/kafka/client/connections.ts';
import { openKafkaProducer } from '../../../src/sinks/producer/kafka-producer.ts';
import type { FencedSink, ProducerIdentity } from '../../../src/sinks/sink.ts';
import type { ScriptedCluster } from '../../support/scripted-cluster.ts';
import {
  SHORT_MS,
  arrived,
  checkServers,
  committed,
  each,
  gate,
  kafkaOf,
  messages,
  startCluster,
} from '../../sinks/producer/on-scripted-cluster.ts';

checkServers();

const MOST = 3;

/** Producers that share connections, each with an id of its own. */
function sharing(
  cluster: ScriptedCluster,
  answerWithinMs?: number,
  brokers: readonly string[] = cluster.brokers,
) {
  const kafka = kafkaOf(cluster, { brokers: [...brokers] });
  const connections = new Connections(kafka, MOST);
  onTestFinished(() => connections.close());
  return async (id: string, own?: ProducerIdentity): Promise<FencedSink> => {
    const partitions = new Map(cluster.partitions);
    const sink = await openKafkaProducer({
      ...{ kafka, connections, partitions, previousIdentity: own },
      transactionalId: id,
      ...(answerWithinMs !== undefined && { responseTimeoutMs: answerWithinMs }),
    });
    onTestFinished(() => sink.close());
    return sink;
  };
}

/** What each partition holds, whatever the order: that of different producers is nobody's. */
const sorted = (cluster: ScriptedCluster) => committed(cluster).map((values) => values.toSorted());
const names = (count: number) => Array.from({ length: count }, (_, n) => `task-${n}`).toSorted();

describe('producers that share connections', () => {
  it('commit side by side over a few, each what is its own', async () => {
    const cluster = await startCluster({ brokers: 2 });
    const open = sharing(cluster);
    const ids = names(30);
    const sinks = await Promise.all(ids.map((id) => open(id)));
    await Promise.all(sinks.map((sink, n) => sink.commit(messages(ids[n]!))));
    expect(sorted(cluster)).toEqual(each(...ids));
    const ofBroker = [0, 1].map(
      (broker) =>
        new Set(
          cluster.requests.filter((one) => one.broker === broker).map((one) => one.connection),
        ).size,
    );
    expect(ofBroker).toEqual([MOST, MOST]);
    expect(cluster.open).toBe(2 * MOST);
  });

  it('have no more of them where the settings name a broker otherwise than it advertises itself', async () => {
    const cluster = await startCluster(); // advertises 127.0.0.1
    const open = sharing(cluster, undefined, [`localhost:${cluster.addresses[0]!.port}`]);
    const ids = names(30);
    const sinks = await Promise.all(ids.map((id) => open(id)));
    await Promise.all(sinks.map((sink, n) => sink.commit(messages(ids[n]!))));
    expect(sorted(cluster)).toEqual(each(...ids));
    // One that finds the brokers, and is closed then.
    expect(new Set(cluster.requests.map(({ connection }) => connection)).size).toBe(1 + MOST);
    expect(cluster.open).toBe(MOST);
  });

  it('do not end each other: one that is closed ends its own waiting alone', async () => {
    const cluster = await startCluster();
    const open = sharing(cluster);
    const ids = names(12);
    const sinks = await Promise.all(ids.map((id) => open(id)));
    const { isOpen, open: letGo } = gate();
    cluster.fault({ api: 'Produce', times: 99, first: () => isOpen });
    const commits = sinks.map((sink, n) => sink.commit(messages(ids[n]!)));
    commits[0]!.catch(() => undefined);
    await arrived(cluster, 'Produce', MOST);
    const [first] = cluster.of('Produce');
    const closedAt = ids.indexOf(first!.body.transactionalId!);
    const connectionsBefore = cluster.open;
    const began = performance.now();
    const closed = commits[closedAt]!.catch((error: unknown) => error);
    await sinks[closedAt]!.close();
    expect(await closed).toMatchObject({ code: 'COMMIT_FAILED' });
    expect(performance.now() - began).toBeLessThan(500);
    expect(cluster.open).toBe(connectionsBefore);
    letGo();
    await Promise.all(commits.filter((_, n) => n !== closedAt));
    expect(sorted(cluster)).toEqual(each(...ids.filter((_, n) => n !== closedAt)));
    expect(cluster.of('Produce').length).toBe(ids.length); // nothing had to be sent again
  });

  it.each(['AddPartitionsToTxn', 'Produce'] as const)(
    'leave nothing of one that is closed: its %s arrives when the next of its id is there',
    async (api) => {
      const cluster = await startCluster();
      const open = sharing(cluster);
      const sink = await open('task');
      const { isOpen, open: letGo } = gate();
      cluster.fault({ api, first: () => isOpen });
      const commit = sink.commit(messages('1')).catch((error: unknown) => error);
      await arrived(cluster, api, 1);
      await sink.close();
      expect(await commit).toMatchObject({ code: 'COMMIT_FAILED' });
      const next = await open('task', sink.producer);
      letGo();
      await next.commit(messages('2'));
      await next.commit(messages('3'));
      expect(committed(cluster)).toEqual(each('2', '3'));
    },
  );

  it('know what has become of a commit when the next is there: a late EndTxn ends nothing', async () => {
    const cluster = await startCluster();
    const open = sharing(cluster);
    const sink = await open('task');
    const { isOpen, open: letGo } = gate();
    const isCommit = ({ body }: { body: object }) => 'outcome' in body && body.outcome === 'commit';
    cluster.fault({ api: 'EndTxn', when: isCommit, first: () => isOpen });
    const commit = sink.commit(messages('1')).catch((error: unknown) => error);
    await arrived(cluster, 'EndTxn', 1);
    await sink.close();
    expect(await commit).toMatchObject({ code: 'COMMIT_FAILED' });
    const next = await open('task', sink.producer);
    expect(committed(cluster)).toEqual(each());
    letGo();
    await next.commit(messages('2'));
    expect(committed(cluster)).toEqual(each('2'));
  });

  it('send again what was under way where an answer to one of them was late, once each', async () => {
    const cluster = await startCluster();
    const open = sharing(cluster, SHORT_MS);
    const ids = names(12);
    const sinks = await Promise.all(ids.map((id) => open(id)));
    const { isOpen, open: letGo } = gate();
    cluster.fault({ api: 'Produce', first: () => isOpen });
    const commits = sinks.map((sink, n) => sink.commit(messages(ids[n]!)));
    await Promise.all(commits);
    const again = cluster.of('Produce').length - ids.length;
    expect(again).toBeGreaterThanOrEqual(1); // and it may have had neighbours
    expect(cluster.open).toBeLessThanOrEqual(MOST);
    letGo(); // what was given up arrives
    await Promise.all(sinks.map((sink, n) => sink.commit(messages(ids[n]!))));
    const twice = ids.flatMap((id) => [id, id]).toSorted();
    expect(sorted(cluster)).toEqual(each(...twice));
  });
});
