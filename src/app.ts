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

/** What {@link run} needs. */
export interface RunOptions {
  readonly config: ConfigWith<'api' | 'kafka' | 'registry'>;
  /** Its first value stops the service: the page in hand is committed. It must replay that value. */
  readonly stop$: Observable<unknown>;
  readonly hooks?: Hooks;
  /** Clock and timers. Default a clock that only goes forward. */
  readonly scheduler?: SchedulerLike;
  readonly kafkaLog?: logCreator;
}

/**
 * The service: the resources of an account from the API to Kafka until `stop$`, each by itself. What
 * can pass is waited for, and what concerns one resource holds up no other; resolves after a clean
 * stop.
 *
 * @throws CellarstreamError what a later try can't heal: `SETTINGS` (also where a fleet's account has this prefix),
 * `API_KEY_REJECTED` (of a key that has worked: only when it was refused for `keyPatienceMs`), `FENCED`,
 * `STATE_LOCKED`, `STATE_FOLDER` (at the start), `TLS_REFUSED`, `TOPIC_SETTINGS`, `KAFKA_REFUSED`, `REGISTRY_REFUSED`, ...
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
    const first = openKafka(config, { log: kafkaLog, kafkaRetries: FIRST_RETRIES });
    const isAlone$ = defer(() => refuseFleetBeside(config.topics.prefix, first)).pipe(
      backoff({
        maxMs: MAX_PAUSE_MS,
        scheduler,
        onRetry: (retry) => hooks.onRetry?.({ what: 'kafka', ...retry }),
      }),
      takeUntil(stop$),
    );
    try {
      await lastValueFrom(isAlone$, { defaultValue: undefined });
      await serveAccount({ config, instance, links, signals, stop$, hooks, scheduler });
    } finally {
      await Promise.allSettled([links.registry.close(), signals.close()]);
      links.connections.close();
    }
  } finally {
    unlock();
  }
}
