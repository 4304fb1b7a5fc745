import pc from 'picocolors';
import { hasAccounts, loadAccounts } from '../config/accounts.ts';
import { loadConfig } from '../config/load-config.ts';
import type { Config } from '../config/config.ts';
import { fleetAccountsNow, isWrong } from '../fleet/fleet-accounts-now.ts';
import type { AccountNow } from '../fleet/fleet-accounts-now.ts';
import { readFleetGroup } from '../fleet/fleet-group.ts';
import { readFleetLog } from '../fleet/read-fleet-log.ts';
import type { AccountFiles } from '../fleet/account-files.ts';
import { createLogger, kafkaLogCreator } from '../observe/log.ts';
import { topicNames } from '../schemas/events/topics.ts';
import { FIRST_RETRIES, openKafka } from '../sinks/client/open-kafka.ts';
import type { SettingsSource } from './one-account.ts';

/**
 * `cellarstream accounts`: which instance of the fleet runs which account, since when, and how it is; what is wrong comes first.
 * The fleet's topic says it, and the group, who of the owners is alive; the files of ACCOUNTS_DIR too, where that is set.
 * Resolves to whether each account has an owner, and a file that is right.
 */
export async function accountsCommand({ json }: { readonly json?: boolean }): Promise<boolean> {
  const source = { env: process.env, cwd: process.cwd() };
  // Without a registry each account's file would be wrong.
  const needs = hasAccounts(source) ? (['kafka', 'registry'] as const) : (['kafka'] as const);
  const config = loadConfig({ ...source, needs });
  const files = filesOf(config, source);
  const log = kafkaLogCreator(await createLogger({ level: config.logLevel }));
  const kafka = openKafka(config, { log, kafkaRetries: FIRST_RETRIES });
  const { sharedPrefix } = config.topics;

  const { words, reports } = await readFleetLog(kafka, topicNames(sharedPrefix).fleet);
  const group = await readFleetGroup(kafka, sharedPrefix);
  const accounts = fleetAccountsNow({ words, reports, group, files, now: Date.now() });
  process.stdout.write(json ? jsonLines(accounts) : table(accounts));
  return !accounts.some(isWrong);
}

function filesOf({ accountsDir, ...own }: Config, source: SettingsSource): AccountFiles {
  if (accountsDir === undefined) return new Map();
  return loadAccounts({ ...source, config: { ...own, accountsDir } });
}

function jsonLines(accounts: readonly AccountNow[]): string {
  return accounts
    .map(({ account, state, owner = null, since, problem = null, figures }) => {
      const { ready = null, lagMs = null, lookedAt, quota = null } = figures ?? {};
      const line = {
        ...{ account, state, instance: owner, since: timeOf(since) ?? null, problem },
        ...{ ready, lagMs, lookedAt: timeOf(lookedAt ?? undefined) ?? null, quota },
      };
      return `${JSON.stringify(line)}\n`;
    })
    .join('');
}

/** Of a column, what an account has in it; `-` for nothing. */
const COLUMNS: readonly ((account: AccountNow) => string)[] = [
  ({ account }) => account,
  ({ state }) => state,
  ({ owner = '-' }) => owner,
  ({ since }) => timeOf(since) ?? '-',
  ({ figures }) => (figures?.lagMs == null ? '-' : `lag ${(figures.lagMs / 1_000).toFixed(1)} s`),
  ({ figures }) =>
    figures?.quota ? `${figures.quota.name} ${figures.quota.used} of ${figures.quota.limit}` : '-',
  ({ problem = '' }) => problem,
];
const STATE = 1;

function table(accounts: readonly AccountNow[]): string {
  if (accounts.length === 0) return 'the fleet has no accounts\n';
  const colors = pc.createColors(process.stdout.isTTY && pc.isColorSupported);
  const widths = COLUMNS.map((cell) => Math.max(...accounts.map((one) => cell(one).length)));
  return accounts
    .map((one) => {
      const good = one.state === 'running' ? colors.green : colors.yellow;
      const inColor = isWrong(one) ? colors.red : good;
      const cells = COLUMNS.map((cell, place) => {
        const text = cell(one).padEnd(widths[place]!);
        return place === STATE ? inColor(text) : text;
      });
      return `${cells.join('  ').trimEnd()}\n`;
    })
    .join('');
}

function timeOf(since: number | undefined): string | undefined {
  return since === undefined ? undefined : new Date(since).toISOString();
}
