import { CellarstreamError, describeError } from '../core/errors.ts';
import { findDocker, startOnDocker } from './docker.ts';
import { findJava, findMaven, isCached } from './jar-cache.ts';
import { startOnJava } from './java-services.ts';
import type { LaunchOptions, Services } from './services.ts';

/** Addresses of an existing Kafka and registry (both or neither), and options for starting new ones if no addresses are given. */
interface StartServicesOptions extends LaunchOptions {
  /** Bootstrap addresses `host:port` of an existing Kafka; empty means not set. */
  readonly brokers?: readonly string[] | undefined;
  /** Base URL of the Confluent-compatible API of an existing registry; empty means not set. */
  readonly registryUrl?: string | undefined;
}

/** Environment variable that chooses how Kafka and the registry are started. */
const SETTING = 'SERVICES';

/**
 * Returns a Kafka and a schema registry from the first of these sources that is available:
 *
 * - The servers named in the options. It is not tested whether they respond.
 * - Docker containers, if testcontainers is installed and a Docker engine can start them. Skipped with the option `versions`.
 * - JVMs, if there is Java 17 or newer and the jars are cached or Maven can download them.
 *
 * The environment variable `SERVICES` chooses between containers (`docker`) and JVMs (`java`), unless the option `versions` requires JVMs.
 * `stop`, or the end of this process, removes the started servers and their data.
 *
 * @throws CellarstreamError `SETTINGS` if the options name only a Kafka or only a registry, or the variable `SERVICES` has another value;
 * `SERVICES` if no source is available, or the servers do not start.
 */
export async function startServices(options: StartServicesOptions = {}): Promise<Services> {
  const brokers = [...(options.brokers ?? [])];
  const registryUrl = options.registryUrl ?? '';
  if (brokers.length > 0 && registryUrl !== '') {
    return { origin: 'settings', brokers, registryUrl, stop: () => Promise.resolve() };
  }
  if (brokers.length > 0 || registryUrl !== '') {
    throw new CellarstreamError(
      'SETTINGS',
      'set both KAFKA_BROKERS and SCHEMA_REGISTRY_URL, or neither of them',
    );
  }

  const env = options.env ?? process.env;
  const chosen = env[SETTING] ?? '';
  if (!['', 'docker', 'java'].includes(chosen)) {
    throw new CellarstreamError(
      'SETTINGS',
      `${SETTING} is "${chosen}": set it to docker or java, or leave it unset`,
    );
  }
  // Container images have fixed versions.
  const noDocker: string[] = [];
  if (chosen !== 'java' && options.versions === undefined) {
    const docker = await onDocker(options, chosen === 'docker');
    if (typeof docker !== 'string') return docker;
    noDocker.push(docker);
  }

  const java = await findJava(env);
  // Looking for Maven takes half a second, and Maven is not needed once the jars are cached.
  const noJars = (await isCached(options)) ? undefined : (await findMaven(env)).reason;
  // Also with SERVICES=docker, if `versions` has skipped the containers.
  if (java.found && noJars === undefined) return startOnJava(java.command, options);

  const missing = [...noDocker, java.reason, noJars];
  throw new CellarstreamError(
    'SERVICES',
    'Kafka and a schema registry cannot be started: install Docker, or Java 17 or newer and Maven, or ' +
      `set KAFKA_BROKERS and SCHEMA_REGISTRY_URL (${missing.filter(Boolean).join('; ')})`,
  );
}

/** Starts Kafka and a schema registry in Docker containers. If that fails, returns the reason or, if `isRequired`, throws an error. */
async function onDocker(options: LaunchOptions, isRequired: boolean): Promise<Services | string> {
  const engine = await findDocker();
  if (!engine.isAvailable) {
    if (!isRequired) return engine.reason;
    throw new CellarstreamError('SERVICES', `${SETTING} is "docker", but ${engine.reason}`);
  }
  try {
    return await startOnDocker(engine, options);
  } catch (error) {
    if (isRequired || !(error instanceof CellarstreamError)) throw error;
    const reason = describeError(error);
    options.onFallback?.(reason);
    return reason;
  }
}
