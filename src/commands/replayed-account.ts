import type { Kafka } from 'kafkajs';
import { hasAccounts } from '../config/accounts.ts';
import type { ConfigWith } from '../config/config.ts';
import { CellarstreamError } from '../core/errors.ts';
import { topicNames } from '../schemas/events/topics.ts';
import { existing } from '../kafka/client/topic-facts.ts';
import { oneAccount } from './one-account.ts';
import type { SettingsSource } from './one-account.ts';

const NEEDS = ['kafka', 'registry'] as const;
type ReplaySettings = ConfigWith<(typeof NEEDS)[number]>;

/**
 * Loads the settings for a replay: from the account's file if ACCOUNTS_DIR is set. Consumers have no API keys and often no accounts' files:
 * then {@link replayedPrefix} determines the account's topics.
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
 * Returns the prefix of an account's topics. Without the account's file that is `<TOPIC_PREFIX>.<account>`, if Kafka has a fleet's topic
 * under TOPIC_PREFIX. If the file sets another prefix, TOPIC_PREFIX has to be set to it instead.
 *
 * @throws CellarstreamError `SETTINGS` if there is no fleet, and the account is not the one in the settings.
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
