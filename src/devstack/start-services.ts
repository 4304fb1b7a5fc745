import { CellarstreamError } from '../core/errors.ts';
import { findDocker, startOnDocker } from './docker.ts';
import { findJava, findMaven } from './java-tools.ts';
import { startOnJava } from './java-services.ts';
import { isCached } from './jar-cache.ts';
import type { LaunchOptions, Services } from './services.ts';

/** Servers that are there already, named together or not at all. */
export interface StartServicesOptions extends LaunchOptions {
  /** `host:port` each; empty counts as not given. */
  readonly brokers?: readonly string[] | undefined;
  /** The root of a Confluent-compatible API; empty counts as not given. */
  readonly registryUrl?: string | undefined;
}

const VERSIONED = { found: false, reason: 'versions are chosen, which only Java has' } as const;
const CACHED = { found: true, reason: undefined } as const;

/**
 * A Kafka and a schema registry from the first source that applies: the ones named in the options;
 * containers, if a Docker engine answers and the package testcontainers is installed; the real
 * servers as JVMs on loopback ports, if there is Java 17 or newer and their jars are in the
 * cache or Maven can fetch them. Resolves when both answer. What it started ends with `stop`, or
 * with this process, in whatever way that ends; nothing of the data is kept.
 *
 * @throws CellarstreamError `SETTINGS` if only one of the two is named; `SERVICES` if no source
 * applies, or the one that does fails.
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

  // Images have versions of their own.
  const docker = options.versions ? VERSIONED : await findDocker();
  if (docker.found) return startOnDocker(docker, options);

  const env = options.env ?? process.env;
  const java = await findJava(env);
  // Maven takes half a second to say that it is there, and isn't needed once the jars are.
  const jars = (await isCached(options)) ? CACHED : await findMaven(env);
  if (java.found && jars.found) return startOnJava(java.command, options);

  const missing = [docker.reason, java.reason, jars.reason];
  throw new CellarstreamError(
    'SERVICES',
    'Kafka and a schema registry cannot be started: install Docker, or Java 17 or newer and Maven, or ' +
      `set KAFKA_BROKERS and SCHEMA_REGISTRY_URL (${missing.filter(Boolean).join('; ')})`,
  );
}
