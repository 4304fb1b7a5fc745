import { setTimeout as sleep } from 'node:timers/promises';
import type { BrokerControl } from '../../src/devstack/services.ts';
import { holdAnswer, loseAnswer } from '../support/proxy/exchange.ts';
import type { Fault as RequestFault } from '../support/proxy/exchange.ts';
import type { ApiName } from '../support/proxy/kafka-frames.ts';
import type { Chance } from '../support/chance.ts';
import type { Cluster } from './cluster.ts';
import { until } from './faults.ts';
import type { Fault } from './faults.ts';
import { lateProduce } from './late-produce.ts';
import { PREFIX, TRANSACTIONAL_ID } from './world.ts';
import type { World } from './world.ts';

/** What a transaction touches, and what keeps it: a coordinator moves with its partition. */
const OURS = [`${PREFIX}.`];
const OURS_AND_KAFKAS = [...OURS, '__transaction_state', '__consumer_offsets'];

/** A fault of three brokers. Each is over when all of them are up, if not yet in sync. */
function onCluster(
  name: string,
  strike: (cluster: Cluster, chance: Chance, world: World) => Promise<void>,
  more: Pick<Fault, 'isLong'> = {},
): Fault {
  return {
    name,
    ...more,
    strike: (world, chance) => {
      if (!world.cluster) throw new Error(`${name}: there is one broker`);
      return strike(world.cluster, chance, world);
    },
  };
}

const isLong = { isLong: true } as const;

/** Every answer to such requests for five seconds, to whichever broker they went; at least one. */
function everyAnswer(name: string, api: ApiName, fault: RequestFault, lastsMs: number): Fault {
  return onCluster(
    name,
    async ({ proxy }) => {
      let struck = 0;
      const lift = proxy.afflict({ api }, (exchange) => {
        struck += 1;
        return fault(exchange);
      });
      try {
        await Promise.all([
          sleep(5_000),
          until(() => struck > 0, 60_000, `${name}: there was no ${api}`),
        ]);
      } finally {
        lift();
      }
      await sleep(lastsMs);
    },
    isLong,
  );
}

const HELD_MS = 20_000;
const late = holdAnswer(() => sleep(HELD_MS));

async function killed(node: BrokerControl): Promise<void> {
  await node.kill();
  await node.start();
}

async function restarted(node: BrokerControl): Promise<void> {
  await node.stop();
  await node.start();
}

async function paused(nodes: readonly BrokerControl[], ms: number): Promise<void> {
  for (const node of nodes) node.pause();
  await sleep(ms);
  for (const node of nodes) node.resume();
}

/** Those that the gate has time for. */
export const LEADER_MOVED = onCluster(
  'one leader moved while all brokers are up',
  (cluster, chance) => cluster.moveLeaders(1, OURS, chance),
);
export const RESTARTED_GENTLY = onCluster('broker restarted gently', (_, chance, world) =>
  restarted(world.broker(chance)),
);
export const KILLED = onCluster('one of three brokers killed and started', (_, chance, world) =>
  killed(world.broker(chance)),
);

export const CLUSTER_FAULTS: readonly Fault[] = [
  LEADER_MOVED,
  RESTARTED_GENTLY,
  KILLED,
  onCluster('several leaders moved while all brokers are up', async (cluster, chance) => {
    await cluster.moveLeaders(8, OURS, chance);
    await cluster.moveLeaders(8, OURS_AND_KAFKAS, chance);
  }),
  onCluster(
    'one of three brokers paused for 15 to 30 s',
    (_, chance, world) => paused([world.broker(chance)], 15_000 + chance.below(15_000)),
    isLong,
  ),
  onCluster('broker of the transaction coordinator killed', async (cluster) =>
    killed(await cluster.coordinatorOf('transaction', TRANSACTIONAL_ID)),
  ),
  onCluster('broker of the group coordinator killed while it reads', async (cluster, _, world) => {
    const { topics } = world;
    const before = topics.group;
    let isRead = false;
    const reading = topics.update().finally(() => (isRead = true));
    reading.catch(() => undefined); // it is looked at when the kill is done
    await until(() => isRead || topics.group !== before, 60_000, 'the checker joins no group');
    await killed(await cluster.coordinatorOf('group', topics.group));
    await reading;
  }),
  onCluster('active controller killed', async (cluster) =>
    killed(await cluster.activeController()),
  ),
  onCluster(
    'rolling restart of all three brokers',
    async (cluster) => {
      for (const node of cluster.nodes) {
        await restarted(node);
        await cluster.inSync();
      }
    },
    isLong,
  ),
  onCluster(
    'one broker cut off from the service for 20 s',
    async (cluster, chance, world) => {
      const { tcp } = cluster.proxyOf(world.broker(chance));
      tcp.refuse();
      tcp.darken();
      await sleep(20_000);
      await tcp.admit();
    },
    isLong,
  ),
  onCluster(
    'one broker takes connections and says nothing for 20 s',
    async (cluster, chance, world) => {
      const { tcp } = cluster.proxyOf(world.broker(chance));
      tcp.fallSilent();
      await sleep(20_000);
      tcp.answer();
    },
    isLong,
  ),
  onCluster(
    'fewer than min.insync.replicas for 30 s',
    async (cluster, chance, world) => {
      const node = world.broker(chance);
      await cluster.setLeastInSync(3, `${PREFIX}.`);
      await node.kill();
      await sleep(30_000);
      await node.start();
      await cluster.setLeastInSync(2, `${PREFIX}.`);
    },
    isLong,
  ),
  onCluster(
    'two of three brokers paused for 30 s',
    (cluster, chance, world) => {
      const spared = world.broker(chance);
      return paused(
        cluster.nodes.filter((node) => node !== spared),
        30_000,
      );
    },
    isLong,
  ),
  everyAnswer('answers to EndTxn delayed by 20 s', 'EndTxn', late, HELD_MS),
  everyAnswer('answers to Produce delayed by 20 s', 'Produce', late, HELD_MS),
  everyAnswer('answers to EndTxn lost', 'EndTxn', loseAnswer, 0),
  everyAnswer('answers to Produce lost', 'Produce', loseAnswer, 0),
  onCluster(
    'a Produce that arrives in the next transaction',
    ({ proxy }) => lateProduce(proxy, TRANSACTIONAL_ID),
    isLong,
  ),
];
