import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { JavaServer } from './java-server.ts';
import { kafkaAnswers, kafkaServer, listenersOf } from './kafka-server.ts';
import type { BrokerControl, JavaServices, LaunchOptions } from './services.ts';
import type { Tethered } from './tethered.ts';
import { untilReady } from './until-ready.ts';

/**
 * Kafka, of as many nodes as it is to have. Resolves when each of them answers and knows the others.
 *
 * @param jars Folder of Kafka and all it depends on.
 * @throws CellarstreamError `SERVICES` when a node does not come up.
 */
export async function startKafka(
  jars: string,
  java: string,
  tethered: Tethered,
  timeoutMs: number,
  { kafka = {}, ports }: LaunchOptions,
): Promise<Pick<JavaServices, 'nodes' | 'listeners'>> {
  const { nodes: count = 1 } = kafka;
  const ids = Array.from({ length: count }, (_, k) => k + 1);
  const clusterId = newClusterId();
  const place = { jars, java, tethered, clusterId, launch: kafka };
  const kinds = ids.map((id) => kafkaServer({ ...place, id, isOneOf: count }));
  const preferred = ports && [ports.kafka];
  const servers = await JavaServer.startTogether(kinds, java, tethered, timeoutMs, preferred);
  const nodes: BrokerControl[] = servers.map((server, k) =>
    Object.assign(server, { id: ids[k]!, address: `127.0.0.1:${server.ports[0]!}` }),
  );
  // A node answers once it knows itself; who makes topics of three replicas wants to find three brokers.
  for (const { address } of count > 1 ? nodes : []) {
    const log = () => readFile(join(tethered.folder, `${kinds[0]!.name}.log`), 'utf8');
    const knowsAll = kafkaAnswers([address], { clusterId, ids });
    await untilReady('The cluster', { ended: undefined, log }, knowsAll, timeoutMs);
  }
  const each = servers.map((server) => listenersOf(kafka, server.ports));
  const names = Object.keys(kafka.listeners ?? {});
  const listeners = names.map((name) => [name, each.map((ways) => ways[name]!).join()]);
  return { nodes, listeners: Object.fromEntries(listeners) as Record<string, string> };
}

/** Sixteen bytes in Kafka's text form, which must not begin with a hyphen. */
function newClusterId(): string {
  const bytes = randomBytes(16);
  bytes[0]! &= 0x7f;
  return bytes.toString('base64url');
}
