import type { Kafka } from 'kafkajs';
import { hasAccounts } from '../config/accounts.ts';
import type { ConfigWith } from '../config/config.ts';
import { CellarstreamError } from '../core/errors.ts';
import { topicNames } from '../schemas/events/topics.ts';
import { existing } from '../sinks/client/topic-facts.ts';
import { oneAccount } from './one-account.ts';
import type { SettingsSource } from './one-account.ts';

const NEEDS = ['kafka', 'registry'] as const;
type ReplaySettings = ConfigWith<(typeof NEEDS)[number]>;

/**
 * The settings for a replay: of the account's file, where ACCOUNTS_DIR has one. Who consumes has no keys, and often no files: then
 * {@link replayedPrefix} finds the account.
 *
 * @throws CellarstreamError `SETTINGS`.
 */
export function replaySettings(
  source: SettingsSource,
  account: string | undefined,
): ReplaySettings {
  return oneAccount(source, hasAccounts(source) ? account : undefined, NEEDS);
}

/**
 * What an account's topics begin with. Without its file that is `<TOPIC_PREFIX>.<account>`, if Kafka has a fleet's topic under
 * TOPIC_PREFIX. A file can say otherwise: then TOPIC_PREFIX alone names it.
 *
 * @throws CellarstreamError `SETTINGS` where there is no fleet, and the account is not the one of the settings.
 */
export async function replayedPrefix(
  { account: own, accountsDir, topics }: ReplaySettings,
  account: string | undefined,
  kafka: Kafka,
): Promise<string> {
  const { prefix } = topics;
  if (account === undefined || accountsDir !== undefined) return prefix;
  const { fleet } = topicNames(prefix);
  if ((await existing({ kafka }, [fleet])).has(fleet)) return `${prefix}.${account}`;
  if (account === own) return prefix;
  throw new CellarstreamError(
    'SETTINGS',
    `--account ${account}: Kafka has no fleet under TOPIC_PREFIX=${prefix}, and the one account there is ${own} (ACCOUNT_NAME)`,
  );
}
