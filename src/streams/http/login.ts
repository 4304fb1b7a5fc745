// Logs in as the API's description says, and reads the token from the response.

import { asyncScheduler, defer, finalize, map, ReplaySubject, share, tap } from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import { getGlobalDispatcher } from 'undici';
import type { Dispatcher } from 'undici';
import { CellarstreamError, isRetryableAtApi } from '../../core/errors.ts';
import { objectIn } from '../../core/http-text.ts';
import type { Credentials } from '../../description/credentials.ts';
import type { ApiDescription, LoginDescription } from '../../description/description.ts';
import { filled } from '../../description/template.ts';
import type { Variables } from '../../description/template.ts';
import { pointerNames, valueAt } from '../../schemas/json/json.ts';
import type { JsonObject } from '../../schemas/json/json.ts';
import { backoff } from '../flow/backoff.ts';
import { during } from '../quota/token-bucket.ts';
import type { Limit } from '../quota/token-bucket.ts';
import { AnswerRules } from './answer-rules.ts';
import type { AnswerOptions } from './answer-rules.ts';
import { rejection } from './authorization.ts';
import { blockedError, exchange, isJson, isSuccess, statusError, loggableAddress } from './http.ts';
import type { DescribedStatus, HttpResponse, RequestHooks } from './http.ts';
import { isTemporary, oauthError, refreshGrantOf, tokenRequestOf } from './token-request.ts';
import type { TokenRequest } from './token-request.ts';

/** Options of {@link login}. */
export interface LoginOptions {
  /** Base URL of the API, such as `https://api.example`. The path of the description's login is appended to it. */
  readonly baseUrl: URL;
  /** Address of the login, if it is not the one that `baseUrl` and `description` give. */
  readonly loginUrl?: URL;
  /** Description of the API: its login, and the headers of every request. */
  readonly description: Pick<ApiDescription, 'auth' | 'headers'>;
  /** Values of the description's parameters, by name. Default none. */
  readonly parameters?: Variables | undefined;
  /** Returns the API key. Called at each login, so that a new API key in a rotated file is used. Default: there is none. */
  readonly apiKey?: () => string;
  /** Returns the credentials besides the API key, by their variable names in the description. Called at each login. Default none. */
  readonly credentials?: () => Credentials;
  /** Stores the newest refresh token, for the grant `refresh_token` of OAuth 2. Default: in memory, until the process ends. */
  readonly refreshTokens?: RefreshTokens;
  /**
   * How long, in ms, a previously accepted API key must be refused without interruption before it counts as wrong. Shorter refusals may
   * come from a failing gateway. Default 600,000. With 0 one refusal is enough.
   */
  readonly keyPatienceMs?: number;
  /** undici dispatcher, which provides connections and their timeouts. Default undici's global dispatcher. */
  readonly dispatcher?: Dispatcher;
  /** Quota that each login request waits for. */
  readonly limit: Limit;
  /** Provides the clock and timers. Default {@link asyncScheduler}. */
  readonly scheduler?: SchedulerLike;
  /** Returns a random number in [0, 1), for the jitter of retry pauses. Default Math.random. */
  readonly random?: () => number;
  /** Called for each finished login request and for each retry. Default none. */
  readonly hooks?: RequestHooks;
}

/**
 * Keeps the newest refresh token of a client: servers that rotate refresh tokens refuse all older ones.
 *
 * Each request for a token calls `begin`, `replace` if the response contains a new refresh token, and `end`.
 */
export interface RefreshTokens {
  /**
   * Returns the refresh token to send: the newest one, or `first` if none has replaced it.
   *
   * @param first The refresh token of the settings. A newer token is returned only if it replaced this one, directly or through others.
   * @throws CellarstreamError `STATE_FOLDER` if the token can't be read, or another process is renewing it.
   */
  begin(first: string): string;
  /**
   * Stores a new refresh token, which replaces all others.
   * @throws CellarstreamError `STATE_FOLDER` if it can't be stored. Even then, later calls of `begin` return the new token.
   */
  replace(token: string): void;
  /** Releases the lock that `begin` acquired, so that another process may renew the token. */
  end(): void;
}

/** Maximum size of a login response, in bytes after decompression. */
const MAX_LOGIN_BYTES = 1_000_000;
export const KEY_PATIENCE_MS = 600_000;

/**
 * Requests one token, emits it and completes. The request is the login of the description, or goes to a token endpoint of OAuth 2. Each
 * attempt waits for the quota. Temporary errors are retried with back-off, and so are redirects, 404 and 405: gateways send them while the
 * API behind them is being replaced.
 *
 * A request with a refresh token is not aborted on unsubscription: its response may contain the only refresh token that is still valid.
 *
 * A response is a refusal of the credentials if it is JSON and has a status that the login's description names in `refused`; by default
 * 400, 401 and 403. Errors:
 *
 * - `API_KEY_REJECTED` at the first refusal if no login has accepted the credentials yet.
 * - `API_KEY_REJECTED` for credentials that a login has accepted, once they were refused for `keyPatienceMs` without another outcome in
 *   between.
 * - `API_STATUS` for other final statuses.
 *
 * @throws RangeError if the description has no login, or the login's address lacks the value of a variable or is not valid.
 */
export function login(options: LoginOptions & Pick<AnswerOptions, 'rules'>): Observable<Token> {
  const { limit, scheduler = asyncScheduler, random } = options;
  const { apiKey, baseUrl, loginUrl } = options;
  const { dispatcher = getGlobalDispatcher(), description, parameters = {} } = options;
  const { refreshTokens = refreshTokensInMemory(), rules = new AnswerRules() } = options;
  const { keyPatienceMs = KEY_PATIENCE_MS, hooks: { onAnswer, onRetry } = {} } = options;
  const described = tokenRequestOf(description, baseUrl, parameters, loginUrl);
  const refreshGrant = refreshGrantOf(description);
  const { url, setting } = described;
  let accepted: string | undefined;
  let refusedSince: number | undefined;
  const canPass = (credentials: string): boolean => {
    refusedSince ??= scheduler.now();
    return credentials === accepted && scheduler.now() - refusedSince < keyPatienceMs;
  };
  /** Sends the request and emits its response. A new refresh token in the response is passed to `refreshTokens` before that. */
  const send = (variables: Variables): Observable<HttpResponse> => {
    const request = (own: Variables) =>
      exchange({
        ...{ dispatcher, url, setting, ...described.partsOf(own) },
        method: 'POST',
        maxBytes: MAX_LOGIN_BYTES,
      });
    if (!refreshGrant) return request(variables);
    const refreshToken = refreshTokens.begin(filled(refreshGrant.refresh_token!, variables) ?? '');
    return request({ ...variables, refresh_token: refreshToken }).pipe(
      tap((answer) => {
        const next = isSuccess(answer.status) && objectIn(answer.text)?.refresh_token;
        if (typeof next === 'string' && next !== refreshToken) refreshTokens.replace(next);
      }),
      finalize(() => refreshTokens.end()),
      share({ connector: () => new ReplaySubject(1), resetOnRefCountZero: false }),
    );
  };
  const post = (waitsSince: number) =>
    defer(() => {
      const askedAt = scheduler.now();
      const waitedMs = askedAt - waitsSince;
      const elapsed = () => scheduler.now() - askedAt;
      const credentials = { ...options.credentials?.(), ...(apiKey && { api_key: apiKey() }) };
      const identity = JSON.stringify(credentials);
      return send({ ...parameters, ...credentials }).pipe(
        tap({
          error: () => {
            refusedSince = undefined;
            onAnswer?.({ status: undefined, elapsedMs: elapsed(), waitedMs });
          },
        }),
        map((answer) => {
          const elapsedMs = elapsed();
          onAnswer?.({ status: answer.status, elapsedMs, waitedMs });
          const stated = rules.of(answer, scheduler.now());
          if (described.isRejection(answer, stated)) {
            throw refusedLogin(described, description, answer, canPass(identity));
          }
          refusedSince = undefined;
          if (!isSuccess(answer.status)) throw failure(described, answer, stated);
          const token = tokenIn(described, answer, askedAt, elapsedMs);
          accepted = identity;
          return token;
        }),
      );
    });
  const attempts = defer(() => during(limit, post(scheduler.now()))).pipe(
    backoff({ scheduler, random, canPass: isRetryableAtApi, onRetry }),
  );
  return defer(() => {
    refusedSince = undefined;
    return attempts;
  });
}

/** Creates a store that holds the newest refresh token in memory, until the process ends. */
function refreshTokensInMemory(): RefreshTokens {
  let chain: { readonly first: string; newest: string } | undefined;
  return {
    begin: (first) => {
      if (chain?.first !== first) chain = { first, newest: first };
      return chain.newest;
    },
    replace: (token) => {
      if (chain) chain.newest = token;
    },
    end: () => undefined,
  };
}

function refusedLogin(
  { noun, url }: TokenRequest,
  description: Pick<ApiDescription, 'auth'>,
  answer: HttpResponse,
  canPass: boolean,
): CellarstreamError {
  const { status } = answer;
  const code = noun === 'token endpoint' ? oauthError(answer) : undefined;
  const isOld = code === 'invalid_grant' && refreshGrantOf(description) !== undefined;
  return rejection(`the ${noun} at ${loggableAddress(url)}`, description.auth, {
    answered: code === undefined ? String(status) : `${status} ${code}`,
    advice: isOld
      ? '; if the refresh token has expired or was used elsewhere, set API_REFRESH_TOKEN to a new one'
      : '',
    context: { status, ...(canPass && { canPass }) },
  });
}

/** Returns the error for a status that is not a success and does not mean that the API refused the credentials. */
function failure(
  { url, setting, noun }: TokenRequest,
  answer: HttpResponse,
  described: DescribedStatus,
): Error {
  const { status } = answer;
  const isStated = described.meaning !== undefined;
  const isWrongAddress = (status === 404 || status === 405) && !isStated;
  if (!isWrongAddress) {
    const isPassing = noun === 'token endpoint' && isTemporary(answer);
    const error = statusError(url, answer, isPassing ? { canPass: true } : {}, setting, described);
    const isOfApi = isRetryableAtApi(error) || isStated || isJson(answer);
    return isOfApi ? error : blockedError(url, answer);
  }
  const advice =
    setting === 'API_BASE_URL'
      ? `check API_BASE_URL, and set API_LOGIN_URL if the ${noun} has another address`
      : `check ${setting}`;
  return new CellarstreamError(
    'API_STATUS',
    `the ${noun} at ${loggableAddress(url)} answered ${status}: the ${noun} is not at this address. ${advice}`,
    { context: { status, canPass: true } },
  );
}

/** An access token and its lifetime. */
export interface Token {
  /** The token (usually a JWT), without the prefix `Bearer`. */
  readonly text: string;
  /** When the login request was sent, in ms on the scheduler's clock. The token's lifetime is counted from here. */
  readonly askedAt: number;
  /** How long the server is expected to accept the token, in ms from `askedAt`: as the login response says, or a default. */
  readonly lifeMs: number;
  /**
   * Lower bound of the server's time when the login request was sent, in epoch ms. Undefined if neither a `Date` header nor the token's
   * claim `iat` was read.
   */
  readonly serverTime: number | undefined;
}

/** Lifetime of a token that is assumed if neither the login response nor the description states one. */
const DEFAULT_LIFE = '30min';
/**
 * Shortest plausible lifetime of a token, in ms. A shorter one from `exp` is used only if neither `iat` nor `Date` gives a longer one, as
 * clocks may disagree. A shorter one that the response states is read in another unit, or ignored. `expires_in` of OAuth 2 is not checked.
 */
const LEAST_LIFE_MS = 10_000;
/**
 * Shortest usable lifetime of a token, in ms. A shorter time from `iat` or `Date` to `exp` is not taken for the lifetime: the token might
 * expire before a request arrives.
 */
const LEAST_USABLE_MS = 2_000;
/**
 * Longest token lifetime that is accepted from a login response, in ms. A longer one from `exp` or `expires_in` is shortened to it. A
 * longer one from another field is read in another unit, or ignored.
 */
const MAX_LIFE_MS = 24 * 60 * 60_000;
/** Units of lifetimes in descriptions, in ms. */
const UNITS_MS = { ms: 1, s: 1_000, min: 60_000, h: 3_600_000, d: 86_400_000 } as const;
/** Units, in ms, that are tried if a lifetime in the documented unit is not plausible: milliseconds, seconds, microseconds. */
const OTHER_UNITS_MS = [1, 1_000, 0.001] as const;
/** Largest time in a JWT that is read as seconds. Larger ones are read as milliseconds: as seconds they would be after the year 5000. */
const LARGEST_SECONDS = 1e11;
const SENDABLE = /^[\x21-\x7e]+$/;

/**
 * Reads the token from a login response.
 *
 * @param askedAt When the login request was sent, in ms on the scheduler's clock.
 * @param elapsedMs Time from `askedAt` until the response was read, in ms.
 * @throws CellarstreamError `API_ANSWER` if the response has no token, or a token with characters that an HTTP header cannot contain.
 */
function tokenIn(
  { url, token, life, noun }: TokenRequest,
  answer: HttpResponse,
  askedAt: number,
  elapsedMs: number,
): Token {
  const body = objectIn(answer.text) as JsonObject | undefined;
  const text = sendable(url, noun, token, valueAt(body, pointerNames(token)));
  const expiresIn = noun === 'token endpoint' ? secondsIn(body?.expires_in) : undefined;
  const { exp, iat } = life.jwt ? claimsOf(text) : {};
  const stamp = answer.date ?? iat;
  const serverTime = stamp === undefined ? undefined : Math.floor(stamp - elapsedMs);
  const stated = life.at === undefined ? undefined : valueAt(body, pointerNames(life.at));
  const lifeMs = expiresIn ?? lifeOf(exp, [iat, answer.date], stated, life);
  return { text, askedAt, serverTime, lifeMs };
}

/**
 * Converts the `expires_in` of an OAuth 2 response from seconds to ms, at most `MAX_LIFE_MS`. Some servers send it as text. Undefined if it
 * is missing or not a positive number.
 */
function secondsIn(expiresIn: unknown): number | undefined {
  const ms = ['number', 'string'].includes(typeof expiresIn) ? Number(expiresIn) * 1_000 : NaN;
  return ms > 0 ? Math.min(ms, MAX_LIFE_MS) : undefined;
}

/**
 * Returns the token in a login response, without surrounding white space and without a `Bearer` prefix.
 *
 * @param pointer JSON Pointer of the token in the response, for error messages.
 * @throws CellarstreamError `API_ANSWER` if the token is missing, or an HTTP header cannot contain it.
 */
function sendable(url: URL, noun: TokenRequest['noun'], pointer: string, value: unknown): string {
  const text = typeof value === 'string' ? value.trim().replace(/^Bearer\s+/i, '') : '';
  const name = pointer.slice(1);
  const failed = (what: string) =>
    new CellarstreamError(
      'API_ANSWER',
      `the response of the ${noun} at ${loggableAddress(url)} has ${what}: check the address and the credentials, and what the description says of the ${noun} in \`auth\``,
    );
  if (text === '') throw failed(`no ${name}`);
  if (!SENDABLE.test(text)) {
    const article = /^[aeio]/i.test(name) ? 'an' : 'a';
    throw failed(`${article} ${name} with characters that a header can not hold, such as spaces`);
  }
  return text;
}

/** The times `exp` and `iat` of a JWT, in epoch ms. The signature is not verified: only the server can do that. */
function claimsOf(token: string): { exp: number | undefined; iat: number | undefined } {
  const claims = objectIn(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'));
  const ms = (claim: unknown) => {
    if (typeof claim !== 'number') return undefined;
    return claim > LARGEST_SECONDS ? claim : claim * 1_000;
  };
  return { exp: ms(claims?.exp), iat: ms(claims?.iat) };
}

/**
 * Returns a token's lifetime in ms, from the first of these sources that has a usable value:
 *
 * - the token's `exp`: the time until then from `iat` or from the response's `Date`, at most `MAX_LIFE_MS`;
 * - the lifetime that the response states, in the unit of the description or, if that is not plausible, in another one;
 * - the default of the description, or else 30 minutes.
 *
 * @param from `iat` and `Date`, in epoch ms.
 * @param stated Lifetime that the response states.
 */
function lifeOf(
  exp: number | undefined,
  from: readonly (number | undefined)[],
  stated: unknown,
  { unit = 'ms', default: text = DEFAULT_LIFE }: NonNullable<LoginDescription['life']>,
): number {
  // The two times differ if the server returns a token that it issued earlier.
  const left = from.map((at) => (exp ?? NaN) - (at ?? NaN)).filter((ms) => ms >= LEAST_USABLE_MS);
  const believable = left.filter((ms) => ms >= LEAST_LIFE_MS);
  if (believable.length > 0) return Math.min(...believable, MAX_LIFE_MS);
  if (left.length > 0) return Math.max(...left);
  return statedMs(stated, UNITS_MS[unit]) ?? durationMs(text);
}

function statedMs(stated: unknown, unit: number): number | undefined {
  const value = typeof stated === 'string' ? Number(stated) : stated;
  if (typeof value !== 'number') return undefined;
  return [unit, ...OTHER_UNITS_MS]
    .map((each) => value * each)
    .find((ms) => ms >= LEAST_LIFE_MS && ms <= MAX_LIFE_MS);
}

/** Parses a duration of a description, such as `30min`, to ms. */
function durationMs(text: string): number {
  const unit = text.replace(/^\d+/, '') as keyof typeof UNITS_MS;
  return parseInt(text, 10) * UNITS_MS[unit];
}
