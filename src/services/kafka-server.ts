import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Kafka, logLevel } from 'kafkajs';
import { CellarstreamError } from '../errors.ts';
import type { JavaServerKind } from './java-server.ts';
import type { LaunchOptions } from './services.ts';
import { lastLines, type Tethered } from './tethered.ts';
import type { Probe } from './until-ready.ts';

/** A single node: broker and controller in one, every topic with one replica. */
const SETTINGS: Readonly<Record<string, string>> = {
  'process.roles': 'broker,controller',
  'node.id': '1',
  'inter.broker.listener.name': 'BROKER',
  'controller.listener.names': 'CONTROLLER',
  'auto.create.topics.enable': 'false',
  'offsets.topic.replication.factor': '1',
  'offsets.topic.num.partitions': '4',
  'transaction.state.log.replication.factor': '1',
  'transaction.state.log.min.isr': '1',
  'transaction.state.log.num.partitions': '4',
  'share.coordinator.state.topic.replication.factor': '1',
  'share.coordinator.state.topic.min.isr': '1',
  'group.initial.rebalance.delay.ms': '0',
  // A broker that was killed is let in again when its last session has run out.
  'broker.session.timeout.ms': '3000',
  'broker.heartbeat.interval.ms': '500',
  // A quarter of a heap of 512 MB by default, for topics that are tiny here.
  'log.cleaner.dedupe.buffer.size': '16777216',
};

/** The broker's and the controller's. */
const OWN_PORTS = 2;
const PROPERTIES_FILE = 'server.properties';

/** What of a launch concerns Kafka. */
type KafkaOptions = Pick<LaunchOptions, 'kafkaSettings' | 'kafkaListeners' | 'kafkaUsers'>;

/**
 * Apache Kafka in KRaft mode; its first port is the broker's, its second the controller's, the rest those
 * of further listeners.
 *
 * @param jars Folder of Kafka and all it depends on.
 */
export function kafkaServer(
  jars: string,
  java: string,
  tethered: Tethered,
  options: KafkaOptions,
): JavaServerKind {
  const listeners = Object.keys(options.kafkaListeners ?? {});
  const clusterId = newClusterId();
  const classPath = ['-Dorg.slf4j.simpleLogger.defaultLogLevel=warn', '-cp', join(jars, '*')];

  return {
    title: 'Kafka',
    name: 'kafka',
    portCount: OWN_PORTS + listeners.length,
    portTaken: /Address already in use/,
    prepare: async (ports) => {
      const file = join(tethered.folder, PROPERTIES_FILE);
      await writeFile(file, properties(ports, tethered.folder, options));
      const tool = ['kafka.tools.StorageTool', 'format', '--ignore-formatted'];
      const users = scramUsers(options.kafkaUsers);
      const args = [...classPath, ...tool, '--cluster-id', clusterId, '--config', file, ...users];
      const format = await tethered.run('kafka-format', java, ['-XX:TieredStopAtLevel=1', ...args]);
      if ((await format.whenEnded) === 'exit code 0') return;
      const log = lastLines(await format.log());
      throw new CellarstreamError('SERVICES', `Kafka could not format its data folder:\n${log}`);
    },
    args: () => ['-Xmx512m', ...classPath, 'kafka.Kafka', join(tethered.folder, PROPERTIES_FILE)],
    probe: ([port]) => kafkaAnswers([`127.0.0.1:${port!}`], clusterId),
  };
}

/**
 * Asks for the cluster.
 *
 * @param clusterId The only one to be content with; default any.
 */
export function kafkaAnswers(brokers: string[], clusterId?: string): Probe {
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
      const ours = clusterId === undefined || cluster.clusterId === clusterId;
      return ours && cluster.brokers.length > 0;
    } finally {
      await admin.disconnect();
    }
  };
}

/** By name, where the further listeners are; `ports` are those of {@link kafkaServer}. */
export function listenersOf(
  { kafkaListeners = {} }: KafkaOptions,
  ports: readonly number[],
): Readonly<Record<string, string>> {
  const names = Object.keys(kafkaListeners);
  return Object.fromEntries(
    names.map((name, index) => [name, `127.0.0.1:${ports[OWN_PORTS + index]!}`]),
  );
}

function properties(ports: readonly number[], folder: string, options: KafkaOptions): string {
  const [broker, controller] = ports;
  const { kafkaListeners = {}, kafkaSettings } = options;
  const ways = Object.entries({
    BROKER: `127.0.0.1:${broker!}`,
    ...listenersOf(options, ports),
  }).map(([name, address]) => `${name}://${address}`);
  const protocols = { BROKER: 'PLAINTEXT', CONTROLLER: 'PLAINTEXT', ...kafkaListeners };
  const all = {
    ...SETTINGS,
    'listener.security.protocol.map': Object.entries(protocols)
      .map(([name, protocol]) => `${name}:${protocol}`)
      .join(),
    listeners: [...ways, `CONTROLLER://127.0.0.1:${controller!}`].join(),
    'advertised.listeners': ways.join(),
    'controller.quorum.voters': `1@127.0.0.1:${controller!}`,
    'log.dirs': join(folder, 'kafka-data'),
    ...kafkaSettings,
  };
  return Object.entries(all)
    .map(([name, value]) => `${name}=${escaped(value)}\n`)
    .join('');
}

/** A value of several lines, as PEM has them, stays one. */
function escaped(value: string): string {
  return value.replace(/\n/g, '\\n');
}

function scramUsers(users: KafkaOptions['kafkaUsers'] = {}): string[] {
  return Object.entries(users).flatMap(([name, password]) =>
    ['SCRAM-SHA-256', 'SCRAM-SHA-512'].flatMap((mechanism) => [
      '--add-scram',
      `${mechanism}=[name=${name},password=${password}]`,
    ]),
  );
}

/** Sixteen bytes in Kafka's text form, which must not begin with a hyphen. */
function newClusterId(): string {
  const bytes = randomBytes(16);
  bytes[0]! &= 0x7f;
  return bytes.toString('base64url');
}
