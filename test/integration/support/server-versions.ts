import type { LaunchOptions } from '../../../src/devstack/services.ts';

/**
 * What `TEST_KAFKA_VERSION` and `TEST_REGISTRY_VERSION` say, as `npm run test:versions` sets them; by
 * default the versions of `pom.xml`. Only servers on Java have versions to choose.
 */
export function serverVersions(env = process.env): Pick<LaunchOptions, 'versions'> {
  const kafka = env.TEST_KAFKA_VERSION || undefined;
  const registry = env.TEST_REGISTRY_VERSION || undefined;
  return kafka || registry ? { versions: { kafka, registry } } : {};
}
