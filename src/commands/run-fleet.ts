import type { AccountsOptions } from '../config/accounts.ts';
import { loadConfig } from '../config/load-config.ts';
import { VERSION } from '../core/version.ts';
import { runFleet } from '../fleet/fleet.ts';
import { createLogger, kafkaLogCreator } from '../observe/log.ts';
import { fleetLogHooks } from './fleet-log-hooks.ts';
import { logHooks } from './log-hooks.ts';
import { stopSignals } from './stop.ts';

/** `cellarstream run` with `ACCOUNTS_DIR`: an instance of a fleet, until a signal. */
export async function runFleetCommand(source: Pick<AccountsOptions, 'env' | 'cwd'>): Promise<void> {
  const config = loadConfig({ ...source, needs: ['kafka', 'registry'] });
  const { accountsDir, topics, stateDir } = config;
  if (accountsDir === undefined) throw new Error('ACCOUNTS_DIR is not set'); // a bug
  const logger = await createLogger({ level: config.logLevel });
  const stop$ = stopSignals();
  logger.info(
    { event: 'start', version: VERSION, accountsDir, prefix: topics.prefix, stateDir },
    'start',
  );
  stop$.subscribe((signal) => logger.info({ event: 'stopping', signal }, 'stopping'));
  await runFleet({
    config: { ...config, accountsDir },
    source,
    stop$,
    fleetHooks: fleetLogHooks(logger),
    hooksOf: ({ account }) => logHooks(logger.child({ account })),
    kafkaLog: kafkaLogCreator(logger),
  });
  logger.info({ event: 'stopped' }, 'stopped');
}
