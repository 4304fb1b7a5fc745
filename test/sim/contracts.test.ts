import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Kafka, logLevel } from 'kafkajs';
import { expect, onTestFinished } from 'vitest';
import { kafkaTransactionalLog } from '../../src/sinks/open-kafka.ts';
import { openStore } from '../../src/state/store.ts';
import { ScriptedCluster } from '../support/scripted-cluster.ts';
import { brokerContract } from './log-contract.ts';
import { brokerOf, SimBroker } from './sim-broker.ts';
import { SimFolder, storeOf } from './sim-store.ts';
import { storeContract } from './store-contract.ts';

const step = () => Promise.resolve();

brokerContract('the simulated one', () =>
  Promise.resolve({
    broker: brokerOf(new SimBroker(() => 1), { step, fate: () => 'done', now: () => 0 }),
    topic: 'sim',
  }),
);

brokerContract('the scripted one', async () => {
  const topic = 'scripted';
  const cluster = await ScriptedCluster.start({
    brokers: 2,
    topics: { [topic]: 1 },
    maxWaitMs: 10,
  });
  const kafka = new Kafka({ brokers: cluster.brokers, logLevel: logLevel.NOTHING });
  onTestFinished(async () => {
    await cluster.close();
    expect(cluster.errors).toEqual([]);
  });
  return { broker: kafkaTransactionalLog({ kafka }, { partitions: new Map([[topic, 1]]) }), topic };
});

storeContract('the simulated one', () => storeOf(new SimFolder(), step).task('sim'));

storeContract('lmdb', () => {
  const folder = mkdtempSync(join(tmpdir(), 'cellarstream-contract-'));
  const store = openStore(folder);
  onTestFinished(async () => {
    await store.close();
    rmSync(folder, { recursive: true });
  });
  return store.task('real');
});
