import { startServices } from '../../../src/devstack/start-services.ts';
import type { BrokerControl, JavaServices, LaunchOptions } from '../../../src/devstack/services.ts';

/**
 * Brokers of a test's own, which it may break, three by default; or why there are none: a text for `skip`,
 * which is also written where nobody can overlook it.
 */
export async function startCluster(options: LaunchOptions = {}): Promise<JavaServices | string> {
  const services = await startServices({ ...options, kafka: { nodes: 3, ...options.kafka } });
  if (services.origin === 'java') return services;
  await services.stop();
  const reason = `SKIPPED: brokers of its own are started on Java alone, and here is ${services.origin}`;
  console.warn(reason);
  return reason;
}

/** The node with this id. */
export function nodeOf({ nodes }: Pick<JavaServices, 'nodes'>, id: number): BrokerControl {
  const node = nodes.find((one) => one.id === id);
  if (!node) throw new Error(`there is no node ${id}`);
  return node;
}
