// Starts Kafka and the schema registry in containers, with testcontainers.

import { once } from 'node:events';
import { createServer } from 'node:net';
import type { StartedTestContainer } from 'testcontainers';
import { CellarstreamError } from '../core/errors.ts';
import { kafkaProbe } from './kafka-server.ts';
import { freeLoopbackPorts } from './loopback-ports.ts';
import { registryProbe, registryUrlOf } from './registry-server.ts';
import type { LaunchOptions, PlainServices } from './services.ts';
import { untilReady } from './tethered.ts';

/** Container image of Kafka, the same as in docker-compose.yml. */
const KAFKA_IMAGE = 'apache/kafka:4.1.1';
/** Container image of the schema registry, the same as in docker-compose.yml. */
const REGISTRY_IMAGE = 'apicurio/apicurio-registry:3.0.9';

const KAFKA_PORT = 9092;
/** Port that the registry listens on inside its container. */
const REGISTRY_PORT = 8080;
const LOOPBACK = '127.0.0.1';
/** Default time that a server in a container has from its start to its first response, in ms. If it is too small, slow starts fail. */
const READY_TIMEOUT_MS = 180_000;

type Testcontainers = typeof import('testcontainers');

/** A reachable Docker engine, or the reason why there is none, as a phrase for error messages. */
type DockerEngine =
  | {
      readonly isAvailable: true;
      readonly testcontainers: Testcontainers;
      /** Host name under which the ports that the Docker engine publishes can be reached. */
      readonly host: string;
    }
  | { readonly isAvailable: false; readonly reason: string };

export async function findDocker(): Promise<DockerEngine> {
  let testcontainers: Testcontainers;
  try {
    testcontainers = await import('testcontainers');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error;
    return { isAvailable: false, reason: 'testcontainers is not installed' };
  }
  try {
    const { info } = await testcontainers.getContainerRuntimeClient();
    return { isAvailable: true, testcontainers, host: info.containerRuntime.host };
  } catch {
    // The error of testcontainers only says that each of its strategies to find an engine failed.
    return { isAvailable: false, reason: 'no Docker engine answers' };
  }
}

interface ContainerSpec {
  readonly image: string;
  readonly environment: Record<string, string>;
  readonly port: number;
  /** Port on the Docker engine's host under which the container's `port` is published. */
  readonly hostPort: number;
  /** Log line that the server prints once it is up. */
  readonly upLine: RegExp;
}

/**
 * Starts Kafka and the registry in containers, which are removed by `stop`, or after this process has ended. A Docker engine on this
 * machine publishes their ports only on 127.0.0.1, a remote engine on all its addresses.
 *
 * @throws CellarstreamError `SERVICES` if an image cannot be pulled or a server does not start.
 */
export async function startOnDocker(
  { testcontainers, host }: Extract<DockerEngine, { isAvailable: true }>,
  options: LaunchOptions = {},
): Promise<PlainServices> {
  const timeoutMs = options.readyTimeoutMs ?? READY_TIMEOUT_MS;
  const address = (await isThisMachine(host)) ? LOOPBACK : host;
  const preferred = options.ports && [options.ports.kafka, options.ports.registry];
  const [kafkaPort, registryPort] = (await freeLoopbackPorts(2, preferred)) as [number, number];
  const brokers = [`${address}:${kafkaPort}`];
  const registryUrl = registryUrlOf(address, registryPort);

  options.onProgress?.('starting Kafka and the schema registry in Docker');
  const started = await Promise.allSettled([
    startContainer(testcontainers, address, timeoutMs, {
      image: KAFKA_IMAGE,
      environment: kafkaEnvironment(brokers[0]!, options.kafka?.settings),
      port: KAFKA_PORT,
      hostPort: kafkaPort,
      upLine: /Kafka Server started/,
    }),
    startContainer(testcontainers, address, timeoutMs, {
      image: REGISTRY_IMAGE,
      // Without this setting the registry does not log that it listens.
      environment: { QUARKUS_LOG_CATEGORY__IO_QUARKUS__LEVEL: 'INFO' },
      port: REGISTRY_PORT,
      hostPort: registryPort,
      upLine: /Listening on/,
    }),
  ]);
  const containers = started.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  const stop = async () => {
    await Promise.allSettled(containers.map((container) => container.stop()));
  };
  try {
    const failed = started.find((one) => one.status === 'rejected');
    if (failed) throw failed.reason;
    await untilReady('Kafka', CONTAINER, kafkaProbe(brokers), timeoutMs);
    await untilReady('The schema registry', CONTAINER, registryProbe(registryUrl), timeoutMs);
    return { origin: 'docker', brokers, registryUrl, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function startContainer(
  { GenericContainer, Wait }: Testcontainers,
  address: string,
  timeoutMs: number,
  { image, environment, port, hostPort, upLine }: ContainerSpec,
): Promise<StartedTestContainer> {
  const binding = { HostPort: String(hostPort), ...(address === LOOPBACK && { HostIp: LOOPBACK }) };
  // Sets the binding directly, because testcontainers has no option for the address that a port is bound to.
  class Container extends GenericContainer {
    protected override beforeContainerCreated(): Promise<void> {
      this.hostConfig.PortBindings = { [`${port}/tcp`]: [binding] };
      return Promise.resolve();
    }
  }
  try {
    return await new Container(image)
      .withEnvironment(environment)
      .withExposedPorts({ container: port, host: hostPort })
      // Not for the port: testcontainers in a container probes the address of Docker's bridge, where this port is not published.
      .withWaitStrategy(Wait.forLogMessage(upLine))
      .withStartupTimeout(timeoutMs)
      .start();
  } catch (error) {
    throw new CellarstreamError('SERVICES', `Docker could not start ${image}`, { cause: error });
  }
}

/** Whether the Docker engine at `host` runs on this machine: `host` is `localhost`, or an address at which this process can listen. */
async function isThisMachine(host: string): Promise<boolean> {
  if (host === 'localhost') return true;
  // Node's list of network interfaces can't be used: it lacks a bridge to which no container is attached.
  const server = createServer();
  try {
    server.listen(0, host);
    await once(server, 'listening');
    return true;
  } catch {
    return false;
  } finally {
    server.close();
  }
}

/**
 * A container as a program for {@link untilReady}. A container counts as started once its log says that the server is up, so the log would
 * not explain why the server does not answer.
 */
const CONTAINER: Parameters<typeof untilReady>[1] = {
  ended: undefined,
  log: () =>
    Promise.resolve('(not shown: it says that the server is up; check the access to its port)'),
};

/**
 * Returns the environment of the Kafka image for a single node.
 *
 * @param address `host:port` advertised to clients outside the container.
 */
function kafkaEnvironment(
  address: string,
  settings: Readonly<Record<string, string>> = {},
): Record<string, string> {
  const all = {
    'node.id': '1',
    'process.roles': 'broker,controller',
    listeners: `INSIDE://:19092,HOST://:${KAFKA_PORT},CONTROLLER://:9093`,
    'advertised.listeners': `INSIDE://localhost:19092,HOST://${address}`,
    'listener.security.protocol.map': 'INSIDE:PLAINTEXT,HOST:PLAINTEXT,CONTROLLER:PLAINTEXT',
    // For the broker's own connections, which write transaction markers.
    'inter.broker.listener.name': 'INSIDE',
    'controller.listener.names': 'CONTROLLER',
    'controller.quorum.voters': '1@localhost:9093',
    'offsets.topic.replication.factor': '1',
    'transaction.state.log.replication.factor': '1',
    'transaction.state.log.min.isr': '1',
    'transaction.state.log.num.partitions': '4',
    'share.coordinator.state.topic.replication.factor': '1',
    'share.coordinator.state.topic.min.isr': '1',
    'group.initial.rebalance.delay.ms': '0',
    'auto.create.topics.enable': 'false',
    ...settings,
  };
  return Object.fromEntries(
    Object.entries(all).map(([name, value]) => [
      `KAFKA_${name.replaceAll('.', '_').toUpperCase()}`,
      value,
    ]),
  );
}
