import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { basename } from 'node:path';
import type { Observable } from 'rxjs';
import { hasAccounts } from '../config/accounts.ts';
import type { Config } from '../config/config.ts';
import { loadConfig } from '../config/load-config.ts';
import type { SettingsSource } from '../config/load-config.ts';
import { steadyScheduler } from '../core/clock.ts';
import { CellarstreamError } from '../core/errors.ts';
import { VERSION } from '../core/version.ts';
import { readMeasured, refutations } from '../description/measured.ts';
import { allHooks } from '../observe/all-hooks.ts';
import { createLogger, kafkaLogCreator } from '../observe/log.ts';
import type { Logger } from '../observe/log.ts';
import { openFleetOperations } from '../ops/fleet-operations.ts';
import { openOperations } from '../ops/operations.ts';
import type { Operations } from '../ops/operations.ts';
import { fleetAccountLogHooks, fleetLogHooks, logHooks } from './log-hooks.ts';
import { processSource } from './one-account.ts';
import { logOperations, logReadiness, logSettings } from './service-log.ts';
import { stopSignals } from './stop.ts';

// The pipeline is imported while the thread of the HTTP endpoints starts: each of the two takes 0.1 to 0.3 s.

/**
 * `cellarstream run`: runs the service until a signal; with `ACCOUNTS_DIR`, an instance of a fleet. With `believe`, it starts even if a
 * measurement refuted a statement of the API's description.
 */
export async function runCommand(flags: { readonly believe?: boolean }): Promise<void> {
  const { believe = false } = flags;
  const source = processSource();
  if (hasAccounts(source)) return runFleetCommand(source, believe);
  const config = loadConfig({ ...source, needs: ['api', 'kafka', 'registry'] });
  if (!believe) expectNotRefuted(config);
  const { account, topics, stateDir, description } = config;
  const fields = { account, prefix: topics.prefix, stateDir };
  return runLogged(config, source, fields, async (logger, stop$) => {
    const [operations, { run }] = await Promise.all([
      openOperations({ config, onError: logOperations(logger) }),
      import('../app.ts'),
    ]);
    const hooks = allHooks(logHooks(logger, description.lists), operations.hooks);
    const kafkaLog = kafkaLogCreator(logger);
    return { operations, run: () => run({ config, stop$, hooks, kafkaLog }) };
  });
}

async function runFleetCommand(source: SettingsSource, believe: boolean): Promise<void> {
  const config = loadConfig({ ...source, needs: ['kafka', 'registry'] });
  if (!believe) expectNotRefuted(config);
  const { accountsDir, topics, stateDir, description } = config;
  if (accountsDir === undefined) throw new Error('ACCOUNTS_DIR is not set'); // a bug
  const instance = config.instanceName ?? `${hostname()}-${randomUUID().slice(0, 4)}`;
  const fields = { instance, accountsDir, prefix: topics.prefix, stateDir };
  return runLogged(config, source, fields, async (logger, stop$) => {
    const onError = logOperations(logger);
    const [operations, { runFleet }] = await Promise.all([
      openFleetOperations({ config, instance, onError }),
      import('../fleet/fleet.ts'),
    ]);
    const { onFleet, onHandover, onFenced } = operations;
    const runInstance = () =>
      runFleet({
        config: { ...config, accountsDir },
        ...{ name: instance, source, stop$ },
        fleetHooks: { ...fleetLogHooks(logger), onFleet, onHandover, onFenced },
        watch: (own) => {
          const { hooks, ...observed } = operations.account(own);
          const accountLogger = logger.child({ account: own.account });
          logSettings(accountLogger, own, source);
          const logged = fleetAccountLogHooks(accountLogger, description.lists);
          return { ...observed, hooks: allHooks(logged, hooks) };
        },
        kafkaLog: kafkaLogCreator(logger),
      });
    return { operations, run: runInstance };
  });
}

/**
 * Runs a service until a signal, with its HTTP endpoints, and logs its start, doubtful settings, its readiness and its end.
 *
 * @param source Where the settings of `config` were read from.
 * @param fields Further fields of the log line about the start, which also contains the version.
 * @param open Opens the HTTP endpoints; returns them, and the function that runs the service.
 */
async function runLogged(
  config: Config,
  source: SettingsSource,
  fields: object,
  open: (
    logger: Logger,
    stop$: Observable<NodeJS.Signals>,
  ) => Promise<{
    readonly operations: Pick<Operations, 'url' | 'check' | 'close'>;
    readonly run: () => Promise<void>;
  }>,
): Promise<void> {
  const logger = await createLogger({ level: config.logLevel });
  const stop$ = stopSignals();
  logger.info({ event: 'start', version: VERSION, ...fields }, 'start');
  logSettings(logger, config, source);
  stop$.subscribe((signal) => logger.info({ event: 'stopping', signal }, 'stopping'));
  const { operations, run } = await open(logger, stop$);
  logger.info(
    { event: 'listening', url: operations.url },
    'serving the status page, metrics and health',
  );
  const readiness = logReadiness(logger, operations.check, steadyScheduler);
  try {
    await run();
  } finally {
    readiness.unsubscribe();
    await operations.close();
  }
  logger.info({ event: 'stopped' }, 'stopped');
}

/**
 * Throws if a measurement has refuted a statement of the description about one of the lists `resources`. The measurement is read from the
 * file that `MEASURED` names or, without that setting, from the description.
 *
 * @throws CellarstreamError `SETTINGS`, with one line for each refuted statement.
 */
export function expectNotRefuted({ measuredFile, description, resources }: Config): void {
  const [file, measured] =
    measuredFile === undefined
      ? ['API_DESCRIPTION', description.measured]
      : [`MEASURED ${basename(measuredFile)}`, readMeasured(measuredFile)];
  if (!measured) return;
  const lines = refutations(measured, resources).map((line) => `${file}: ${line}`);
  if (lines.length === 0) return;
  lines.push('To start despite refuted claims, use `cellarstream run --believe`');
  throw new CellarstreamError('SETTINGS', lines.join('\n'));
}
