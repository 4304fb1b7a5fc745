import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { defer, lastValueFrom, takeUntil } from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import type { logCreator } from 'kafkajs';
import type { AccountsOptions } from '../config/accounts.ts';
import type { ConfigWith } from '../config/config.ts';
import { steadyScheduler } from '../core/clock.ts';
import type { Hooks } from '../observe/hooks.ts';
import { topicNames } from '../schemas/events/topics.ts';
import { openLinks } from '../sinks/client/open-kafka.ts';
import { kafkaGroup } from '../sinks/membership/group.ts';
import { kafkaSignals } from '../sinks/signals/kafka-signals.ts';
import { ensureTopics } from '../sinks/topics/kafka-topics.ts';
import { sharedTopicsOf } from '../sinks/topics/destination.ts';
import { lockFolder } from '../state/lock.ts';
import { backoff } from '../streams/flow/backoff.ts';
import { watchAccounts } from './account-files.ts';
import { accountWork } from './account-work.ts';
import type { FleetHooks } from './fleet-hooks.ts';
import { fleetLog } from './fleet-log.ts';
import { takePart } from './take-part.ts';
import { warmFolders } from './warm-folders.ts';

/** What {@link runFleet} needs. */
export interface FleetOptions {
  /** The instance's own settings. */
  readonly config: ConfigWith<'kafka' | 'registry'> & AccountsOptions['config'];
  /** Where accounts' settings come from, beside their files. */
  readonly source: Pick<AccountsOptions, 'env' | 'cwd'>;
  /** Its first value stops the instance: its accounts are handed over. It must replay that value. */
  readonly stop$: Observable<unknown>;
  /** Told of the fleet. */
  readonly fleetHooks?: FleetHooks;
  /** Told of an account, from when it is run here. */
  readonly hooksOf: (config: ConfigWith<'api' | 'kafka' | 'registry'>) => Hooks;
  readonly scheduler?: SchedulerLike;
  readonly kafkaLog?: logCreator;
}

const MAX_PAUSE_MS = 5_000;

/**
 * An instance of a fleet until `stop$`: a member of the group that shares accounts out, and each account that it is given, by
 * itself. Resolves when its accounts are handed over, or stopped where there is nobody else.
 *
 * @throws CellarstreamError `SETTINGS`, `STATE_LOCKED`, `STATE_FOLDER` at the start; `KAFKA_REFUSED`, `TLS_REFUSED`.
 */
export async function runFleet(options: FleetOptions): Promise<void> {
  const { config, source, stop$, fleetHooks = {}, hooksOf, kafkaLog } = options;
  const { scheduler = steadyScheduler } = options;
  const names = topicNames(config.topics.sharedPrefix);
  const instance = randomUUID();
  const name = config.instanceName ?? `${hostname()}-${instance.slice(0, 4)}`;
  const unlock = lockFolder(config.stateDir);
  const links = openLinks(config, { log: kafkaLog });
  const signals = kafkaSignals(links.kafka, names.signals);

  const onRetry: NonNullable<FleetHooks['onRetry']> = (retry) => fleetHooks.onRetry?.(retry);
  const log = fleetLog({ kafka: links.kafka, topic: names.fleet, scheduler, onRetry });

  try {
    const topics$ = defer(() => ensureTopics(sharedTopicsOf(config, links.kafka))).pipe(
      backoff({ maxMs: MAX_PAUSE_MS, scheduler, onRetry }),
      takeUntil(stop$),
    );
    const isThere = await lastValueFrom(topics$, { defaultValue: undefined });
    if (!isThere) return;
    const work = accountWork({ instance, links, signals, scheduler, kafkaLog });
    await takePart({
      group: kafkaGroup(links.kafka, `cellarstream.${config.topics.sharedPrefix}.fleet`),
      files$: watchAccounts({ ...source, config, scheduler }),
      accounts: {
        parts: { instance, work, scheduler },
        folders: warmFolders(config.stateDir, scheduler),
        ...{ name, topic: names.fleet, log, hooksOf, fleetHooks },
      },
      ...{ stop$, scheduler },
    });
  } finally {
    log.close();
    await Promise.allSettled([links.registry.close(), signals.close()]);
    unlock();
  }
}
