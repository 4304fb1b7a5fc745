import { steadyScheduler } from '../core/clock.ts';
import type { Config } from '../config/config.ts';
import type { Hooks } from '../observe/hooks.ts';
import { VERSION } from '../core/version.ts';
import { allHooks } from '../observe/all-hooks.ts';
import { guarded } from './guarded.ts';
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
 * Opens the operators' side of a service, on `HTTP_HOST` and `HTTP_PORT`. It is there before the
 * service is, and while that waits.
 *
 * @throws CellarstreamError `SETTINGS` when it can't listen there.
 */
export async function openOperations(options: OperationsOptions): Promise<Operations> {
  const { config, onError } = options;
  const { account, resources, topics, http } = config;
  const { intervalMs: pollIntervalMs } = config.poll;
  const now = () => Math.round(steadyScheduler.now());
  const ready = readiness({ resources, pollIntervalMs, now });
  const measured = metrics({ account, resources, pollIntervalMs, readiness: ready.check });
  const model = statusModel({
    version: VERSION,
    account,
    prefix: topics.prefix,
    resources,
    pollIntervalMs,
    now,
    readiness: ready.check,
  });
  const server = await openHttpThread({
    ...http,
    answers: {
      alive: () => true,
      readiness: ready.check,
      status: () => JSON.stringify(model.status()),
      metrics: measured.text,
    },
    metricsType: measured.contentType,
    onError,
  });
  return {
    hooks: guarded(allHooks(ready.hooks, measured.hooks, model.hooks), (_, error) =>
      onError(error),
    ),
    check: ready.check,
    url: server.url,
    close: server.close,
  };
}
