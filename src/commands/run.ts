import { run } from '../app.ts';
import { steadyScheduler } from '../core/clock.ts';
import { hasAccounts } from '../config/accounts.ts';
import { loadConfig } from '../config/load-config.ts';
import { createLogger, kafkaLogCreator } from '../observe/log.ts';
import { allHooks } from '../observe/all-hooks.ts';
import { openOperations } from '../ops/operations.ts';
import { VERSION } from '../core/version.ts';
import { logHooks } from './log-hooks.ts';
import { logOperations } from './log-operations.ts';
import { logReadiness } from './log-readiness.ts';
import { logSettings } from './log-settings.ts';
import { stopSignals } from './stop.ts';

/** `cellarstream run`: runs the service until a signal; with `ACCOUNTS_DIR`, an instance of a fleet. */
export async function runCommand(): Promise<void> {
  const source = { env: process.env, cwd: process.cwd() };
  if (hasAccounts(source)) return (await import('./run-fleet.ts')).runFleetCommand(source);
  const config = loadConfig({ ...source, needs: ['api', 'kafka', 'registry'] });
  const logger = await createLogger({ level: config.logLevel });
  const stop$ = stopSignals();
  const { account, topics, stateDir } = config;
  logger.info(
    { event: 'start', version: VERSION, account, prefix: topics.prefix, stateDir },
    'start',
  );
  logSettings(logger, config, source);
  stop$.subscribe((signal) => logger.info({ event: 'stopping', signal }, 'stopping'));
  const operations = await openOperations({
    config,
    onError: logOperations(logger),
  });
  logger.info({ event: 'listening', url: operations.url }, 'status page, metrics and health');
  const telling = logReadiness(logger, operations.check, steadyScheduler);
  try {
    await run({
      config,
      stop$,
      hooks: allHooks(logHooks(logger), operations.hooks),
      kafkaLog: kafkaLogCreator(logger),
    });
  } finally {
    telling.unsubscribe();
    await operations.close();
  }
  logger.info({ event: 'stopped' }, 'stopped');
}
