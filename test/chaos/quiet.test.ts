import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { BROKERS, IS_SHORT, reportOf, SEED } from './settings.ts';
import { disagreements } from './verdict.ts';
import { World } from './world.ts';

/** Lists so small that a few deletions are a large part of them. */
const RECORDS = { orders: 500, customers: 340, inventory: 150, products: 80 };
/** How long each broker is down, and how long nothing happens after it, ms. */
const DOWN_MS = 15_000;
const BETWEEN_MS = 20_000;
/** How long after the last change the topics may differ from the API, ms; the proof of a deletion alone takes 60,000. */
const AGREE_WITHIN_MS = 90_000;

it.skipIf(BROKERS === '1' || IS_SHORT)(
  'publishes every deletion within 90 s of the last change, after brokers were restarted, killed and paused',
  async (test) => {
    const world = await World.start({
      seed: SEED,
      cluster: { isReauthenticated: false },
      records: RECORDS,
      changesPerSecond: 20,
      settings: { DELETE_PROOF_MS: '60000', SWEEP_INTERVAL_MS: '5000' },
    });
    if (typeof world === 'string') return test.skip(world);
    onTestFinished(() => world.close());
    const report = reportOf(3);
    if (report !== undefined) onTestFinished(() => world.saveLogs(report));

    await world.ready();
    world.traffic(true);
    for (const node of world.services.nodes) {
      await sleep(BETWEEN_MS);
      await node.stop();
      await node.start();
      await sleep(BETWEEN_MS);
      await node.kill();
      await node.start();
      await sleep(BETWEEN_MS);
      node.pause();
      await sleep(DOWN_MS);
      node.resume();
    }
    world.traffic(false);

    const quietSince = performance.now();
    let wrong: string[];
    do {
      await sleep(500); // between two looks
      await world.topics.update();
      wrong = disagreements(world);
    } while (wrong.length > 0 && performance.now() - quietSince < AGREE_WITHIN_MS);
    console.log(`agreed after ${Math.round((performance.now() - quietSince) / 1_000)} s`);
    expect(wrong.slice(0, 5)).toEqual([]);
    expect(await world.service.end('SIGTERM')).toBe(0);
  },
  1_200_000,
);
