import { expect, inject, it, vi } from 'vitest';
import { cliForTest, folderForTest, sandboxForTest } from './support/service.ts';

const PREFIX = 'beside';
const SLOW = { timeout: 100_000, interval: 50 };
const isOn = (stderr: string) => stderr.includes('from here on, changes as they happen');

it(
  'a second demo on the Kafka of the first does not end it, and check says who runs',
  { timeout: 240_000 },
  async () => {
    const given = {
      KAFKA_BROKERS: inject('brokers').join(','),
      SCHEMA_REGISTRY_URL: inject('registryUrl'),
      TOPIC_PREFIX: PREFIX,
    };
    const demo = () => cliForTest(['demo', '--orders', '20', '--rate', '5'], given);
    const first = demo();
    await vi.waitUntil(() => isOn(first.stderr()), SLOW);

    const second = demo();
    expect(await second.ended).toBe(2);
    expect(second.stderr()).toMatch(/using the Kafka of KAFKA_BROKERS/);
    expect(second.stderr()).not.toMatch(/starting Kafka/);
    expect(second.stderr().trim().split('\n').at(-1)).toMatch(
      /^cellarstream: TOPIC_PREFIX=beside is in use: .*instance [0-9a-f-]{36} since \d{4}-.*Z.* publishes under it/,
    );
    const lines = first.stdout().length;
    await vi.waitUntil(() => first.stdout().length > lines, SLOW);

    const sandbox = await sandboxForTest({ records: { orders: 5 } });
    const env = { ...given, API_BASE_URL: sandbox.url, API_KEY: sandbox.apiKey };
    const check = () => cliForTest(['check'], { ...env, STATE_DIR: folderForTest() });
    const beside = check();
    await beside.succeeded();
    expect(beside.stdout()).toMatch(
      /^account +warn +instance [0-9a-f-]{36} since .*Z runs default: `cellarstream run` would fence that instance/m,
    );

    expect(await first.end('SIGTERM')).toBe(0);
    const after = check();
    await after.succeeded();
    expect(after.stdout()).not.toMatch(/account/);
  },
);
