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

/** One Kafka and one registry for all integration tests; each file has topics of its own. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const services = await startServices({
    brokers: process.env.KAFKA_BROKERS?.split(',').filter((broker) => broker !== ''),
    registryUrl: process.env.SCHEMA_REGISTRY_URL,
    ...serverVersions(),
    onProgress: (line) => console.error(line),
  });
  project.provide('brokers', services.brokers);
  project.provide('registryUrl', services.registryUrl);
  return services.stop;
}
