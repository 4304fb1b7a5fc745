import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Kafka, logLevel } from 'kafkajs';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { findDocker } from '../../src/devstack/docker.ts';
import { startOnJava } from '../../src/devstack/java-services.ts';
import { findJava, findMaven } from '../../src/devstack/jar-cache.ts';
import { freeLoopbackPorts } from '../../src/devstack/loopback-ports.ts';
import type { JavaServices } from '../../src/devstack/services.ts';
import { startServices } from '../../src/devstack/start-services.ts';
import { withAdmin } from '../support/with-admin.ts';
import { createTopic } from './support/created-topic.ts';

const java = await findJava(process.env);
const maven = await findMaven(process.env);
const docker = await findDocker();

let scratch: string;
beforeAll(() => {
  scratch = mkdtempSync(join(tmpdir(), 'cellarstream-test-'));
});
afterAll(() => {
  rmSync(scratch, { recursive: true });
});

const until = (condition: () => boolean | Promise<boolean>) =>
  vi.waitUntil(condition, { timeout: 30_000, interval: 20 });

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** Whether a command line has it: the servers' and their tether's name the folder of their data. */
function isNamedByAProcess(folder: string): boolean {
  const { error, status } = spawnSync('pgrep', ['-f', folder]);
  if (error) throw error;
  return status === 0;
}

async function listens(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

const portOf = (services: JavaServices) => Number(services.brokers[0]!.split(':')[1]);
const registryPortOf = (services: JavaServices) => Number(new URL(services.registryUrl).port);

function kafkaOf(services: JavaServices) {
  return new Kafka({ brokers: services.brokers, logLevel: logLevel.NOTHING });
}

describe('the first source that applies', () => {
  const absent = { brokers: ['127.0.0.1:1'], registryUrl: 'http://127.0.0.1:1' };

  it('is what the settings name, asked for nothing', async () => {
    const services = await startServices(absent);
    expect(services).toMatchObject({ origin: 'settings', ...absent });
    await services.stop();
  });

  it.each([
    ['brokers', { brokers: absent.brokers, registryUrl: '' }],
    ['a registry', { brokers: [], registryUrl: absent.registryUrl }],
  ])('is refused when the settings name %s alone', async (_, options) => {
    await expect(startServices(options)).rejects.toMatchObject({ code: 'SETTINGS' });
  });

  it.skipIf(docker.isAvailable)(
    'leaves one line that says what to install if there is none',
    async () => {
      await expect(
        startServices({ env: { PATH: '' }, cacheDir: join(scratch, 'nothing') }),
      ).rejects.toMatchObject({
        code: 'SERVICES',
        message:
          'Kafka and a schema registry cannot be started: install Docker, or Java 17 or newer and Maven, ' +
          'or set KAFKA_BROKERS and SCHEMA_REGISTRY_URL (no Docker engine answers; ' +
          'no working java on the PATH; no working mvn on the PATH)',
      });
    },
  );
});

describe.skipIf(!java.found || !maven.found)('servers on Java', () => {
  let one: JavaServices;
  let other: JavaServices;
  let ports: { kafka: number; registry: number };

  beforeAll(async () => {
    const [kafka, registry] = await freeLoopbackPorts(2);
    ports = { kafka: kafka!, registry: registry! };
    const launch = () =>
      startOnJava('java', { ports, kafka: { settings: { 'num.partitions': '3' } } });
    [one, other] = await Promise.all([launch(), launch()]);
  });
  afterAll(() => Promise.all([one.stop(), other.stop()]));

  it('are at the preferred ports, or at others where those are taken', () => {
    const found = (port: (services: JavaServices) => number) => [one, other].map(port);
    expect(found(portOf)).toContain(ports.kafka);
    expect(found(registryPortOf)).toContain(ports.registry);
  });

  it('run side by side', async () => {
    const ports = [one, other].flatMap((services) => [portOf(services), registryPortOf(services)]);
    expect(new Set(ports).size).toBe(4);

    const topic = 'only-in-one';
    await createTopic(kafkaOf(one), { topic });
    for (const services of [one, other]) {
      const names = await withAdmin(kafkaOf(services), (admin) => admin.listTopics());
      expect(names.includes(topic)).toBe(services === one);
    }
  });

  it('take broker settings', async () => {
    const topic = 'default-partitions';
    await createTopic(kafkaOf(one), { topic });
    expect(await withAdmin(kafkaOf(one), (admin) => admin.fetchTopicOffsets(topic))).toHaveLength(
      3,
    );
  });

  it('come back after a kill, on the same ports and with their data', async () => {
    const admin = kafkaOf(one).admin();
    await admin.connect();
    await createTopic(kafkaOf(one), { topic: 'outlives-a-kill' });
    // Several, one right before the kill: what is committed must not wait in memory.
    const subjects = ['a', 'b', 'c', 'd', 'e'];
    for (const subject of subjects) {
      const registered = await fetch(`${one.registryUrl}/subjects/${subject}/versions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ schema: '"string"' }),
      });
      expect(registered.status).toBe(200);
    }

    const pids = [one.kafka.pid!, one.registry.pid!];
    await Promise.all([one.kafka.kill(), one.registry.kill()]);
    expect(pids.map(isRunning)).toEqual([false, false]);
    expect([one.kafka.pid, one.registry.pid]).toEqual([undefined, undefined]);
    await Promise.all([one.kafka.start(), one.registry.start()]);

    expect(await admin.listTopics()).toContain('outlives-a-kill');
    expect(await (await fetch(`${one.registryUrl}/subjects`)).json()).toEqual(subjects);
    await admin.disconnect();
    await expect(one.kafka.start()).rejects.toMatchObject({ code: 'SERVICES' });
  });

  it('answer nothing while they are paused', async () => {
    const ask = () => fetch(`${one.registryUrl}/subjects`, { signal: AbortSignal.timeout(500) });
    one.registry.pause();
    // The last of its threads may come to an end with an answer before it stands still.
    await until(() =>
      ask().then(
        () => false,
        () => true,
      ),
    );
    one.registry.resume();
    await until(async () => (await ask().catch(() => undefined))?.status === 200);
  });

  it('are gone after stop, paused or not, and a second stop does nothing', async () => {
    const pids = [other.kafka.pid!, other.registry.pid!];
    other.registry.pause();
    await other.stop();
    expect(pids.map(isRunning)).toEqual([false, false]);
    await other.stop();
  });
});

describe.skipIf(!java.found || !maven.found)('however the launching process ends', () => {
  /** Launches with the compiled code, as its users do, and keeps its data under `tmp`. */
  const PROGRAM = `
    import { startOnJava } from ${JSON.stringify(
      new URL('../../dist/devstack/java-services.js', import.meta.url).href,
    )};
    const say = (event) => console.log(JSON.stringify(event));
    let services;
    process.on('SIGINT', async () => {
      const answer = await fetch(services.registryUrl + '/subjects');
      say({ answered: answer.status });
      await services.stop();
      process.exit();
    });
    services = await startOnJava('java', { onProgress: (progress) => say({ progress }) });
    const { brokers, registryUrl, kafka, registry } = services;
    say({ brokers, registryUrl, pids: [kafka.pid, registry.pid] });
  `;

  type Launched = {
    readonly brokers: string[];
    readonly registryUrl: string;
    readonly pids: number[];
  };

  interface Launcher {
    readonly child: ChildProcess;
    readonly tmp: string;
    /** The next line of its output; undefined at the end. */
    next(): Promise<Record<string, unknown> | undefined>;
  }

  /** In a process group of its own, as a shell starts it. */
  function launcher(): Launcher {
    const tmp = mkdtempSync(join(scratch, 'tmp-'));
    const child = spawn(process.execPath, ['--input-type=module', '--eval', PROGRAM], {
      env: { ...process.env, TMPDIR: tmp },
      stdio: ['ignore', 'pipe', 'inherit'],
      detached: true,
    });
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    return {
      child,
      tmp,
      async next() {
        const { value, done } = await lines.next();
        return done ? undefined : (JSON.parse(value) as Record<string, unknown>);
      },
    };
  }

  async function launched(from: Launcher): Promise<Launched> {
    for (;;) {
      const event = await from.next();
      if (event === undefined) throw new Error('the launcher ended');
      if ('pids' in event) return event as Launched;
    }
  }

  async function expectNothingLeft({ brokers, registryUrl, pids }: Launched, tmp: string) {
    await until(() => readdirSync(tmp).length === 0);
    await until(() => !isNamedByAProcess(tmp));
    expect(pids.map(isRunning)).toEqual([false, false]);
    expect(await listens(Number(brokers[0]!.split(':')[1]))).toBe(false);
    expect(await listens(Number(new URL(registryUrl).port))).toBe(false);
  }

  it('SIGKILL leaves no process, no port and no data', async () => {
    const from = launcher();
    const services = await launched(from);
    expect(isNamedByAProcess(from.tmp)).toBe(true);
    expect(services.pids.map(isRunning)).toEqual([true, true]);
    expect(readdirSync(from.tmp)).toHaveLength(1);
    from.child.kill('SIGKILL');
    await expectNothingLeft(services, from.tmp);
  });

  it('SIGKILL while the servers start leaves no data either', async () => {
    const from = launcher();
    await until(() => readdirSync(from.tmp).length > 0);
    const folder = join(from.tmp, readdirSync(from.tmp)[0]!);
    await until(() => existsSync(join(folder, 'registry.log')));
    from.child.kill('SIGKILL');
    await until(() => readdirSync(from.tmp).length === 0);
    await until(() => !isNamedByAProcess(from.tmp));
  });

  it('Ctrl-C finds the servers alive until the process is done with them', async () => {
    const from = launcher();
    const services = await launched(from);
    process.kill(-from.child.pid!, 'SIGINT');
    expect(await from.next()).toEqual({ answered: 200 });
    await once(from.child, 'exit');
    expect(from.child.exitCode).toBe(0);
    await expectNothingLeft(services, from.tmp);
  });
});
