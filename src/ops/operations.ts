import { steadyScheduler } from '../clock.ts';
import type { Config } from '../config.ts';
import type { Hooks } from '../hooks.ts';
import { VERSION } from '../version.ts';
import { allHooks } from './all-hooks.ts';
import { openHttpServer } from './http-server.ts';
import { metrics } from './metrics.ts';
import { loadPage } from './page-file.ts';
import { readiness } from './readiness.ts';
import type { Readiness } from './readiness.ts';
import { statusModel } from './status.ts';

export interface OperationsOptions {
  readonly config: Config;
  /** Told of a request that went wrong in here. */
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
  const now = () => steadyScheduler.now();
  const ready = readiness({ resources, pollIntervalMs, now });
  const measured = metrics({ account, resources, now, readiness: ready.check });
  const model = statusModel({
    version: VERSION,
    account,
    prefix: topics.prefix,
    resources,
    pollIntervalMs,
    now,
    readiness: ready.check,
  });
  const server = await openHttpServer({
    ...http,
    page: loadPage(),
    readiness: ready.check,
    status: model.status,
    metrics: measured,
    onError,
  });
  return {
    hooks: allHooks(ready.hooks, measured.hooks, model.hooks),
    check: ready.check,
    url: server.url,
    close: server.close,
  };
}
