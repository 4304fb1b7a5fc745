// Chooses where the servers come from: settings, Docker or Java.

import { CellarstreamError, describeError } from '../core/errors.ts';
import { findDocker, startOnDocker } from './docker.ts';
import { findJava, findMaven, isCached } from './jar-cache.ts';
import { startOnJava } from './java-services.ts';
import type { LaunchOptions, Services } from './services.ts';

/** Servers that are there already, named together or not at all. */
interface StartServicesOptions extends LaunchOptions {
  /** `host:port` each; empty counts as not given. */
  readonly brokers?: readonly string[] | undefined;
  /** The root of a Confluent-compatible API; empty counts as not given. */
  readonly registryUrl?: string | undefined;
}

/** The setting that chooses how servers are started. */
const SETTING = 'SERVICES';
const CACHED = { found: true, reason: undefined } as const;

/**
 * A Kafka and a schema registry from the first source that applies: the ones named in the options;
 * containers, if a Docker engine answers and the package testcontainers is installed; the real
 * servers as JVMs on loopback ports, if there is Java 17 or newer and their jars are in the
 * cache or Maven can fetch them. Java is also used when containers cannot be started, unless the
 * variable `SERVICES` of the environment is `docker`; with `java`, Docker is not looked for.
 * Resolves when both answer. What it started ends with `stop`, or
 * with this process, in whatever way that ends; nothing of the data is kept.
 *
 * @throws CellarstreamError `SETTINGS` if only one of the two is named, or `SERVICES` has another value; `SERVICES` if no source
 * applies, or the last one fails.
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
      `${SETTING} is "${chosen}"; set docker, java or nothing`,
    );
  }
  // Images have versions of their own.
  const noDocker: string[] = [];
  if (chosen !== 'java' && options.versions === undefined) {
    const docker = await onDocker(options, chosen === 'docker');
    if (typeof docker !== 'string') return docker;
    noDocker.push(docker);
  }

  const java = await findJava(env);
  // Maven takes half a second to say that it is there, and isn't needed once the jars are.
  const jars = (await isCached(options)) ? CACHED : await findMaven(env);
  if (java.found && jars.found) return startOnJava(java.command, options);

  const missing = [...noDocker, java.reason, jars.reason];
  throw new CellarstreamError(
    'SERVICES',
    'Kafka and a schema registry cannot be started: install Docker, or Java 17 or newer and Maven, or ' +
      `set KAFKA_BROKERS and SCHEMA_REGISTRY_URL (${missing.filter(Boolean).join('; ')})`,
  );
}

/** Servers in containers, or the reason why there are none; an error instead if nothing else may be used. */
async function onDocker(options: LaunchOptions, isRequired: boolean): Promise<Services | string> {
  const engine = await findDocker();
  if (!engine.found) {
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
