import { asyncScheduler, defer, map, tap } from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import { getGlobalDispatcher } from 'undici';
import type { Dispatcher } from 'undici';
import { CellarstreamError, isRetryableAtApi } from '../../core/errors.ts';
import { backoff } from '../flow/backoff.ts';
import { blockedError, exchange, isJson, isSuccess, statusError, where } from './http.ts';
import type { HttpAnswer, RequestHooks } from './http.ts';
import { keyPatience } from './key-patience.ts';
import { tokenIn } from './login-answer.ts';
import type { Token } from './login-answer.ts';
import { during } from '../quota/token-bucket.ts';
import type { Limit } from '../quota/token-bucket.ts';

export type { Token } from './login-answer.ts';

/** What {@link login} needs. */
export interface LoginOptions {
  readonly url: URL;
  /** Name of the setting that `url` comes from, for errors. Default `API_BASE_URL`. */
  readonly setting?: string;
  /** Returns the API key. Called at each login, so that a key from a rotated file is used. */
  readonly apiKey: () => string;
  /**
   * How long, in ms, every answer must refuse a key that was accepted before until the key counts as wrong: a failing gateway
   * refuses valid keys, too. Default 600,000; with 0 one refusal is enough.
   */
  readonly keyPatienceMs?: number;
  /** Connections and their timeouts. Default undici's global dispatcher. */
  readonly dispatcher?: Dispatcher;
  /** Quota of the logins. */
  readonly limit: Limit;
  /** Clock and timers. Default {@link asyncScheduler}. */
  readonly scheduler?: SchedulerLike;
  /** Uniform in [0, 1), for the jitter. Default Math.random. */
  readonly random?: () => number;
  /** Called with each answer and each retry. Default: none. */
  readonly hooks?: RequestHooks;
}

const MAX_LOGIN_BYTES = 1_000_000;
const KEY_PATIENCE_MS = 600_000;

/**
 * Logs in: emits one token and completes. Temporary errors are retried with back-off, and each try waits for the quota. Redirects
 * and 404 are retried as well, because gateways send them while the API behind them is being replaced.
 *
 * Errors with `API_KEY_REJECTED` when the API refuses the key (400, as documented, or 401 or 403, each with a JSON body): at once if
 * the key has never been accepted, else once it has been refused for `keyPatienceMs`. A refusal without JSON does not come from the API
 * and is retried.
 */
export function login(options: LoginOptions): Observable<Token> {
  const { url, apiKey, limit, scheduler = asyncScheduler, random } = options;
  const { dispatcher = getGlobalDispatcher(), setting = 'API_BASE_URL' } = options;
  const { keyPatienceMs = KEY_PATIENCE_MS, hooks: { onAnswer, onRetry } = {} } = options;
  const patience = keyPatience(keyPatienceMs, scheduler);
  const post = (waitsSince: number) =>
    defer(() => {
      const askedAt = scheduler.now();
      const waitedMs = askedAt - waitsSince;
      const elapsed = () => scheduler.now() - askedAt;
      const key = apiKey();
      const body = JSON.stringify({ apiKey: key });
      const headers = { 'content-type': 'application/json' };
      return exchange({
        dispatcher,
        method: 'POST',
        url,
        headers,
        body,
        maxBytes: MAX_LOGIN_BYTES,
        setting,
      }).pipe(
        tap({
          error: () => {
            patience.restart();
            onAnswer?.({ status: undefined, elapsedMs: elapsed(), waitedMs });
          },
        }),
        map((answer) => {
          const elapsedMs = elapsed();
          onAnswer?.({ status: answer.status, elapsedMs, waitedMs });
          if (isRejection(answer)) throw rejection(url, answer, patience.refused(key));
          patience.restart();
          if (!isSuccess(answer.status)) throw failure(url, setting, answer);
          const token = tokenIn(url, answer, askedAt, elapsedMs);
          patience.accepted(key);
          return token;
        }),
      );
    });
  const attempts = defer(() => during(limit, post(scheduler.now()))).pipe(
    backoff({
      scheduler,
      canPass: isRetryableAtApi,
      ...(random && { random }),
      ...(onRetry && { onRetry }),
    }),
  );
  return defer(() => {
    patience.restart();
    return attempts;
  });
}

/** Whether the API itself refuses the key. Its answers are JSON, while firewalls and proxies in front of it send HTML or text. */
function isRejection(answer: HttpAnswer): boolean {
  return [400, 401, 403].includes(answer.status) && isJson(answer);
}

function rejection(url: URL, { status }: HttpAnswer, canPass: boolean): CellarstreamError {
  const before = canPass ? ', which it has accepted before' : '';
  return new CellarstreamError(
    'API_KEY_REJECTED',
    `the login at ${where(url)} refused the API key (${status})${before}: check API_KEY`,
    { context: { status, ...(canPass && { canPass }) } },
  );
}

/** Error for an answer that neither has a token nor refuses the key; it names the setting to check. */
function failure(url: URL, setting: string, answer: HttpAnswer): Error {
  const { status } = answer;
  const isWrongAddress = status === 404 || status === 405;
  if (!isWrongAddress) {
    const error = statusError(url, answer, {}, setting);
    return isRetryableAtApi(error) || isJson(answer) ? error : blockedError(url, answer);
  }
  const advice =
    setting === 'API_LOGIN_URL'
      ? 'check API_LOGIN_URL'
      : 'check API_BASE_URL, and set API_LOGIN_URL if the login has another address';
  return new CellarstreamError(
    'API_STATUS',
    `the login at ${where(url)} answered ${status}: the login is not at this address. ${advice}`,
    { context: { status, canPass: true } },
  );
}
