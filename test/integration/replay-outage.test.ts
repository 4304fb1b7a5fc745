import { Kafka, logLevel } from 'kafkajs';
import { Subject, lastValueFrom, tap } from 'rxjs';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { replay } from '../../src/consumers/replay.ts';
import { topicsUnder } from '../../src/consumers/wine-topics.ts';
import { createRegistry } from '../../src/schemas/registry/registry.ts';
import { startServices } from '../../src/devstack/start-services.ts';
import type { Services } from '../../src/devstack/services.ts';
import { serverVersions } from './support/server-versions.ts';
import { numbers, writtenTopic } from './support/written-topic.ts';

const PATIENCE = { timeout: 100_000, interval: 100 };

let services: Services;
beforeAll(async () => {
  services = await startServices(serverVersions());
});
afterAll(() => services.stop());

it('goes on where it was when the broker is back, with none twice', async (test) => {
  if (services.origin !== 'java') return test.skip('a broker is only killed where it is ours');
  const kafka = new Kafka({ brokers: services.brokers, logLevel: logLevel.NOTHING });
  const registry = createRegistry({ url: services.registryUrl });
  const topic = topicsUnder('outage').orderStatusChanges;
  const written = await writtenTopic({ kafka, registry }, topic.name, 3);
  for (const partition of [0, 1, 2]) await written.write(partition, numbers(0, 99));

  const seen: string[] = [];
  const stop$ = new Subject<void>();
  const following = lastValueFrom(
    replay({ kafka, registry, topic, to: 'never', stop$ }).pipe(
      tap(({ partition, offset }) => seen.push(`${partition}:${offset}`)),
    ),
  );
  await vi.waitUntil(() => seen.length === 300, PATIENCE);

  for (const length of [600, 900]) {
    await services.kafka.kill();
    await services.kafka.start();
    for (const partition of [0, 1, 2]) {
      await vi.waitUntil(
        () => written.write(partition, numbers(100, 199)).then(() => true),
        PATIENCE,
      );
    }
    await vi.waitUntil(() => seen.length >= length, PATIENCE);
  }
  stop$.next();
  await following;
  expect(new Set(seen).size).toBe(900);
  expect(seen).toHaveLength(900);
  await registry.close();
}, 200_000);
