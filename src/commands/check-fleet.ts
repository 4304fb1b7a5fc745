import { from, lastValueFrom, mergeMap, toArray } from 'rxjs';
import { loadAccounts } from '../config/accounts.ts';
import type { AccountFile } from '../config/accounts.ts';
import { loadConfig } from '../config/load-config.ts';
import type { ConfigWith } from '../config/config.ts';
import { describeError } from '../core/errors.ts';
import { createLogger, kafkaLogCreator } from '../observe/log.ts';
import { topicNames, valueSubject } from '../schemas/events/topics.ts';
import { openLinks } from '../sinks/client/open-kafka.ts';
import { inspectTopics } from '../sinks/topics/kafka-topics.ts';
import { sharedTopicsOf } from '../sinks/topics/destination.ts';
import { fleetGroup } from '../fleet/fleet-group.ts';
import { checkApi, isAboutTopics } from './check-account.ts';
import { checkRights } from './check-kafka.ts';
import { attempt } from './findings.ts';
import type { Finding } from './findings.ts';
import type { SettingsSource } from './one-account.ts';

/** How many accounts are tried at a time: each has connections of its own. */
const MAX_AT_A_TIME = 4;

/** Tries Kafka and the registry once, and of each account its file, its login and its lists: a line each. */
export async function checkFleet(source: SettingsSource): Promise<readonly Finding[]> {
  let files: ReadonlyMap<string, AccountFile> = new Map();
  let config: ConfigWith<'kafka' | 'registry'> | undefined;
  const settings = await attempt('settings', () => {
    const { accountsDir = '', ...own } = loadConfig({ ...source, needs: ['kafka', 'registry'] });
    files = loadAccounts({ ...source, config: { ...own, accountsDir } });
    config = { ...own, accountsDir };
    const accounts = `${files.size} account${files.size === 1 ? '' : 's'}`;
    return Promise.resolve(`all there; ${accounts} in ACCOUNTS_DIR`);
  });
  if (!config) return [settings];
  const [destination, accounts] = await Promise.all([checkShared(config), checkAccounts(files)]);
  return [settings, ...destination, ...accounts];
}

async function checkShared(config: ConfigWith<'kafka' | 'registry'>): Promise<readonly Finding[]> {
  const log = kafkaLogCreator(await createLogger({ level: 'silent' }));
  const { kafka, registry, connections } = openLinks(config, { log, kafkaRetries: 2 });
  try {
    const topics = sharedTopicsOf(config, { kafka, connections });
    let isAnswering = true;
    const [ofKafka, ofRegistry] = await Promise.all([
      attempt('kafka', async () => {
        const { brokers, absent } = await inspectTopics(topics).catch((error: unknown) => {
          isAnswering = isAboutTopics(error);
          throw error;
        });
        const there = absent.length > 0 ? `run will make ${absent.join(', ')}` : 'all topics there';
        return `${brokers} broker${brokers === 1 ? '' : 's'}; ${there}`;
      }),
      attempt('registry', async () => {
        const { deadLetters } = topicNames(config.topics.prefix);
        await registry.latest(valueSubject(deadLetters)); // any will do
        return 'answers';
      }),
    ]);
    const group = fleetGroup(config.topics.sharedPrefix);
    const rights = isAnswering ? await checkRights({ config, topics, group }) : [];
    return [ofKafka, ...rights, ofRegistry];
  } finally {
    connections.close();
    await registry.close();
  }
}

/** In the order of their names, whichever answers first. */
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

/** What is wrong; where all is well, what there is. */
function detailOf(found: readonly Finding[]): string {
  const wrong = found.filter(({ fine }) => !fine);
  const told = wrong.length > 0 ? wrong : found;
  return told.map(({ what, detail }) => `${what}: ${detail}`).join('; ');
}
