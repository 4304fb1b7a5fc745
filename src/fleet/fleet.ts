import { randomUUID } from 'node:crypto';
import { defer, lastValueFrom, takeUntil } from 'rxjs';
import type { Observable } from 'rxjs';
import type { logCreator } from 'kafkajs';
import type { AccountsOptions } from '../config/accounts.ts';
import type { ConfigWith } from '../config/config.ts';
import { steadyScheduler } from '../core/clock.ts';
import { PAUSES } from '../core/retries.ts';
import { topicNames } from '../schemas/events/topics.ts';
import { openKafkaClients } from '../sinks/open-kafka.ts';
import { membershipGroup } from '../kafka/membership/group.ts';
import { kafkaSignals, sharedSignals } from '../sinks/signals/kafka-signals.ts';
import { openTopics } from '../sinks/topics/kafka-topics.ts';
import { sharedTopicsOf } from '../sinks/topics/destination.ts';
import { lockFolder } from '../state/lock.ts';
import { backoff } from '../streams/flow/backoff.ts';
import { watchAccounts } from './account-files.ts';
import { accountWork } from './account-work.ts';
import type { FleetAccountsOptions } from './fleet-accounts.ts';
import { fleetGroupId } from './fleet-group.ts';
import type { FleetHooks } from './fleet-hooks.ts';
import { fleetLog } from './fleet-log.ts';
import { FleetMember } from './fleet-member.ts';
import { warmFolders } from './warm-folders.ts';

/** Options of {@link runFleet}. */
export interface FleetOptions {
  readonly config: ConfigWith<'kafka' | 'registry'> & AccountsOptions['config'];
  /** Human-readable name of the instance. */
  readonly name: string;
  /** Environment and working directory that supply what the accounts' files leave out. */
  readonly source: Pick<AccountsOptions, 'env' | 'cwd'>;
  /**
   * The first value of this observable stops the instance and hands over the instance's accounts. The observable must replay that value to
   * late subscribers.
   */
  readonly stop$: Observable<unknown>;
  readonly fleetHooks: FleetHooks;
  /** Creates the observers of an account. Called when the account is assigned to this instance, and again after its file has changed. */
  readonly watch: FleetAccountsOptions['watch'];
  readonly kafkaLog: logCreator;
}

/**
 * Runs an instance of a fleet until `stop$` emits: it joins the fleet's Kafka group and serves the accounts assigned to it. Resolves once
 * the accounts are handed over or stopped.
 *
 * @throws CellarstreamError `SETTINGS`, `STATE_LOCKED`, `STATE_FOLDER`, `TOPIC_SETTINGS` at the start; `KAFKA_REFUSED`, `TLS_REFUSED` at
 * any time.
 */
export async function runFleet(options: FleetOptions): Promise<void> {
  const { config, name, source, stop$, fleetHooks, watch, kafkaLog } = options;
  const scheduler = steadyScheduler;
  const names = topicNames(config.topics.sharedPrefix);
  const instance = randomUUID();
  const unlock = lockFolder(config.stateDir);
  const clients = openKafkaClients(config, { log: kafkaLog });
  const signals = sharedSignals(kafkaSignals(clients, names.signals));

  const onRetry: NonNullable<FleetHooks['onRetry']> = (retry) => fleetHooks.onRetry?.(retry);
  const log = fleetLog({ kafka: clients.kafka, topic: names.fleet, scheduler, onRetry });

  try {
    const topics$ = defer(() => openTopics(sharedTopicsOf(config, clients))).pipe(
      backoff({ ...PAUSES.restart, scheduler, onRetry }),
      takeUntil(stop$),
    );
    const isThere = await lastValueFrom(topics$, { defaultValue: undefined });
    if (!isThere) return;
    const work = accountWork({ instance, clients, signals, scheduler });
    const member = new FleetMember({
      group: membershipGroup(clients.kafka, fleetGroupId(config.topics.sharedPrefix)),
      files$: watchAccounts({ ...source, config, scheduler }),
      accounts: {
        context: { instance, work, scheduler },
        folders: warmFolders(config.stateDir, scheduler),
        name,
        topic: names.fleet,
        log,
        watch,
        fleetHooks,
      },
      stop$,
    });
    await member.run();
  } finally {
    log.close();
    clients.connections.close();
    await Promise.allSettled([clients.registry.close(), signals.close()]);
    unlock();
  }
}
