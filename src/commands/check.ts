import type { Kafka } from 'kafkajs';
import { from, lastValueFrom, mergeMap, toArray } from 'rxjs';
import { hasAccounts, loadAccounts } from '../config/accounts.ts';
import type { AccountFile } from '../config/accounts.ts';
import { loadConfig } from '../config/load-config.ts';
import type { SettingsSource } from '../config/load-config.ts';
import type { ConfigWith } from '../config/config.ts';
import { settingWarnings } from '../config/setting-warnings.ts';
import { CellarstreamError, describeError } from '../core/errors.ts';
import { listsNamed } from '../description/description.ts';
import { fleetGroupId } from '../fleet/fleet-group.ts';
import { createLogger, kafkaLogCreator } from '../observe/log.ts';
import type { ActiveInstance } from '../pipeline/checkpoint/active-instance.ts';
import { parseCursor } from '../pipeline/checkpoint/cursor.ts';
import { expectPartitions } from '../pipeline/checkpoint/restore.ts';
import { newestCursors } from '../pipeline/checkpoint/task-claim.ts';
import { findingText } from '../schemas/events/topic-findings.ts';
import { eventTopics, keySubject, topicNames, valueSubject } from '../schemas/events/topics.ts';
import type { Registry } from '../schemas/registry/registry.ts';
import { kafkaTransactionalLog, openKafkaClients } from '../sinks/open-kafka.ts';
import type { KafkaClients } from '../sinks/open-kafka.ts';
import { sharedTopicsOf, topicsOf } from '../sinks/topics/destination.ts';
import { registryStorageFindings } from '../sinks/topics/kafka-topics.ts';
import { checkApi } from './check-api.ts';
import { checkKafka } from './check-kafka.ts';
import { findingsTable, tryCheck } from './findings.ts';
import type { Finding } from './findings.ts';
import { measureCommand } from './measure.ts';
import { oneAccount, processSource } from './one-account.ts';
import { instanceText, runningInstanceOf } from './running-instance.ts';

/** Maximum number of accounts checked at the same time, since each needs separate connections. */
const MAX_AT_A_TIME = 4;

/**
 * `cellarstream check`: tests everything that `run` requires, and prints the results as a table: the details of one account, or a line for
 * each account of a fleet. Resolves to whether everything works.
 *
 * The requests of `check` to the API count against the account's quota. In Kafka, `check` opens a separate transactional id, and writes
 * only declarations in the ledger and requests for permits.
 */
export async function checkCommand({
  account,
  measure = false,
}: {
  readonly account?: string;
  readonly measure?: boolean;
}): Promise<boolean> {
  const source = processSource();
  if (measure) return measureCommand(source, account);
  const isFleet = account === undefined && hasAccounts(source);
  const found = isFleet ? await checkFleet(source) : await checkAccount(source, account);
  process.stdout.write(findingsTable(found));
  return found.every(({ fine }) => fine);
}

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

/** Checks Kafka and the registry once, and the file, login and lists of each account. An account's checks give one finding. */
async function checkFleet(source: SettingsSource): Promise<readonly Finding[]> {
  let files: ReadonlyMap<string, AccountFile> = new Map();
  let config: ConfigWith<'kafka' | 'registry'> | undefined;
  const settings = await tryCheck('settings', () => {
    const { accountsDir = '', ...own } = loadConfig({ ...source, needs: ['kafka', 'registry'] });
    files = loadAccounts({ ...source, config: { ...own, accountsDir } });
    config = { ...own, accountsDir };
    const accounts = `${files.size} account${files.size === 1 ? '' : 's'}`;
    return `valid; ${accounts} in ACCOUNTS_DIR`;
  });
  if (!config) return [settings];
  const [destination, accounts] = await Promise.all([checkShared(config), checkAccounts(files)]);
  return [settings, ...destination, ...accounts];
}

/** Checks Kafka, the topics and schemas of one account, and, for an account outside of a fleet, whether an instance already serves it. */
function checkDestination(config: ConfigWith<'kafka' | 'registry'>): Promise<Finding[]> {
  return withClients(config, async ({ kafka, connections, registry }) => {
    let running: ActiveInstance | undefined;
    const topics = topicsOf(config, { kafka, connections });
    const checkMore = async (absent: readonly string[]) => {
      await expectPartitionsOf(config, kafka, absent);
      // An account of a fleet is supposed to be served by an instance.
      if (config.accountsDir === undefined) running = await runningInstanceOf(config, kafka);
    };
    const [{ findings, warnings, isAnswering }, ofRegistry] = await Promise.all([
      checkKafka({ config, topics, checkMore }),
      tryCheck('registry', () => checkSubjects(config, registry)),
    ]);
    const ofRegistryStorage = isAnswering
      ? await registryStorageFindings(topics).catch(() => []) // an unreachable Kafka is already reported above
      : [];
    const unwise = (what: string, detail: string) => ({ what, fine: true, isUnwise: true, detail });
    const fences =
      '`cellarstream run` would fence that instance (end its right to write), so that it stops. Stop it first, or set another TOPIC_PREFIX';
    const conflict = running && `${instanceText(running)} runs ${config.account}: ${fences}`;
    return [
      ...findings,
      ofRegistry,
      ...(conflict === undefined ? [] : [unwise('account', conflict)]),
      ...[...warnings, ...ofRegistryStorage].map((each) => unwise('topic', findingText(each))),
    ];
  });
}

/** Checks the topics that the accounts of a fleet share, the fleet's Kafka group, and whether the registry responds. */
function checkShared(config: ConfigWith<'kafka' | 'registry'>): Promise<Finding[]> {
  return withClients(config, async ({ kafka, connections, registry }) => {
    const topics = sharedTopicsOf(config, { kafka, connections });
    const [{ findings }, ofRegistry] = await Promise.all([
      checkKafka({ config, topics, group: fleetGroupId(config.topics.sharedPrefix) }),
      tryCheck('registry', async () => {
        const { deadLetters } = topicNames(config.topics.prefix);
        await registry.latest(valueSubject(deadLetters)); // any subject will do
        return 'responds';
      }),
    ]);
    return [...findings, ofRegistry];
  });
}

/** Runs `work` with clients of Kafka and the registry, and then closes the clients. They log nothing and give up soon. */
async function withClients<T>(
  config: ConfigWith<'kafka' | 'registry'>,
  work: (clients: KafkaClients) => Promise<T>,
): Promise<T> {
  const log = kafkaLogCreator(await createLogger({ level: 'silent' }));
  const clients = openKafkaClients(config, { log, kafkaRetries: 2 });
  try {
    return await work(clients);
  } finally {
    clients.connections.close();
    await clients.registry.close();
  }
}

async function checkAccounts(files: ReadonlyMap<string, AccountFile>): Promise<readonly Finding[]> {
  const found$ = from(files).pipe(
    mergeMap(([account, file]) => checkOne(account, file), MAX_AT_A_TIME),
    toArray(),
  );
  return (await lastValueFrom(found$)).sort((a, b) => (a.what < b.what ? -1 : 1));
}

async function checkOne(what: string, file: AccountFile): Promise<Finding> {
  if ('error' in file) return { what, fine: false, detail: describeError(file.error) };
  const found = await checkApi(file.config);
  return {
    what,
    fine: found.every(({ fine }) => fine),
    isUnwise: found.some(({ isUnwise }) => isUnwise),
    detail: detailOf(found),
  };
}

/** Joins the details of an account's failed findings, or of all its findings if none failed. */
function detailOf(found: readonly Finding[]): string {
  const wrong = found.filter(({ fine }) => !fine);
  return (wrong.length > 0 ? wrong : found)
    .map(({ what, detail }) => `${what}: ${detail}`)
    .join('; ');
}

/**
 * Checks the subjects of the service's topics in the schema registry. Resolves to a text with the newest registered schema versions, or one
 * that says that there are none.
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

/** Throws if the number of partitions of a list's event topic differs from the number in the list's cursor (its committed progress). */
async function expectPartitionsOf(
  { account, resources, topics: { prefix, sharedPrefix } }: ConfigWith<'kafka'>,
  kafka: Kafka,
  absent: readonly string[],
): Promise<void> {
  const { records, cursors } = topicNames(prefix, sharedPrefix);
  if (absent.includes(cursors)) return;
  const log = kafkaTransactionalLog({ kafka }, { partitions: new Map() });
  const { newest } = await newestCursors(log, cursors);
  for (const resource of resources) {
    const [topic, task] = [records(resource), `${account}/${resource}`];
    const text = newest.get(task)?.value.toString();
    if (text === undefined || absent.includes(topic)) continue;
    expectPartitions(parseCursor(text, task), topic, await log.bounds(topic));
  }
}
