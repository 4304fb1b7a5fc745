import type { TestProject } from 'vitest/node';
import { startServices } from '../../src/devstack/start-services.ts';
import { serverVersions } from './support/server-versions.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** `host:port` each. */
    brokers: string[];
    /** The root of the registry's Confluent API. */
    registryUrl: string;
  }
}

const SERVICES = Symbol.for('cellarstream.test.services');
type Services = Awaited<ReturnType<typeof startServices>>;

/** Each project loads this file anew; what they have in common is the process. */
const shared = process as { [SERVICES]?: Promise<Services> };

/**
 * One Kafka and one registry for all integration tests, of whatever project; each file has topics of its own. The project
 * that comes first starts them, and stops them when all have ended.
 */
export default async function setup(
  project: TestProject,
): Promise<(() => Promise<void>) | undefined> {
  const isFirst = shared[SERVICES] === undefined;
  const services = await (shared[SERVICES] ??= start());
  project.provide('brokers', services.brokers);
  project.provide('registryUrl', services.registryUrl);
  return isFirst ? services.stop : undefined;
}

function start(): Promise<Services> {
  return startServices({
    brokers: process.env.KAFKA_BROKERS?.split(',').filter((broker) => broker !== ''),
    registryUrl: process.env.SCHEMA_REGISTRY_URL,
    ...serverVersions(),
    onProgress: (line) => console.error(line),
  });
}
