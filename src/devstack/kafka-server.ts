// Apache Kafka in KRaft mode, one JVM for each node.

import { writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { randomBytes } from 'node:crypto';
import { Kafka, logLevel } from 'kafkajs';
import { CellarstreamError } from '../core/errors.ts';
import { sharedClasses } from './jar-cache.ts';
import { JVM_FLAGS, JavaServer, type JavaServerKind, type JvmLaunch } from './java-server.ts';
import type { KafkaLaunch, BrokerControl, JavaServices, LaunchOptions } from './services.ts';
import { lastLines, type Probe } from './tethered.ts';

/** Kafka settings of every node, which is both broker and controller. */
const SETTINGS: Readonly<Record<string, string>> = {
  'process.roles': 'broker,controller',
  'inter.broker.listener.name': 'BROKER',
  'controller.listener.names': 'CONTROLLER',
  'auto.create.topics.enable': 'false',
  'offsets.topic.num.partitions': '4',
  'transaction.state.log.num.partitions': '4',
  'group.initial.rebalance.delay.ms': '0',
  // A killed broker can register again only after its previous session has expired.
  'broker.session.timeout.ms': '3000',
  'broker.heartbeat.interval.ms': '500',
  // The default, 128 MB, is a quarter of the heap of 512 MB; the topics here are tiny.
  'log.cleaner.dedupe.buffer.size': '16777216',
};

/**
 * Additional settings of a cluster with several nodes. A node that is shut down first hands over the leadership of its partitions. A
 * partition's first replica leads it again within about a second after its node has restarted.
 */
const CLUSTER_SETTINGS: Readonly<Record<string, string>> = {
  'controlled.shutdown.enable': 'true',
  'auto.leader.rebalance.enable': 'true',
  'leader.imbalance.check.interval.seconds': '1',
};

/** Returns the settings for the number of replicas and the minimum number of in-sync replicas of all topics, including Kafka's own. */
function replicas(count: number, inSync: number): Record<string, string> {
  const [all, least] = [String(count), String(inSync)];
  return {
    'default.replication.factor': all,
    'min.insync.replicas': least,
    'offsets.topic.replication.factor': all,
    'transaction.state.log.replication.factor': all,
    'transaction.state.log.min.isr': least,
    'share.coordinator.state.topic.replication.factor': all,
    'share.coordinator.state.topic.min.isr': least,
  };
}

/**
 * Number of ports that every node needs: one for the broker's listener BROKER, one for the controller. Each of
 * {@link KafkaLaunch.listeners} needs one more.
 */
const OWN_PORTS = 2;

interface KafkaServerOptions {
  readonly id: number;
  readonly nodeCount: number;
  readonly clusterId: string;
  readonly jars: string;
  readonly jvm: JvmLaunch;
  readonly launch: KafkaLaunch;
}

/** Describes how to run a Kafka node. Its ports are, in order: the listener BROKER, the controller, and {@link KafkaLaunch.listeners}. */
function kafkaServer(node: KafkaServerOptions): JavaServerKind {
  const { id, nodeCount, clusterId, jars, launch } = node;
  const { java, tethered } = node.jvm;
  const listeners = Object.keys(launch.listeners ?? {});
  const classes = [join(jars, '*'), ...(launch.classPath ?? [])].join(delimiter);
  const classPath = ['-Dorg.slf4j.simpleLogger.defaultLogLevel=warn', '-cp', classes];
  const [title, name] =
    nodeCount === 1 ? ['Kafka', 'kafka'] : [`Kafka's node ${id}`, `kafka-${id}`];
  const file = join(tethered.folder, `${name}.properties`);
  const archive = sharedClasses(jars);

  return {
    title,
    name,
    portCount: OWN_PORTS + listeners.length,
    portTaken: /Address already in use/,
    prepare: async (ports, all) => {
      const folder = join(tethered.folder, `${name}-data`);
      await writeFile(file, properties(node, folder, ports, all));
      const tool = ['kafka.tools.StorageTool', 'format', '--ignore-formatted'];
      const users = scramUsers(launch.users);
      const args = [...classPath, ...tool, '--cluster-id', clusterId, '--config', file, ...users];
      const format = await tethered.run(`${name}-format`, java, [
        ...JVM_FLAGS,
        ...archive,
        ...args,
      ]);
      if ((await format.whenEnded) === 'exit code 0') return;
      const log = lastLines(await format.log());
      throw new CellarstreamError('SERVICES', `${title} could not format its data folder:\n${log}`);
    },
    args: () => [
      nodeCount === 1 ? '-Xmx512m' : '-Xmx256m',
      ...archive,
      ...(launch.javaOptions ?? []),
      ...[...classPath, 'kafka.Kafka', file],
    ],
    probe: ([port]) => kafkaProbe([`127.0.0.1:${port!}`], { clusterId, ids: [id] }),
  };
}

/**
 * Returns a probe that asks Kafka to describe the cluster.
 *
 * @param wanted Id that the cluster must have, and ids of nodes that it must contain. Default: any cluster with a broker.
 */
export function kafkaProbe(
  brokers: string[],
  wanted?: { readonly clusterId: string; readonly ids: readonly number[] },
): Probe {
  return async () => {
    const kafka = new Kafka({
      brokers,
      clientId: 'cellarstream-services',
      logLevel: logLevel.NOTHING,
      connectionTimeout: 2_000,
      requestTimeout: 5_000,
      retry: { retries: 0 },
    });
    const admin = kafka.admin();
    try {
      await admin.connect();
      const cluster = await admin.describeCluster();
      if (!wanted) return cluster.brokers.length > 0;
      const found = cluster.brokers.map(({ nodeId }) => nodeId);
      return cluster.clusterId === wanted.clusterId && wanted.ids.every((id) => found.includes(id));
    } finally {
      await admin.disconnect();
    }
  };
}

/**
 * Returns the address `host:port` at which one Kafka node serves each of {@link KafkaLaunch.listeners}, by listener name.
 *
 * @param ports Ports of the node: first `OWN_PORTS` ports for the node itself, then one for each listener.
 */
function listenersOf(
  { listeners = {} }: KafkaLaunch,
  ports: readonly number[],
): Readonly<Record<string, string>> {
  const names = Object.keys(listeners);
  return Object.fromEntries(
    names.map((name, index) => [name, `127.0.0.1:${ports[OWN_PORTS + index]!}`]),
  );
}

function properties(
  { id, nodeCount, launch }: KafkaServerOptions,
  folder: string,
  ports: readonly number[],
  all: readonly (readonly number[])[],
): string {
  const [broker, controller] = ports;
  const ways = Object.entries({
    BROKER: `127.0.0.1:${broker!}`,
    ...listenersOf(launch, ports),
  }).map(([name, address]) => `${name}://${address}`);
  const protocols = { BROKER: 'PLAINTEXT', CONTROLLER: 'PLAINTEXT', ...launch.listeners };
  const settings = {
    ...SETTINGS,
    ...(nodeCount === 1 ? replicas(1, 1) : { ...replicas(nodeCount, 2), ...CLUSTER_SETTINGS }),
    'node.id': String(id),
    'listener.security.protocol.map': Object.entries(protocols)
      .map(([name, protocol]) => `${name}:${protocol}`)
      .join(),
    listeners: [...ways, `CONTROLLER://127.0.0.1:${controller!}`].join(),
    'advertised.listeners': ways.join(),
    'controller.quorum.voters': all.map(([, port], k) => `${k + 1}@127.0.0.1:${port!}`).join(),
    'log.dirs': folder,
    ...launch.settings,
  };
  return Object.entries(settings)
    .map(([name, value]) => `${name}=${escaped(value)}\n`)
    .join('');
}

/** Replaces line breaks, such as those in PEM certificates, by `\n` in two characters, so that a property value stays on one line. */
function escaped(value: string): string {
  return value.replace(/\n/g, '\\n');
}

function scramUsers(users: KafkaLaunch['users'] = {}): string[] {
  return Object.entries(users).flatMap(([name, password]) =>
    ['SCRAM-SHA-256', 'SCRAM-SHA-512'].flatMap((mechanism) => [
      '--add-scram',
      `${mechanism}=[name=${name},password=${password}]`,
    ]),
  );
}

/**
 * Starts Kafka. Resolves once each node answers and knows all other nodes.
 *
 * @param jars Folder of Kafka's jars and their dependencies.
 * @throws CellarstreamError `SERVICES` if a node does not start.
 */
export async function startKafka(
  jars: string,
  jvm: JvmLaunch,
  { kafka = {}, ports }: LaunchOptions,
): Promise<Pick<JavaServices, 'nodes' | 'listeners'>> {
  const { nodes: count = 1 } = kafka;
  const ids = Array.from({ length: count }, (_, k) => k + 1);
  const clusterId = newClusterId();
  const cluster = { jars, jvm, clusterId, launch: kafka, nodeCount: count };
  const kinds = ids.map((id) => kafkaServer({ ...cluster, id }));
  const servers = await JavaServer.startTogether(kinds, jvm, ports && [ports.kafka]);
  const nodes: BrokerControl[] = servers.map((server, k) =>
    Object.assign(server, { id: ids[k]!, address: `127.0.0.1:${server.ports[0]!}` }),
  );
  // A node answers as soon as it knows itself, but topics with three replicas need three known brokers.
  for (const server of count > 1 ? servers : []) {
    await server.untilReady(kafkaProbe([`127.0.0.1:${server.ports[0]!}`], { clusterId, ids }));
  }
  const each = servers.map((server) => listenersOf(kafka, server.ports));
  const names = Object.keys(kafka.listeners ?? {});
  const listeners = names.map((name) => [name, each.map((ways) => ways[name]!).join()]);
  return { nodes, listeners: Object.fromEntries(listeners) as Record<string, string> };
}

/** Returns a random cluster id: 16 bytes in Kafka's base64url form, which must not begin with a hyphen. */
function newClusterId(): string {
  const bytes = randomBytes(16);
  bytes[0]! &= 0x7f;
  return bytes.toString('base64url');
}
