import type { Kafka } from 'kafkajs';
import type { ConfigWith } from '../config/config.ts';
import { settingWarnings } from '../config/setting-warnings.ts';
import { CellarstreamError } from '../core/errors.ts';
import { listsNamed } from '../description/description.ts';
import { createLogger, kafkaLogCreator } from '../observe/log.ts';
import type { ActiveInstance } from '../pipeline/checkpoint/active-instance.ts';
import { parseCursor } from '../pipeline/checkpoint/cursor.ts';
import { expectPartitions } from '../pipeline/checkpoint/restore.ts';
import { newestCursors } from '../pipeline/checkpoint/task-claim.ts';
import { findingText } from '../schemas/events/topic-findings.ts';
import { eventTopics, keySubject, topicNames, valueSubject } from '../schemas/events/topics.ts';
import type { Registry } from '../schemas/registry/registry.ts';
import { kafkaTransactionalLog, openKafkaClients } from '../sinks/open-kafka.ts';
import { topicsOf } from '../sinks/topics/destination.ts';
import { registryStorageFindings } from '../sinks/topics/kafka-topics.ts';
import { checkApi } from './check-api.ts';
import { checkKafka, checkRights } from './check-kafka.ts';
import { tryCheck } from './findings.ts';
import type { Finding } from './findings.ts';
import { oneAccount } from './one-account.ts';
import type { SettingsSource } from './one-account.ts';
import { instanceText, runningInstanceOf } from './running-instance.ts';

/**
 * Checks what a service with these settings requires: first the settings, then, if they are valid, everything else.
 *
 * @param account Name of an account of a fleet; undefined without a fleet.
 */
export async function checkAccount(
  source: SettingsSource,
  account?: string,
): Promise<readonly Finding[]> {
  let config: ConfigWith<'api' | 'kafka' | 'registry'> | undefined;
  const settings = await tryCheck('settings', () => {
    config = oneAccount(source, account, ['api', 'kafka', 'registry']);
    const warnings = settingWarnings(config, source);
    return ['valid', ...warnings.map(({ name, advice }) => `but ${name} ${advice}`)].join('; ');
  });
  if (!config || !settings.fine) return [settings];
  const [api, destination] = await Promise.all([checkApi(config), checkDestination(config)]);
  return [settings, ...api, ...destination];
}

async function checkDestination(config: ConfigWith<'kafka' | 'registry'>): Promise<Finding[]> {
  const log = kafkaLogCreator(await createLogger({ level: 'silent' }));
  const { kafka, registry, connections } = openKafkaClients(config, { log, kafkaRetries: 2 });
  try {
    let running: ActiveInstance | undefined;
    const topics = topicsOf(config, { kafka, connections });
    const [ofKafka, ofRegistry] = await Promise.all([
      checkKafka(topics, async (absent) => {
        await expectPartitionsOf(config, kafka, absent);
        // An account of a fleet is supposed to be served by an instance.
        if (config.accountsDir === undefined) running = await runningInstanceOf(config, kafka);
      }),
      tryCheck('registry', () => checkSubjects(config, registry)),
    ]);
    const { finding, warnings, isAnswering } = ofKafka;
    const ofRegistryStorage = isAnswering
      ? await registryStorageFindings(topics).catch(() => []) // an unreachable Kafka is already reported above
      : [];
    const unwise = (what: string, detail: string) => ({ what, fine: true, isUnwise: true, detail });
    const conflict = running
      ? [
          unwise(
            'account',
            `${instanceText(running)} runs ${config.account}: \`cellarstream run\` would fence that instance (end its right to write), so that it stops. Stop it first, or set another TOPIC_PREFIX`,
          ),
        ]
      : [];
    return [
      finding,
      ...(isAnswering ? await checkRights({ config, topics }) : []),
      ofRegistry,
      ...conflict,
      ...[...warnings, ...ofRegistryStorage].map((each) => unwise('topic', findingText(each))),
    ];
  } finally {
    connections.close();
    await registry.close();
  }
}

/**
 * Checks the subjects of the service's topics in the schema registry. Resolves to a text with the newest registered schema version of each
 * list, or one that says that `run` will register the schemas.
 *
 * @throws CellarstreamError `REGISTRY_REFUSED` if the settings of a subject would prevent the service from registering its schemas.
 */
async function checkSubjects(
  { topics: { prefix }, resources, description, keyFormat }: ConfigWith<'registry'>,
  registry: Registry,
): Promise<string> {
  const names = topicNames(prefix);
  const keyed = eventTopics(names, listsNamed(description, resources));
  const inspected = (subjects: readonly string[]) =>
    Promise.all(subjects.map((subject) => registry.inspect(subject)));
  const [values, keys] = await Promise.all([
    inspected([...keyed, names.deadLetters].map(valueSubject)),
    inspected(keyFormat === 'avro' ? keyed.map(keySubject) : []),
  ]);
  const refusal = [...values, ...keys].flatMap(({ refusals }) => refusals)[0];
  if (refusal !== undefined) throw new CellarstreamError('REGISTRY_REFUSED', refusal);
  const versions = resources.flatMap((resource, nth) => {
    const { version } = values[nth]!;
    return version === undefined ? [] : [`${resource} ${version}`];
  });
  if (versions.length === 0) return 'no schemas yet; `cellarstream run` will register them';
  return `versions ${versions.join(', ')}`;
}

/**
 * Throws if the number of partitions of a list's event topic differs from the number in the list's cursor (its committed progress). Lists
 * without a cursor and topics without messages are skipped.
 */
async function expectPartitionsOf(
  config: ConfigWith<'kafka'>,
  kafka: Kafka,
  absent: readonly string[],
): Promise<void> {
  const { records, cursors } = topicNames(config.topics.prefix, config.topics.sharedPrefix);
  if (absent.includes(cursors)) return;
  const log = kafkaTransactionalLog({ kafka }, { partitions: new Map() });
  const { newest } = await newestCursors(log, cursors);
  for (const resource of config.resources) {
    const [topic, task] = [records(resource), `${config.account}/${resource}`];
    const text = newest.get(task)?.value.toString();
    if (text === undefined || absent.includes(topic)) continue;
    expectPartitions(parseCursor(text, task), topic, await log.bounds(topic));
  }
}
