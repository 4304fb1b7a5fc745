import { run } from '../app.ts';
import { loadConfig } from '../config.ts';
import { createLogger, kafkaLogCreator } from '../log.ts';
import { VERSION } from '../version.ts';
import { logHooks } from './log-hooks.ts';
import { stopSignals } from './stop.ts';

/** `cellarstream run`: the service, until a signal. */
export async function runCommand(): Promise<void> {
  const config = loadConfig({
    env: process.env,
    cwd: process.cwd(),
    needs: ['api', 'kafka', 'registry'],
  });
  const logger = await createLogger({ level: config.logLevel });
  const stop$ = stopSignals();
  const { account, topics, stateDir } = config;
  logger.info(
    { event: 'start', version: VERSION, account, prefix: topics.prefix, stateDir },
    'start',
  );
  stop$.subscribe((signal) => logger.info({ event: 'stopping', signal }, 'stopping'));
  await run({ config, stop$, hooks: logHooks(logger), kafkaLog: kafkaLogCreator(logger) });
  logger.info({ event: 'stopped' }, 'stopped');
}
