import type { KafkaContainer } from '@testcontainers/kafka';
import type { GenericContainer, StartedTestContainer } from 'testcontainers';
import { CellarstreamError } from '../core/errors.ts';
import { kafkaAnswers } from './kafka-server.ts';
import { isFree } from './loopback-ports.ts';
import { registryUrlOf } from './registry-server.ts';
import type { LaunchOptions, PlainServices } from './services.ts';
import { untilReady } from './until-ready.ts';

/** Apache Kafka 4.1; the module of testcontainers starts Confluent's build of it only. */
const KAFKA_IMAGE = 'confluentinc/cp-kafka:8.1.0';
const REGISTRY_IMAGE = 'apicurio/apicurio-registry:3.0.9';

const KAFKA_PORT = 9093;
const REGISTRY_PORT = 8080;
const READY_TIMEOUT_MS = 180_000;

/** The two packages, which are not installed with this one: whoever wants Docker adds them. */
interface Testcontainers {
  readonly core: typeof import('testcontainers');
  readonly kafka: typeof import('@testcontainers/kafka');
}

/** What starts containers, or why nothing does, as part of a sentence. */
export type DockerEngine =
  ({ readonly found: true } & Testcontainers) | { readonly found: false; readonly reason: string };

/** Whether testcontainers is installed and finds a Docker engine that answers. */
export async function findDocker(): Promise<DockerEngine> {
  let packages: Testcontainers;
  try {
    packages = {
      core: await import('testcontainers'),
      kafka: await import('@testcontainers/kafka'),
    };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error;
    return { found: false, reason: 'testcontainers is not installed' };
  }
  try {
    await packages.core.getContainerRuntimeClient();
    return { found: true, ...packages };
  } catch {
    // It says no more than that each of its ways to find one failed.
    return { found: false, reason: 'no Docker engine answers' };
  }
}

/**
 * Both servers in containers. They are removed by `stop`, or by testcontainers' own watcher when
 * this process ends.
 *
 * @throws CellarstreamError `SERVICES` when an image can't be had or a server does not come up.
 */
export async function startOnDocker(
  { core, kafka }: Testcontainers,
  options: LaunchOptions = {},
): Promise<PlainServices> {
  const timeoutMs = options.readyTimeoutMs ?? READY_TIMEOUT_MS;
  options.onProgress?.('starting Kafka and the schema registry in Docker');
  const kafkaPort = await bound(KAFKA_PORT, options.ports?.kafka);
  const registryPort = await bound(REGISTRY_PORT, options.ports?.registry);
  const started = await Promise.allSettled([
    kafkaContainer(kafka.KafkaContainer, options.kafka?.settings ?? {})
      .withExposedPorts(kafkaPort)
      .withStartupTimeout(timeoutMs)
      .start(),
    registryContainer(core).withExposedPorts(registryPort).withStartupTimeout(timeoutMs).start(),
  ]);
  const stop = async () => {
    for (const one of started) if (one.status === 'fulfilled') await one.value.stop();
  };
  try {
    const [broker, registry] = started.map(startedOrThrow) as [
      StartedTestContainer,
      StartedTestContainer,
    ];
    const brokers = [`${broker.getHost()}:${broker.getMappedPort(KAFKA_PORT)}`];
    const container = {
      ended: undefined,
      log: () => Promise.resolve(`docker logs ${broker.getId()}`),
    };
    await untilReady('Kafka', container, kafkaAnswers(brokers), timeoutMs);
    const registryUrl = registryUrlOf(registry.getHost(), registry.getMappedPort(REGISTRY_PORT));
    return { origin: 'docker', brokers, registryUrl, stop };
  } catch (error) {
    await stop();
    if (error instanceof CellarstreamError) throw error;
    throw new CellarstreamError('SERVICES', 'Docker could not start the servers', { cause: error });
  }
}

/** A container's port: at `preferred` of this machine where that is given and free, else anywhere. */
async function bound(container: number, preferred: number | undefined) {
  if (preferred === undefined || !(await isFree(preferred))) return container;
  return { container, host: preferred };
}

function kafkaContainer(
  Container: typeof KafkaContainer,
  settings: Readonly<Record<string, string>>,
): KafkaContainer {
  const all = {
    'auto.create.topics.enable': 'false',
    'transaction.state.log.replication.factor': '1',
    'transaction.state.log.num.partitions': '4',
    ...settings,
  };
  const environment = Object.entries(all).map(([name, value]) => [
    `KAFKA_${name.replaceAll('.', '_').toUpperCase()}`,
    value,
  ]);
  return new Container(KAFKA_IMAGE).withEnvironment(
    Object.fromEntries(environment) as Record<string, string>,
  );
}

function registryContainer({ GenericContainer, Wait }: Testcontainers['core']): GenericContainer {
  return new GenericContainer(REGISTRY_IMAGE).withWaitStrategy(
    Wait.forHttp('/apis/ccompat/v7/subjects', REGISTRY_PORT),
  );
}

function startedOrThrow(one: PromiseSettledResult<StartedTestContainer>): StartedTestContainer {
  if (one.status === 'rejected') throw one.reason;
  return one.value;
}
