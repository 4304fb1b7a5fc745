import { randomUUID } from 'node:crypto';
import type { logCreator } from 'kafkajs';
import { defer, lastValueFrom, takeUntil } from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import type { ConfigWith } from './config/config.ts';
import { steadyScheduler } from './core/clock.ts';
import type { Hooks } from './observe/hooks.ts';
import { refuseFleetBeside } from './fleet/fleet-beside.ts';
import { MAX_PAUSE_MS } from './pipeline/list-task.ts';
import { serveAccount } from './pipeline/serve-account.ts';
import { topicNames } from './schemas/events/topics.ts';
import { FIRST_RETRIES, openKafka, openLinks } from './sinks/client/open-kafka.ts';
import { kafkaSignals } from './sinks/signals/kafka-signals.ts';
import { lockFolder } from './state/lock.ts';
import { backoff } from './streams/flow/backoff.ts';
import { BodyPool } from './streams/http/body.ts';

/** What {@link run} needs. */
export interface RunOptions {
  readonly config: ConfigWith<'api' | 'kafka' | 'registry'>;
  /**
   * Its first value stops the service: the pages in hand are committed, if Kafka answers within 8 s; the others are read again later. It
   * must replay that value.
   */
  readonly stop$: Observable<unknown>;
  readonly hooks?: Hooks;
  /** Clock and timers. Default a clock that only goes forward. */
  readonly scheduler?: SchedulerLike;
  readonly kafkaLog?: logCreator;
}

/**
 * Runs the service for one account: its resources go from the API to Kafka until `stop$`, each by itself. Transient errors are retried,
 * and an error of one resource holds up no other. Resolves after a clean stop. A fleet is composed elsewhere
 * (`commands/run-fleet.ts`), and is run by the command alone.
 *
 * @throws CellarstreamError what no later try can mend: `SETTINGS` (also where a fleet's account has this prefix),
 * `API_KEY_REJECTED` (of a key that has worked: only when it was refused for `API_KEY_PATIENCE_MS`), `FENCED`,
 * `STATE_LOCKED`, `STATE_FOLDER` (at the start), `TLS_REFUSED`, `KAFKA_REFUSED`, ...; `TOPIC_SETTINGS` and `REGISTRY_REFUSED` while the
 * account is taken over: later they stop one resource, which is tried again each minute.
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
    const links = openLinks(config, { log: kafkaLog });
    const signals = kafkaSignals(links, topicNames(config.topics.sharedPrefix).signals);
    const instance = randomUUID();
    // For this look alone: it gives up sooner than other clients, so that a Kafka that is away is soon reported.
    const looking = openKafka(config, { log: kafkaLog, kafkaRetries: FIRST_RETRIES });
    const refusingFleet$ = defer(() => refuseFleetBeside(config.topics.prefix, looking)).pipe(
      backoff({
        maxMs: MAX_PAUSE_MS,
        scheduler,
        onRetry: (retry) => hooks.onRetry?.({ what: 'kafka', ...retry }),
      }),
      takeUntil(stop$),
    );
    try {
      await lastValueFrom(refusingFleet$, { defaultValue: undefined });
      const bodies = new BodyPool();
      await serveAccount({ config, instance, links, bodies, signals, stop$, hooks, scheduler });
    } finally {
      await Promise.allSettled([links.registry.close(), signals.close()]);
      links.connections.close();
    }
  } finally {
    unlock();
  }
}
