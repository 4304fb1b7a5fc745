import type { Config } from '../config/config.ts';
import { steadyScheduler } from '../core/clock.ts';
import { allHooks } from '../observe/all-hooks.ts';
import type { Hooks } from '../observe/hooks.ts';
import { openHttpThread } from './http/http-thread.ts';
import { metrics } from './metrics/metrics.ts';
import { ReadinessCheck } from './status/readiness.ts';
import { StatusModel } from './status/status.ts';

export interface OperationsOptions {
  readonly config: Config;
  /** Called with each error in handling an HTTP request, and with the first error of each hook. The service continues. */
  readonly onError: (error: unknown) => void;
}

/**
 * Serves metrics, health checks and the status page of a service on `HTTP_HOST` and `HTTP_PORT`.
 *
 * @throws CellarstreamError `SETTINGS` when the server can't listen on that address.
 */
export async function openOperations({ config, onError }: OperationsOptions) {
  const { hooks, check, metrics, status } = observedAccount(config, { ofProcess: true, onError });
  const server = await openHttpThread({
    ...config.http,
    endpoints: {
      alive: () => true,
      readiness: check,
      status: () => JSON.stringify(status()),
      metrics: metrics.text,
    },
    onError,
  });
  return { hooks, check, ...server };
}

export type Operations = Awaited<ReturnType<typeof openOperations>>;

/**
 * Returns hooks for one account, and the readiness, metrics and status computed from their events.
 *
 * @param options.ofProcess Whether the metrics include those of the process, such as memory and CPU time.
 */
export function observedAccount(
  { account, description, resources, topics, poll: { intervalMs: pollIntervalMs = 0 } }: Config,
  options: { readonly ofProcess: boolean; readonly onError: (error: unknown) => void },
) {
  const now = () => Math.round(steadyScheduler.now());
  const readiness = new ReadinessCheck({ description, resources, pollIntervalMs, now });
  const { check, hooks } = readiness;
  const common = { account, description, resources, pollIntervalMs, readiness: check };
  const measured = metrics({ ...common, ofProcess: options.ofProcess });
  const model = new StatusModel({ ...common, prefix: topics.prefix, now });
  return {
    hooks: guarded(allHooks(hooks, measured.hooks, model.hooks), options.onError),
    check,
    metrics: measured,
    status: model.status,
    figures: model.figures,
    /** To be called when serving the account has ended with an error. It may be claimed again after `delayMs`. */
    onFailed: guardedCall((error: unknown, delayMs: number) => {
      readiness.accountFailed(error);
      model.accountFailed(error, delayMs);
    }, options.onError),
  };
}

export type ObservedAccount = ReturnType<typeof observedAccount>;

/** Wraps hooks so that the errors that they throw do not reach the service. Calls `onError` with the first error of each hook. */
export function guarded(hooks: Hooks, onError: (error: unknown) => void): Hooks {
  const all = Object.entries(hooks) as [string, (event: never) => void][];
  return Object.fromEntries(all.map(([name, hook]) => [name, guardedCall(hook, onError)]));
}

/** Wraps a function so that the errors that it throws do not reach its caller. Calls `onError` with the first of them. */
function guardedCall<Args extends unknown[]>(
  call: (...args: Args) => void,
  onError: (error: unknown) => void,
): (...args: Args) => void {
  let isReported = false;
  return (...args) => {
    try {
      call(...args);
    } catch (error) {
      if (isReported) return;
      isReported = true;
      onError(error);
    }
  };
}
