import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { Kafka, logLevel } from 'kafkajs';
import { scaled } from '../support/scale.ts';
import { compose, docker, expectNoRepetition, get, ON_HOST, replayed } from './docker.ts';

const SOON = { timeout: 120_000, interval: 500 };
const PLAIN = ['docker-compose.yml', 'test/docker/retention.yml'];
const FLEET = ['docker-compose.yml', 'deploy/compose/fleet.yml'];
const STATUS = 'http://127.0.0.1:9464';

const up = (files: readonly string[]) => compose(files, 'up', '--build', '--detach', '--wait');
const kafka = new Kafka({ brokers: [ON_HOST.KAFKA_BROKERS], logLevel: logLevel.NOTHING });

describe('docker-compose.yml', () => {
  beforeAll(async () => {
    await up(PLAIN);
  });
  afterAll(() => compose(PLAIN, 'down', '--volumes'));

  it('is ready when `up --wait` ends, with ports on loopback alone', async () => {
    await vi.waitFor(async () => expect(await get(`${STATUS}/readyz`)).toBe('ready'), SOON);
    const ports = await compose(PLAIN, 'ps', '--format', '{{.Ports}}');
    expect(ports).toContain('127.0.0.1:9092->9092/tcp');
    expect(ports).not.toContain('0.0.0.0');
  });

  it('has events for programs on the host', async () => {
    await vi.waitFor(async () => expect(await replayed('products')).not.toEqual([]), SOON);
    expectNoRepetition(await replayed('orders'));
  });

  it('ends with 0 on SIGTERM, and goes on after a start without a repetition', async () => {
    await compose(PLAIN, 'stop', 'service');
    const service = await compose(PLAIN, 'ps', '--all', '--quiet', 'service');
    expect(await docker('inspect', '--format', '{{.State.ExitCode}}', service)).toBe('0');
    const { length } = await replayed('orders');
    await compose(PLAIN, 'up', '--detach', '--wait', 'service');
    await vi.waitFor(
      async () => expect((await replayed('orders')).length).toBeGreaterThan(length),
      SOON,
    );
    expectNoRepetition(await replayed('orders'));
  });

  it.runIf(scaled(false, true))(
    'keeps the schemas of the registry beyond the retention of the broker',
    { timeout: 300_000 },
    async () => {
      const subjects = () => get(`${ON_HOST.SCHEMA_REGISTRY_URL}/subjects`);
      const before = await subjects();
      // A topic with the retention of retention.yml. When its only message is deleted, the older ones of the registry's topic would be, too.
      const admin = kafka.admin();
      const producer = kafka.producer();
      await Promise.all([admin.connect(), producer.connect()]);
      const configEntries = [{ name: 'retention.ms', value: '60000' }];
      await admin.createTopics({ topics: [{ topic: 'canary', configEntries }] });
      await producer.send({ topic: 'canary', messages: [{ value: '' }] });
      await vi.waitFor(
        async () => expect((await admin.fetchTopicOffsets('canary'))[0]?.low).toBe('1'),
        { timeout: 240_000, interval: 1_000 },
      );
      await Promise.all([admin.disconnect(), producer.disconnect()]);
      await compose(PLAIN, 'restart', 'registry');
      await compose(PLAIN, 'up', '--detach', '--wait', 'registry');
      expect(await subjects()).toBe(before);
      expect(await replayed('products')).not.toEqual([]);
    },
  );

  it.runIf(scaled(false, true))('goes on after `down` and `up` with its volumes', async () => {
    const { length } = await replayed('products');
    await compose(PLAIN, 'down');
    await up(PLAIN);
    await vi.waitFor(async () => expect(await get(`${STATUS}/readyz`)).toBe('ready'), SOON);
    const events = await replayed('products');
    expect(events.length).toBeGreaterThanOrEqual(length);
    expectNoRepetition(events);
  });
});

describe('the image', () => {
  it('has what runs and no more, and no root', async () => {
    const find = 'find dist -name "*.d.ts" -o -name "*.map" -o -name ".tsbuildinfo"; id -u';
    const found = docker('run', '--rm', '--entrypoint', 'sh', 'cellarstream:local', '-c', find);
    expect(await found).toBe('1000');
  });

  it('says in one line what the demo lacks in it', async () => {
    const error = await docker('run', '--rm', 'cellarstream:local', 'demo').catch(
      (error: unknown) => error as { readonly code: number; readonly stderr: string },
    );
    expect(error).toMatchObject({ code: 1 });
    expect((error as { readonly stderr: string }).stderr.trim().split('\n').at(-1)).toMatch(
      /^cellarstream: Kafka and a schema registry cannot be started: /,
    );
  });
});

describe.runIf(scaled(false, true))('deploy/compose/fleet.yml', () => {
  beforeAll(async () => {
    await up(FLEET);
  });
  afterAll(() => compose(FLEET, 'down', '--volumes'));

  it('runs all accounts, and the others take over those of an instance that stops', async () => {
    const owners = async (port: number) => {
      const { accounts } = JSON.parse(await get(`http://127.0.0.1:${port}/status`)) as {
        readonly accounts: readonly {
          readonly owner: string | null;
        }[];
      };
      return accounts.map(({ owner }) => owner);
    };
    const expectOwners = async (port: number, names: RegExp) => {
      const found = await owners(port);
      expect(found).toHaveLength(6);
      for (const owner of found) expect(owner).toMatch(names);
    };
    await vi.waitFor(async () => expectOwners(9464, /^cellar-[012]$/), SOON);
    await compose(FLEET, 'stop', 'cellar-1');
    await vi.waitFor(async () => expectOwners(9464, /^cellar-[02]$/), SOON);
  });
});
