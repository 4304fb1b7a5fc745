import { randomUUID } from 'node:crypto';
import type { logCreator } from 'kafkajs';
import { defer, lastValueFrom, takeUntil } from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import type { ConfigWith } from './config/config.ts';
import { steadyScheduler } from './core/clock.ts';
import { PAUSES } from './core/retries.ts';
import type { Hooks } from './observe/hooks.ts';
import { refuseFleetConflict } from './fleet/fleet-conflict.ts';
import { serveAccount } from './pipeline/serve-account.ts';
import { topicNames } from './schemas/events/topics.ts';
import { STARTUP_RETRIES, openKafka, openKafkaClients } from './sinks/open-kafka.ts';
import { kafkaSignals } from './sinks/signals/kafka-signals.ts';
import { lockFolder } from './state/lock.ts';
import { backoff } from './streams/flow/backoff.ts';
import { BodyPool } from './streams/http/body.ts';

/** Options of {@link run}, which runs the service for one account. */
export interface RunOptions {
  readonly config: ConfigWith<'api' | 'kafka' | 'registry'>;
  /**
   * Stops the service with its first value: pages being processed are committed if Kafka responds within 8 s; all others are read again
   * after the next start. The observable must replay that value to late subscribers.
   */
  readonly stop$: Observable<unknown>;
  readonly hooks?: Hooks;
  /** Clock and timers of the service. Default: a monotonic clock. */
  readonly scheduler?: SchedulerLike;
  readonly kafkaLog?: logCreator;
}

/**
 * Runs the service for one account until `stop$`: publishes the account's resources to Kafka. Transient errors are retried, and an error of
 * one resource does not affect the others. Resolves after a clean stop. Fleets are run only by the command `cellarstream run`, not by this
 * function.
 *
 * @throws CellarstreamError for errors that a retry can't resolve:
 *
 * - `SETTINGS`: for example, if an account of a running fleet has the same `TOPIC_PREFIX`.
 * - `API_KEY_REJECTED`: at once for an API key that has never worked; for another one after `API_KEY_PATIENCE_MS` of refusals.
 * - `STATE_LOCKED` and `STATE_FOLDER`: only at the start.
 * - `TOPIC_SETTINGS` and `REGISTRY_REFUSED`: only while the account is being claimed. Later they stop one resource, which is retried each
 *   minute.
 * - `FENCED`, `TLS_REFUSED`, `KAFKA_REFUSED`, ...
 *
 * @example
 * ```ts
 * import { describeError, loadConfig, run } from 'cellarstream';
 * import { ReplaySubject } from 'rxjs';
 *
 * const stop$ = new ReplaySubject<void>(1);
 * process.once('SIGTERM', () => stop$.next());
 *
 * const { env } = process;
 * await run({
 *   config: loadConfig({ env, cwd: process.cwd(), needs: ['api', 'kafka', 'registry'] }),
 *   stop$,
 *   hooks: {
 *     onPublished: ({ resource, changes }) => console.log(`${resource}: ${changes.length} changes`),
 *     onRetry: ({ what, error }) => console.error(`${what}: ${describeError(error)}`),
 *   },
 * });
 * ```
 */
export async function run(options: RunOptions): Promise<void> {
  const { config, stop$, hooks = {}, scheduler = steadyScheduler, kafkaLog } = options;
  const unlock = lockFolder(config.stateDir);
  try {
    const clients = openKafkaClients(config, { log: kafkaLog });
    const signals = kafkaSignals(clients, topicNames(config.topics.sharedPrefix).signals);
    const instance = randomUUID();
    // A client for this check only: it gives up sooner than others, so that an unreachable Kafka is reported soon.
    const looking = openKafka(config, { log: kafkaLog, kafkaRetries: STARTUP_RETRIES });
    const refusingFleet$ = defer(() => refuseFleetConflict(config.topics.prefix, looking)).pipe(
      backoff({
        ...PAUSES.restart,
        scheduler,
        onRetry: (retry) => hooks.onRetry?.({ what: 'kafka', ...retry }),
      }),
      takeUntil(stop$),
    );
    try {
      await lastValueFrom(refusingFleet$, { defaultValue: undefined });
      const bodies = new BodyPool();
      await serveAccount({ config, instance, clients, bodies, signals, stop$, hooks, scheduler });
    } finally {
      await Promise.allSettled([clients.registry.close(), signals.close()]);
      clients.connections.close();
    }
  } finally {
    unlock();
  }
}
