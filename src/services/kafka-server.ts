import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Kafka, logLevel } from 'kafkajs';
import { CellarstreamError } from '../errors.ts';
import type { JavaServerKind } from './java-server.ts';
import { lastLines, type Tethered } from './tethered.ts';
import type { Probe } from './until-ready.ts';

/** A single node: broker and controller in one, every topic with one replica. */
const SETTINGS: Readonly<Record<string, string>> = {
  'process.roles': 'broker,controller',
  'node.id': '1',
  'listener.security.protocol.map': 'BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT',
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

const PROPERTIES_FILE = 'server.properties';

/**
 * Apache Kafka in KRaft mode; its first port is the broker's, its second the controller's.
 *
 * @param jars Folder of Kafka and all it depends on.
 */
export function kafkaServer(
  jars: string,
  java: string,
  tethered: Tethered,
  settings: Readonly<Record<string, string>>,
): JavaServerKind {
  const clusterId = newClusterId();
  const classPath = ['-Dorg.slf4j.simpleLogger.defaultLogLevel=warn', '-cp', join(jars, '*')];

  return {
    title: 'Kafka',
    name: 'kafka',
    portCount: 2,
    portTaken: /Address already in use/,
    prepare: async (ports) => {
      const file = join(tethered.folder, PROPERTIES_FILE);
      await writeFile(file, properties(ports, tethered.folder, settings));
      const tool = ['kafka.tools.StorageTool', 'format', '--ignore-formatted'];
      const args = [...classPath, ...tool, '--cluster-id', clusterId, '--config', file];
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

function properties(
  [broker, controller]: readonly number[],
  folder: string,
  settings: Readonly<Record<string, string>>,
): string {
  const all = {
    ...SETTINGS,
    listeners: `BROKER://127.0.0.1:${broker!},CONTROLLER://127.0.0.1:${controller!}`,
    'advertised.listeners': `BROKER://127.0.0.1:${broker!}`,
    'controller.quorum.voters': `1@127.0.0.1:${controller!}`,
    'log.dirs': join(folder, 'kafka-data'),
    ...settings,
  };
  return Object.entries(all)
    .map(([name, value]) => `${name}=${value}\n`)
    .join('');
}

/** Sixteen bytes in Kafka's text form, which must not begin with a hyphen. */
function newClusterId(): string {
  const bytes = randomBytes(16);
  bytes[0]! &= 0x7f;
  return bytes.toString('base64url');
}
