import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { openStore } from '../../src/state/store.ts';
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
