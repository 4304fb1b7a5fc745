import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import kafkajs, { Kafka, logLevel } from 'kafkajs';
import { describe, expect, inject, it, vi } from 'vitest';
import { saidBy } from './support/cli.ts';
import { createTopic } from './support/created-topic.ts';
import { besideEachOther, PATIENCE_MS, TIMEOUT } from './support/running-test.ts';
import {
  cliForTest,
  firstReadDone,
  folderForTest,
  sandboxForTest,
  settings,
} from './support/service.ts';

const PATIENCE = { timeout: PATIENCE_MS, interval: 200 };
besideEachOther();

/** A loopback port on which nothing listens. */
async function deadPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

describe.concurrent('run', TIMEOUT, () => {
  it('does not publish under the prefix of another account, whose records it would take for its own', async () => {
    const sandbox = await sandboxForTest({ records: { orders: 10 } });
    const first = cliForTest(['run'], settings(sandbox, 'shared', folderForTest()));
    await firstReadDone(first);
    const env = { ...settings(sandbox, 'shared', folderForTest()), ACCOUNT_NAME: 'other' };
    const other = cliForTest(['run'], env);
    expect(await other.ended).toBe(2);
    expect(saidBy(other.stderr())).toEqual([
      expect.stringMatching(/^cellarstream: .* set a TOPIC_PREFIX that no other account uses$/),
    ]);
    expect(first.process.exitCode).toBeNull();
  });

  it('does not share a state folder with another process', async () => {
    const sandbox = await sandboxForTest({ records: { orders: 10 } });
    const env = settings(sandbox, 'locked', folderForTest());
    const first = cliForTest(['run'], env);
    await firstReadDone(first);
    const second = cliForTest(['run'], env);
    expect(await second.ended).toBe(1);
    expect(saidBy(second.stderr())).toEqual([
      expect.stringMatching(/^cellarstream: another process uses the state folder .* STATE_DIR/),
    ]);
    expect(first.process.exitCode).toBeNull();
  });

  it('ends at once with a wrong API key, which it does not print', async () => {
    const sandbox = await sandboxForTest({ records: { orders: 10 } });
    const key = 'secret-wrong-key';
    const env = { ...settings(sandbox, 'wrong-key', folderForTest()), API_KEY: key };
    const service = cliForTest(['run'], env);
    expect(await service.ended).toBe(1);
    expect(saidBy(service.stderr())).toEqual([
      expect.stringMatching(/^cellarstream: the login .* API_KEY/),
    ]);
    expect(service.stderr() + service.stdout()).not.toContain(key);
  });

  it('waits for an API that redirects, and goes on when it answers again', async () => {
    const sandbox = await sandboxForTest({ records: { orders: 10 } });
    const headers = { location: 'https://maintenance.example/' };
    const lift = sandbox.fault({ endpoint: 'orders', kind: 'status', status: 302, headers });
    const service = cliForTest(['run'], settings(sandbox, 'redirects', folderForTest()));
    await service.logged(
      ({ event, what, count }) => event === 'retry' && what === 'orders' && count === 2,
    );
    lift();
    await firstReadDone(service);
  });

  it('names all wrong settings at once, and ends with 2', async () => {
    const env = {
      RESOURCES: 'oders',
      POLL_INTERVAL_MS: '5',
      KAFKA_BROKERS: '',
      API_KEY: 'secret-key',
    };
    const service = cliForTest(['run'], { ...env, STATE_DIR: folderForTest() });
    expect(await service.ended).toBe(2);
    for (const name of [
      'RESOURCES',
      'POLL_INTERVAL_MS',
      'KAFKA_BROKERS',
      'API_BASE_URL',
      'SCHEMA_REGISTRY_URL',
    ]) {
      expect(service.stderr()).toContain(name);
    }
    expect(service.stderr()).not.toMatch(/secret-key|\n\s+at /);
  });

  it('ends at once when a topic exists with a policy that would lose data', async () => {
    const sandbox = await sandboxForTest({ records: { orders: 10 } });
    await createTopic(new Kafka({ brokers: inject('brokers'), logLevel: logLevel.NOTHING }), {
      topic: 'wrong-policy.orders',
      configEntries: [{ name: 'cleanup.policy', value: 'delete' }],
    });
    const service = cliForTest(['run'], settings(sandbox, 'wrong-policy', folderForTest()));
    expect(await service.ended).toBe(1);
    expect(saidBy(service.stderr())).toEqual([
      expect.stringMatching(/^cellarstream: .*wrong-policy\.orders has cleanup\.policy=delete/),
    ]);
  });

  it('waits for a Kafka that is not there, a line a try; check says so and ends with 1', async () => {
    const sandbox = await sandboxForTest({ records: { orders: 10 } });
    const env = {
      ...settings(sandbox, 'no-kafka', folderForTest()),
      KAFKA_BROKERS: `127.0.0.1:${await deadPort()}`,
    };
    const service = cliForTest(['run'], env);
    const line = await service.logged(
      ({ event, what, count }) => event === 'retry' && what === 'kafka' && count === 1,
    );
    expect(JSON.stringify(line)).toContain('ECONNREFUSED');
    expect(await service.end('SIGTERM')).toBe(0);
    expect(saidBy(service.stderr())).toEqual([]);

    const check = cliForTest(['check'], { ...env, STATE_DIR: folderForTest() });
    expect(await check.ended).toBe(1);
    expect(check.stdout()).toMatch(/^login +ok/m);
    expect(check.stdout()).toMatch(/^kafka +FAIL .*ECONNREFUSED/m);
    expect(check.stdout()).toMatch(/^registry +ok/m);
  });

  it('waits for a registry that is not there, a line a try; check says so and ends with 1', async () => {
    const sandbox = await sandboxForTest({ records: { orders: 10 } });
    const url = `http://127.0.0.1:${await deadPort()}`;
    const env = { ...settings(sandbox, 'no-registry', folderForTest()), SCHEMA_REGISTRY_URL: url };
    const service = cliForTest(['run'], env);
    const line = await service.logged(({ event, count }) => event === 'retry' && count === 1);
    expect(JSON.stringify(line)).toMatch(/registry/);
    expect(await service.end('SIGTERM')).toBe(0);

    const check = cliForTest(['check'], env);
    expect(await check.ended).toBe(1);
    expect(check.stdout()).toMatch(/^registry +FAIL/m);
  });

  it('makes its topics with the settings of the contract', async () => {
    const sandbox = await sandboxForTest({ records: { orders: 10 } });
    const env = { ...settings(sandbox, 'topics', folderForTest()), TOPIC_PARTITIONS: '' };
    const service = cliForTest(['run'], env);
    await firstReadDone(service);
    const admin = new Kafka({ brokers: inject('brokers'), logLevel: logLevel.NOTHING }).admin();
    await admin.connect();
    const setting = async (topic: string, name: string) => {
      const { resources } = await admin.describeConfigs({
        includeSynonyms: false,
        resources: [{ type: kafkajs.ConfigResourceTypes.TOPIC, name: topic, configNames: [name] }],
      });
      return resources[0]?.configEntries[0]?.configValue;
    };
    expect(await setting('topics.orders', 'cleanup.policy')).toBe('compact');
    expect(await setting('topics.orders', 'min.compaction.lag.ms')).toBe(String(30 * 86_400_000));
    expect(await setting('topics.order-status-changes', 'cleanup.policy')).toBe('delete');
    expect(await setting('topics.order-status-changes', 'retention.ms')).toBe('-1');
    expect(await setting('topics.cursors', 'segment.ms')).toBe('600000');
    const { topics } = await admin.fetchTopicMetadata({
      topics: ['topics.orders', 'topics.cursors'],
    });
    const partitions = topics.map(({ name, partitions }) => [name, partitions.length]);
    expect(Object.fromEntries(partitions)).toEqual({ 'topics.orders': 6, 'topics.cursors': 1 });
    await admin.disconnect();
  });
});

describe.concurrent('check', TIMEOUT, () => {
  it('finds everything fine, changes nothing, and ends with 0', async () => {
    const sandbox = await sandboxForTest({ records: { orders: 10 } });
    const check = cliForTest(['check'], settings(sandbox, 'check', folderForTest()));
    await check.succeeded();
    for (const what of ['settings', 'login', 'orders', 'kafka', 'registry']) {
      expect(check.stdout()).toMatch(new RegExp(`^${what} +ok`, 'm'));
    }
    const admin = new Kafka({ brokers: inject('brokers'), logLevel: logLevel.NOTHING }).admin();
    await admin.connect();
    expect((await admin.listTopics()).filter((topic) => topic.startsWith('check.'))).toEqual([]);
    await admin.disconnect();
  });
});

describe.concurrent('peek', TIMEOUT, () => {
  it('prints what would be published as JSON lines, without Kafka', async () => {
    const sandbox = await sandboxForTest({ records: { orders: 25 } });
    const env = { API_BASE_URL: sandbox.url, API_KEY: sandbox.apiKey, STATE_DIR: folderForTest() };
    const peek = cliForTest(['peek', 'orders'], env);
    await peek.succeeded();
    const events = peek
      .stdout()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { after: unknown });
    expect(events.map(({ after }) => after)).toEqual([...sandbox.truth.records('orders')]);

    const some = cliForTest(['peek', 'orders', '--limit', '3'], env);
    await some.succeeded();
    expect(some.stdout().trim().split('\n')).toHaveLength(3);
  });

  it('prints every line though its reader is slow, and asks for no more meanwhile', async () => {
    const sandbox = await sandboxForTest({ records: { orders: 1_000 } });
    const env = { API_BASE_URL: sandbox.url, API_KEY: sandbox.apiKey, PAGE_SIZE: '100' };
    const peek = cliForTest(['peek', 'orders'], env);
    const { stdout } = peek.process;
    stdout!.pause();
    const asked = () => sandbox.truth.requests('orders').length;
    await vi.waitUntil(() => asked() > 0, PATIENCE);
    let before = -1;
    await vi.waitUntil(() => before === (before = asked()), { ...PATIENCE, interval: 1_500 });
    expect(before).toBeLessThan(6); // a pipe holds no more
    stdout!.resume();
    await peek.succeeded();
    expect(peek.stdout().trimEnd().split('\n')).toHaveLength(1_000);
  });
});
