import type { Config } from '../config/config.ts';
import { steadyScheduler } from '../core/clock.ts';
import { VERSION } from '../core/version.ts';
import { allHooks } from '../observe/all-hooks.ts';
import type { Hooks } from '../observe/hooks.ts';
import { openHttpThread } from './http/http-thread.ts';
import { metrics } from './metrics/metrics.ts';
import { readiness } from './status/readiness.ts';
import type { Readiness } from './status/readiness.ts';
import { statusModel } from './status/status.ts';

export interface OperationsOptions {
  readonly config: Config;
  /** Told of what goes wrong in here, a request or a hook. The service goes on. */
  readonly onError: (error: unknown) => void;
}

/** All that an operator can ask of a service: its metrics, its health, its page. */
export interface Operations {
  /** To be told: hand them to `run`. */
  readonly hooks: Hooks;
  readonly check: () => Readiness;
  /** Where it is served. */
  readonly url: string;
  readonly close: () => Promise<void>;
}

/**
 * Opens the operators' side of a service, on `HTTP_HOST` and `HTTP_PORT`. It is there before the service is, and while that waits.
 *
 * @throws CellarstreamError `SETTINGS` when it can't listen there.
 */
export async function openOperations({ config, onError }: OperationsOptions): Promise<Operations> {
  const { hooks, check, metrics, status } = watchedAccount(config, { ofProcess: true, onError });
  const server = await openHttpThread({
    ...config.http,
    answers: {
      alive: () => true,
      readiness: check,
      status: () => JSON.stringify(status()),
      metrics: metrics.text,
    },
    metricsType: metrics.contentType,
    onError,
  });
  return { hooks, check, ...server };
}

/**
 * All that can be said of one account: whether it is ready, its figures, its metrics.
 *
 * @param options.ofProcess Whether its metrics are those of the process, too.
 */
export function watchedAccount(
  { account, resources, topics, poll: { intervalMs: pollIntervalMs } }: Config,
  options: { readonly ofProcess: boolean; readonly onError: (error: unknown) => void },
) {
  const now = () => Math.round(steadyScheduler.now());
  const { check, hooks } = readiness({ resources, pollIntervalMs, now });
  const common = { account, resources, pollIntervalMs, readiness: check };
  const measured = metrics({ ...common, ofProcess: options.ofProcess });
  const model = statusModel({ ...common, version: VERSION, prefix: topics.prefix, now });
  return {
    /** To be told. */
    hooks: guarded(allHooks(hooks, measured.hooks, model.hooks), options.onError),
    check,
    metrics: measured,
    status: model.status,
    figures: model.figures,
  };
}

export type WatchedAccount = ReturnType<typeof watchedAccount>;

/**
 * Hooks that keep what they throw to themselves: who only watches must not end what is watched.
 * `onError` is told of the first error of each hook; what it throws itself is thrown.
 */
export function guarded(hooks: Hooks, onError: (error: unknown) => void): Hooks {
  const told = new Set<string>();
  const all = Object.entries(hooks) as [string, (event: never) => void][];
  return Object.fromEntries(
    all.map(([name, hook]) => [
      name,
      (event: never) => {
        try {
          hook(event);
        } catch (error) {
          if (told.has(name)) return;
          told.add(name);
          onError(error);
        }
      },
    ]),
  );
}
