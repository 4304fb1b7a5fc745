// @ts-check
// Kafka and a registry, as the demo has them, but with the broker's own settings where they cost time.
import { startServices as start } from '../../dist/devstack/start-services.js';

/** Kafka's defaults: the launcher's are for tests, and quicker. */
const DEFAULTS = {
  'group.initial.rebalance.delay.ms': '3000',
  'offsets.topic.num.partitions': '50',
  'transaction.state.log.num.partitions': '50',
};

/**
 * Those of `KAFKA_BROKERS` and `SCHEMA_REGISTRY_URL` where both are set: then these are as they are.
 *
 * @param {import('./scope.mjs').Scope} scope Ends them.
 * @param {(line: string) => void} tell
 */
export async function startServices(scope, tell) {
  const { KAFKA_BROKERS = '', SCHEMA_REGISTRY_URL } = process.env;
  const services = await start({
    brokers: KAFKA_BROKERS.split(',').filter((broker) => broker !== ''),
    registryUrl: SCHEMA_REGISTRY_URL,
    kafka: {
      settings: DEFAULTS,
    },
    onProgress: tell,
  });
  scope.add(() => services.stop());
  return services;
}
