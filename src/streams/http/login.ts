import { asyncScheduler, defer, map, tap } from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import { getGlobalDispatcher } from 'undici';
import type { Dispatcher } from 'undici';
import { CellarstreamError, isRetryableAtApi } from '../../core/errors.ts';
import { objectIn } from '../../schemas/json/json.ts';
import { backoff } from '../flow/backoff.ts';
import { exchange, isSuccess, statusError, where } from './http.ts';
import type { HttpAnswer, RequestHooks } from './http.ts';
import { keyPatience } from './key-patience.ts';
import { during } from '../quota/token-bucket.ts';
import type { Limit } from '../quota/token-bucket.ts';

/** A token, and how long it is good for. */
export interface Token {
  /** The JWT, as it is sent. */
  readonly text: string;
  /** When it was asked for: ms, on the scheduler's clock. Its life is counted from here. */
  readonly askedAt: number;
  /** Milliseconds from `askedAt` for which the server takes it. */
  readonly lifeMs: number;
  /** The server's clock at `askedAt`, never later: ms since the epoch; undefined if it did not tell. */
  readonly serverTime: number | undefined;
}

/** What {@link login} needs. */
export interface LoginOptions {
  readonly url: URL;
  /** The setting of that address, for errors. Default `API_BASE_URL`. */
  readonly setting?: string;
  /** Called at each login, so that a key read from a rotated file is seen. */
  readonly apiKey: () => string;
  /**
   * A key that was accepted before may be refused for so many ms, by every answer, until it counts as
   * wrong: a gateway in trouble refuses good keys too. Default 600,000; 0: one refusal is enough.
   */
  readonly keyPatienceMs?: number;
  /** Connections and their timeouts. Default undici's global dispatcher. */
  readonly dispatcher?: Dispatcher;
  /** Keeps to the logins' own quota. */
  readonly limit: Limit;
  /** Clock and timers. Default {@link asyncScheduler}. */
  readonly scheduler?: SchedulerLike;
  /** Uniform in [0, 1), for the jitter. Default Math.random. */
  readonly random?: () => number;
  /** Told of logins and of tries. Default nobody is. */
  readonly hooks?: RequestHooks;
}

/** What the documentation promises a token: 30 minutes. */
const DOCUMENTED_LIFE_MS = 30 * 60_000;
/** An `expiresIn` outside of these is not believed: its documented unit contradicts its value. */
const LEAST_LIFE_MS = 10_000;
const MAX_LIFE_MS = 24 * 60 * 60_000;
const MAX_LOGIN_BYTES = 1_000_000;
const KEY_PATIENCE_MS = 600_000;

/**
 * Logs in: emits one token and completes. What can pass is tried again, through the quota: redirects and
 * 404 too, which gateways send while the API behind them is being replaced.
 *
 * Errors with `API_KEY_REJECTED` when the key is refused (400, as documented, or 401 and 403): at once if
 * it never had a token from this login, else when that has lasted for `keyPatienceMs`.
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
          if (isRejection(answer)) throw rejection(url, setting, answer, patience.refused(key));
          patience.restart();
          const token = readToken(url, answer, askedAt, elapsedMs);
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

function isRejection({ status }: HttpAnswer): boolean {
  return [400, 401, 403].includes(status);
}

function rejection(
  url: URL,
  setting: string,
  { status, text }: HttpAnswer,
  canPass: boolean,
): CellarstreamError {
  // A port that speaks TLS answers plain text with a 400 of its own, if it answers.
  const isPlain = url.protocol === 'http:' && objectIn(text) === undefined;
  const advice = isPlain ? `, and whether ${setting} must begin with https://` : '';
  const before = canPass ? ', which it has accepted before' : '';
  return new CellarstreamError(
    'API_KEY_REJECTED',
    `the login at ${where(url)} refused the API key (${status})${before}: check API_KEY${advice}`,
    { context: { status, ...(canPass && { canPass }) } },
  );
}

function readToken(url: URL, answer: HttpAnswer, askedAt: number, elapsedMs: number): Token {
  if (!isSuccess(answer.status)) throw statusError(url, answer);
  const body = objectIn(answer.text);
  const text = body?.accessToken;
  if (typeof text !== 'string' || text === '') {
    throw new CellarstreamError('API_ANSWER', `${where(url)} sent no accessToken`);
  }
  const { exp, iat } = claimsOf(text);
  const stamp = answer.date ?? iat;
  const serverTime = stamp === undefined ? undefined : Math.floor(stamp - elapsedMs);
  return { text, askedAt, serverTime, lifeMs: lifeOf(exp, [iat, answer.date], body?.expiresIn) };
}

/** The times in a JWT, in ms since the epoch. Its signature is the server's business. */
function claimsOf(token: string): { exp: number | undefined; iat: number | undefined } {
  const claims = objectIn(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'));
  const ms = (claim: unknown) => (typeof claim === 'number' ? claim * 1_000 : undefined);
  return { exp: ms(claims?.exp), iat: ms(claims?.iat) };
}

/**
 * How long a token lives: by its own `exp`, from its `iat` or from the `Date` of the answer, whichever
 * leaves less (a server may give out a token that it issued earlier). Without them: `expiresIn` as
 * milliseconds.
 */
function lifeOf(
  exp: number | undefined,
  from: readonly (number | undefined)[],
  expiresIn: unknown,
): number {
  const left = from.map((at) => (exp ?? NaN) - (at ?? NaN)).filter((ms) => ms > 0);
  if (left.length > 0) return Math.min(...left);
  const believable =
    typeof expiresIn === 'number' && expiresIn >= LEAST_LIFE_MS && expiresIn <= MAX_LIFE_MS;
  return believable ? expiresIn : DOCUMENTED_LIFE_MS;
}
