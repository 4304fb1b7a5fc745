import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { defer, lastValueFrom, takeUntil } from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import type { logCreator } from 'kafkajs';
import type { AccountsOptions } from '../config/accounts.ts';
import type { Config, ConfigWith } from '../config/config.ts';
import { steadyScheduler } from '../core/clock.ts';
import { topicNames } from '../schemas/events/topics.ts';
import { openLinks } from '../sinks/client/open-kafka.ts';
import { kafkaGroup } from '../sinks/membership/group.ts';
import { kafkaSignals, sharedSignals } from '../sinks/signals/kafka-signals.ts';
import { openTopics } from '../sinks/topics/kafka-topics.ts';
import { sharedTopicsOf } from '../sinks/topics/destination.ts';
import { lockFolder } from '../state/lock.ts';
import { backoff } from '../streams/flow/backoff.ts';
import { watchAccounts } from './account-files.ts';
import { accountWork } from './account-work.ts';
import type { FleetAccountsOptions } from './fleet-accounts.ts';
import { fleetGroup } from './fleet-group.ts';
import type { FleetHooks } from './fleet-hooks.ts';
import { fleetLog } from './fleet-log.ts';
import { takePart } from './take-part.ts';
import { warmFolders } from './warm-folders.ts';

/** What {@link runFleet} needs. */
export interface FleetOptions {
  /** The instance's own settings. */
  readonly config: ConfigWith<'kafka' | 'registry'> & AccountsOptions['config'];
  /** Of the instance, as people know it. See {@link instanceNameOf}. */
  readonly name: string;
  /** Where accounts' settings come from, beside their files. */
  readonly source: Pick<AccountsOptions, 'env' | 'cwd'>;
  /** Its first value stops the instance: its accounts are handed over. It must replay that value. */
  readonly stop$: Observable<unknown>;
  /** Told of the fleet. */
  readonly fleetHooks?: FleetHooks;
  /** Told of an account, from when it is given to this instance. */
  readonly watch: FleetAccountsOptions['watch'];
  readonly scheduler?: SchedulerLike;
  readonly kafkaLog?: logCreator;
}

/** `INSTANCE_NAME`, or the name of the host and a random part. */
export function instanceNameOf({ instanceName }: Pick<Config, 'instanceName'>): string {
  return instanceName ?? `${hostname()}-${randomUUID().slice(0, 4)}`;
}

const MAX_PAUSE_MS = 5_000;

/**
 * An instance of a fleet until `stop$`: a member of the group that shares accounts out, and each account that it is given, by
 * itself. Resolves when its accounts are handed over, or stopped where there is nobody else.
 *
 * @throws CellarstreamError `SETTINGS`, `STATE_LOCKED`, `STATE_FOLDER` at the start; `KAFKA_REFUSED`, `TLS_REFUSED`.
 */
export async function runFleet(options: FleetOptions): Promise<void> {
  const { config, name, source, stop$, fleetHooks = {}, watch, kafkaLog } = options;
  const { scheduler = steadyScheduler } = options;
  const names = topicNames(config.topics.sharedPrefix);
  const instance = randomUUID();
  const unlock = lockFolder(config.stateDir);
  const links = openLinks(config, { log: kafkaLog });
  const signals = sharedSignals(kafkaSignals(links, names.signals));

  const onRetry: NonNullable<FleetHooks['onRetry']> = (retry) => fleetHooks.onRetry?.(retry);
  const log = fleetLog({ kafka: links.kafka, topic: names.fleet, scheduler, onRetry });

  try {
    const topics$ = defer(() => openTopics(sharedTopicsOf(config, links))).pipe(
      backoff({ maxMs: MAX_PAUSE_MS, scheduler, onRetry }),
      takeUntil(stop$),
    );
    const isThere = await lastValueFrom(topics$, { defaultValue: undefined });
    if (!isThere) return;
    const work = accountWork({ instance, links, signals, scheduler });
    await takePart({
      group: kafkaGroup(links.kafka, fleetGroup(config.topics.sharedPrefix)),
      files$: watchAccounts({ ...source, config, scheduler }),
      accounts: {
        parts: { instance, work, scheduler },
        folders: warmFolders(config.stateDir, scheduler),
        ...{ name, topic: names.fleet, log, watch, fleetHooks },
      },
      ...{ stop$, scheduler },
    });
  } finally {
    log.close();
    links.connections.close();
    await Promise.allSettled([links.registry.close(), signals.close()]);
    unlock();
  }
}
