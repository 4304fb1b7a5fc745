import { from, lastValueFrom, mergeMap, toArray } from 'rxjs';
import { loadAccounts } from '../config/accounts.ts';
import type { AccountFile } from '../config/accounts.ts';
import { loadConfig } from '../config/load-config.ts';
import type { ConfigWith } from '../config/config.ts';
import { describeError } from '../core/errors.ts';
import { createLogger, kafkaLogCreator } from '../observe/log.ts';
import { topicNames, valueSubject } from '../schemas/events/topics.ts';
import { openKafkaClients } from '../sinks/open-kafka.ts';
import { sharedTopicsOf } from '../sinks/topics/destination.ts';
import { fleetGroupId } from '../fleet/fleet-group.ts';
import { checkApi } from './check-api.ts';
import { checkKafka, checkRights } from './check-kafka.ts';
import { tryCheck } from './findings.ts';
import type { Finding } from './findings.ts';
import type { SettingsSource } from './one-account.ts';

/** Number of accounts checked at the same time: each needs separate connections. */
const MAX_AT_A_TIME = 4;

/** Checks Kafka and the registry once, and the file, login and lists of each account. An account's checks give one finding. */
export async function checkFleet(source: SettingsSource): Promise<readonly Finding[]> {
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

async function checkShared(config: ConfigWith<'kafka' | 'registry'>): Promise<readonly Finding[]> {
  const log = kafkaLogCreator(await createLogger({ level: 'silent' }));
  const { kafka, registry, connections } = openKafkaClients(config, { log, kafkaRetries: 2 });
  try {
    const topics = sharedTopicsOf(config, { kafka, connections });
    const [{ finding, isAnswering }, ofRegistry] = await Promise.all([
      checkKafka(topics),
      tryCheck('registry', async () => {
        const { deadLetters } = topicNames(config.topics.prefix);
        await registry.latest(valueSubject(deadLetters)); // any subject will do
        return 'responds';
      }),
    ]);
    const group = fleetGroupId(config.topics.sharedPrefix);
    const rights = isAnswering ? await checkRights({ config, topics, group }) : [];
    return [finding, ...rights, ofRegistry];
  } finally {
    connections.close();
    await registry.close();
  }
}

async function checkAccounts(files: ReadonlyMap<string, AccountFile>): Promise<readonly Finding[]> {
  const found$ = from(files).pipe(
    mergeMap(([account, file]) => checkOne(account, file), MAX_AT_A_TIME),
    toArray(),
  );
  const found = await lastValueFrom(found$);
  return found.sort((a, b) => (a.what < b.what ? -1 : 1));
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
