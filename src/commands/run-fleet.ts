import { loadConfig } from '../config/load-config.ts';
import { instanceNameOf, runFleet } from '../fleet/fleet.ts';
import { allHooks } from '../observe/all-hooks.ts';
import { kafkaLogCreator } from '../observe/log.ts';
import { openFleetOperations } from '../ops/fleet-operations.ts';
import { fleetAccountLogHooks, fleetLogHooks } from './fleet-log-hooks.ts';
import type { SettingsSource } from './one-account.ts';
import { expectNotRefuted } from './refuted.ts';
import { logSettings, runLogged } from './service-log.ts';

/**
 * `cellarstream run` with `ACCOUNTS_DIR`: runs an instance of a fleet until it receives a stop signal. With `believe`, it also starts if a
 * measurement has refuted the API's description ({@link expectNotRefuted} is skipped).
 */
export async function runFleetCommand(source: SettingsSource, believe: boolean): Promise<void> {
  const config = loadConfig({ ...source, needs: ['kafka', 'registry'] });
  if (!believe) expectNotRefuted(config);
  const { accountsDir, topics, stateDir } = config;
  if (accountsDir === undefined) throw new Error('ACCOUNTS_DIR is not set'); // a bug
  const instance = instanceNameOf(config);
  return runLogged({
    ...{ config, source },
    fields: { instance, accountsDir, prefix: topics.prefix, stateDir },
    open: (onError) => openFleetOperations({ config, instance, onError }),
    run: ({ logger, operations, stop$ }) => {
      const { onFleet, onHandover, onFenced } = operations;
      return runFleet({
        config: { ...config, accountsDir },
        ...{ name: instance, source, stop$ },
        fleetHooks: { ...fleetLogHooks(logger), onFleet, onHandover, onFenced },
        watch: (own) => {
          const { hooks, figures, end } = operations.account(own);
          const accountLogger = logger.child({ account: own.account });
          logSettings(accountLogger, own, source);
          return {
            hooks: allHooks(fleetAccountLogHooks(accountLogger, config.description.lists), hooks),
            figures,
            end,
          };
        },
        kafkaLog: kafkaLogCreator(logger),
      });
    },
  });
}
