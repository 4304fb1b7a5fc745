import { describe, expect, it, onTestFinished } from 'vitest';
import { startServices } from '../../src/services/start-services.ts';
import { checkOrders, checkStatusChanges } from './support/checker.ts';
import { publishedTruth } from './support/published-truth.ts';
import {
  cliForTest,
  firstReadDone,
  folderForTest,
  sandboxForTest,
  settings,
} from './support/service.ts';
import { readTopic } from './support/topic-reader.ts';

describe('run', () => {
  it('goes on by itself after the broker was killed, and has published every change once', async (test) => {
    const services = await startServices(); // its own: the broker of the others must live
    onTestFinished(() => services.stop());
    if (services.origin !== 'java') return test.skip('a broker is only killed where it is ours');
    const { kafka, brokers, registryUrl } = services;
    const sandbox = await sandboxForTest({ records: { orders: 5_000 }, changesPerSecond: 40 });
    const service = cliForTest(['run'], {
      ...settings(sandbox, 'outage', folderForTest()),
      KAFKA_BROKERS: brokers.join(','),
      SCHEMA_REGISTRY_URL: registryUrl,
      SWEEP_INTERVAL_MS: '1000', // orders are deleted too
    });
    await firstReadDone(service);

    await kafka.kill();
    await service.logged(({ event, what }) => event === 'retry' && what === 'kafka');
    const asked = sandbox.truth.requests('orders').length;
    await service.logged(({ event, count }) => event === 'retry' && Number(count) >= 2);
    // Nothing piles up: requests stop while nothing can be committed.
    expect(sandbox.truth.requests('orders').length).toBe(asked);
    await kafka.start();
    sandbox.setRate(0);
    await publishedTruth(brokers, registryUrl, 'outage', sandbox);
    expect(await service.end('SIGTERM')).toBe(0);

    const events = await readTopic(brokers, registryUrl, 'outage.orders');
    expect(checkOrders(events, sandbox).violations).toEqual([]);
    const statuses = await readTopic(brokers, registryUrl, 'outage.order-status-changes');
    expect(checkStatusChanges(statuses, events).violations).toEqual([]);
  });
});
