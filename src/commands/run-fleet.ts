import type { AccountsOptions } from '../config/accounts.ts';
import { loadConfig } from '../config/load-config.ts';
import { steadyScheduler } from '../core/clock.ts';
import { VERSION } from '../core/version.ts';
import { instanceNameOf, runFleet } from '../fleet/fleet.ts';
import { allHooks } from '../observe/all-hooks.ts';
import { createLogger, kafkaLogCreator } from '../observe/log.ts';
import { openFleetOperations } from '../ops/fleet-operations.ts';
import { fleetAccountLogHooks, fleetLogHooks } from './fleet-log-hooks.ts';
import { logOperations } from './log-operations.ts';
import { logReadiness } from './log-readiness.ts';
import { logSettings } from './log-settings.ts';
import { stopSignals } from './stop.ts';

/** `cellarstream run` with `ACCOUNTS_DIR`: runs an instance of a fleet until a signal. */
export async function runFleetCommand(source: Pick<AccountsOptions, 'env' | 'cwd'>): Promise<void> {
  const config = loadConfig({ ...source, needs: ['kafka', 'registry'] });
  const { accountsDir, topics, stateDir } = config;
  if (accountsDir === undefined) throw new Error('ACCOUNTS_DIR is not set'); // a bug
  const instance = instanceNameOf(config);
  const logger = await createLogger({ level: config.logLevel });
  const stop$ = stopSignals();
  logger.info(
    {
      ...{ event: 'start', version: VERSION, instance },
      ...{ accountsDir, prefix: topics.prefix, stateDir },
    },
    'start',
  );
  logSettings(logger, config, source);
  stop$.subscribe((signal) => logger.info({ event: 'stopping', signal }, 'stopping'));
  const operations = await openFleetOperations({
    ...{ config, instance },
    onError: logOperations(logger),
  });
  logger.info({ event: 'listening', url: operations.url }, 'status page, metrics and health');
  const telling = logReadiness(logger, operations.check, steadyScheduler);
  const logged = fleetLogHooks(logger);
  try {
    await runFleet({
      config: { ...config, accountsDir },
      ...{ name: instance, source, stop$ },
      fleetHooks: {
        ...logged,
        onFleet: operations.onFleet,
        onHandover: operations.onHandover,
        onFenced: operations.onFenced,
      },
      watch: (own) => {
        const account = operations.account(own);
        const line = logger.child({ account: own.account });
        logSettings(line, own, source);
        const { figures, end } = account;
        return { hooks: allHooks(fleetAccountLogHooks(line), account.hooks), figures, end };
      },
      kafkaLog: kafkaLogCreator(logger),
    });
  } finally {
    telling.unsubscribe();
    await operations.close();
  }
  logger.info({ event: 'stopped' }, 'stopped');
}
