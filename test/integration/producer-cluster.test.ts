import { Kafka, logLevel } from 'kafkajs';
import type { Admin } from 'kafkajs';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { JavaServices } from '../../src/devstack/services.ts';
import { Connections } from '../../src/kafka/client/connections.ts';
import { withAdmin } from '../support/with-admin.ts';
import { nodeOf, startCluster } from './support/cluster.ts';
import { inSync, moveLeader, partitionStates } from './support/partitions.ts';
import type { PartitionState } from './support/partitions.ts';
import { producerContract } from './support/producer-contract.ts';
import { PARTITIONS, writtenOn } from './support/producer-topic.ts';
import type { Written } from './support/producer-topic.ts';

let cluster: JavaServices | string;
beforeAll(async () => {
  cluster = await startCluster();
});
afterAll(() => (typeof cluster === 'string' ? undefined : cluster.stop()));

producerContract('three brokers', () => (typeof cluster === 'string' ? cluster : cluster.brokers));

describe('a producer, while three brokers change', () => {
  /** Page after page until it is over, as a task does: what failed is begun anew by another producer. */
  async function writeDuring(written: Written, disturbance: Promise<unknown>) {
    const known: string[] = [];
    const inDoubt = new Set<string>();
    let isOver = false;
    const over = disturbance.finally(() => (isOver = true));
    let sink = await written.open();
    for (let n = 0, after = 0; after < 10; n++) {
      if (isOver) after += 1;
      try {
        await sink.commit(written.page(String(n)));
        known.push(String(n));
      } catch {
        inDoubt.add(String(n));
        await sink.close();
        sink = await written.open(sink.producer);
      }
    }
    await over;
    await sink.close();
    const found = await written.committed(PARTITIONS * known.length);
    // Whatever has become of those in doubt, it is the same in all partitions.
    const expected = found[0]!.filter((value) => inDoubt.has(value) || known.includes(value));
    for (const values of found) expect(values).toEqual(expected);
    expect(new Set(expected).size).toBe(expected.length);
    expect(expected.filter((value) => !inDoubt.has(value))).toEqual(known);
    expect(expected.map(Number)).toEqual(expected.map(Number).toSorted((a, b) => a - b));
    return { committed: known.length, inDoubt: inDoubt.size };
  }

  const onCluster = (
    name: string,
    disturb: (written: Written, cluster: JavaServices) => Promise<unknown>,
    most: { readonly inDoubt: number },
  ) =>
    it(name, { timeout: 180_000 }, async ({ skip }) => {
      if (typeof cluster === 'string') return skip(cluster);
      const written = await writtenOn(cluster.brokers);
      await inSync(written.kafka);
      const { inDoubt } = await writeDuring(written, disturb(written, cluster));
      expect(inDoubt).toBeLessThanOrEqual(most.inDoubt);
      await inSync(written.kafka);
    });

  const moveOn = (admin: Admin, state: PartitionState) => {
    const { replicas, leader } = state;
    return moveLeader(admin, state, replicas[(replicas.indexOf(leader) + 1) % replicas.length]!);
  };
  /** Each partition is led by the next of its replicas, one after the other. */
  const moveEach = ({ kafka, topic }: Written) =>
    withAdmin(kafka, async (admin) => {
      for (const state of await partitionStates(admin, [topic])) await moveOn(admin, state);
    });
  /** The same, all at once. */
  const moveAll = ({ kafka, topic }: Written) =>
    withAdmin(kafka, async (admin) => {
      const states = await partitionStates(admin, [topic]);
      await Promise.all(states.map((state) => moveOn(admin, state)));
    });
  const leaderOf = ({ kafka, topic }: Written, { nodes }: JavaServices) =>
    withAdmin(kafka, async (admin) => {
      const [state] = await partitionStates(admin, [topic]);
      return nodeOf({ nodes }, state!.leader);
    });

  it('loses nothing where leaders have moved between two commits', async ({ skip }) => {
    if (typeof cluster === 'string') return skip(cluster);
    const written = await writtenOn(cluster.brokers);
    const sink = await written.open();
    for (const value of ['1', '2', '3']) {
      await sink.commit(written.page(value));
      await moveAll(written);
    }
    await sink.commit(written.page('4'));
    for (const values of await written.committed(4 * PARTITIONS)) {
      expect(values).toEqual(['1', '2', '3', '4']);
    }
    await sink.close();
  });

  onCluster('loses nothing and needs no other one while leaders move', moveEach, { inDoubt: 0 });

  onCluster(
    'loses nothing while a broker is restarted gently',
    async (written, services) => {
      const node = await leaderOf(written, services);
      await node.stop();
      await node.start();
    },
    { inDoubt: 2 },
  );

  it('loses nothing of one by itself, nor of many that share connections, while a broker is killed, and comes back', async ({
    skip,
  }) => {
    if (typeof cluster === 'string') return skip(cluster);
    const { brokers } = cluster;
    const kafka = new Kafka({ brokers: [...brokers], logLevel: logLevel.NOTHING });
    const connections = new Connections(kafka, 2);
    onTestFinished(() => connections.close());
    const all = await Promise.all([
      writtenOn(brokers),
      ...Array.from({ length: 8 }, () => writtenOn(brokers, connections)),
    ]);
    await inSync(kafka);
    const node = await leaderOf(all[0], cluster);
    const killed = node.kill().then(() => node.start());
    for (const { inDoubt } of await Promise.all(all.map((each) => writeDuring(each, killed))))
      expect(inDoubt).toBeLessThanOrEqual(2);
    await inSync(kafka);
  }, 180_000);
});
