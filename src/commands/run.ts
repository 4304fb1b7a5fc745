import { run } from '../app.ts';
import { hasAccounts } from '../config/accounts.ts';
import { loadConfig } from '../config/load-config.ts';
import { kafkaLogCreator } from '../observe/log.ts';
import { allHooks } from '../observe/all-hooks.ts';
import { openOperations } from '../ops/operations.ts';
import { expectNotRefuted } from './refuted.ts';
import { logHooks } from './log-hooks.ts';
import { processSource } from './one-account.ts';
import { runLogged } from './service-log.ts';

/**
 * `cellarstream run`: runs the service until a signal; with `ACCOUNTS_DIR`, an instance of a fleet. With `believe`, it starts even if a
 * measurement refuted a claim of the API's description.
 */
export async function runCommand({
  believe = false,
}: {
  readonly believe?: boolean;
}): Promise<void> {
  const source = processSource();
  if (hasAccounts(source)) return (await import('./run-fleet.ts')).runFleetCommand(source, believe);
  const config = loadConfig({ ...source, needs: ['api', 'kafka', 'registry'] });
  if (!believe) expectNotRefuted(config);
  const { account, topics, stateDir } = config;
  return runLogged({
    ...{ config, source },
    fields: { account, prefix: topics.prefix, stateDir },
    open: (onError) => openOperations({ config, onError }),
    run: ({ logger, operations, stop$ }) =>
      run({
        ...{ config, stop$ },
        hooks: allHooks(logHooks(logger, config.description.lists), operations.hooks),
        kafkaLog: kafkaLogCreator(logger),
      }),
  });
}
