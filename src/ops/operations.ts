import type { Config } from '../config/config.ts';
import type { Hooks } from '../observe/hooks.ts';
import { guarded } from './guarded.ts';
import { openHttpThread } from './http/http-thread.ts';
import type { Readiness } from './status/readiness.ts';
import { watchedAccount } from './watched-account.ts';

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
  const { hooks, check, metrics, status } = watchedAccount(config, { ofProcess: true });
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
  return {
    hooks: guarded(hooks, (_, error) => onError(error)),
    check,
    url: server.url,
    close: server.close,
  };
}
