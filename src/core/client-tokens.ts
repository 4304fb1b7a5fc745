// Requests access tokens with the OAuth 2 client credentials grant.

import { decodeJwt } from 'jose';
import type { JWTPayload } from 'jose';
import type { Dispatcher } from 'undici';
import { AccessTokens } from './access-tokens.ts';
import type { AccessTokensOptions, GrantedToken } from './access-tokens.ts';
import { httpError } from './http-error.ts';
import { CellarstreamError, isRetryable } from './errors.ts';
import type { ErrorCode } from './errors.ts';
import { basicAuth, objectIn } from './http-text.ts';
import type { Secret } from './secret.ts';
import { USER_AGENT } from './version.ts';

/** Settings of an OAuth 2 client that uses the client credentials grant (RFC 6749, section 4.4). */
export interface ClientCredentials {
  readonly tokenUrl: string;
  readonly clientId: string;
  readonly clientSecret: Secret;
  readonly scope: string | undefined;
}

/** How the client sends its secret: `basic` in an `Authorization` header, `post` in the form body. */
type ClientAuth = 'basic' | 'post';

/** An OAuth 2 token endpoint and how to connect to it. */
export interface TokenEndpoint {
  readonly credentials: ClientCredentials;
  readonly errors: {
    /** Prefix of the names of the endpoint's settings, such as `KAFKA_OAUTH`. */
    readonly settings: string;
    /** Name of the setting with the file of certificate authorities. */
    readonly ca: string;
    /** Code of the errors that are temporary, such as a connection failure: a later request to the token endpoint may succeed. */
    readonly unreachable: ErrorCode;
    /** Code of errors that last until an operator changes the settings or the identity provider. */
    readonly refused: ErrorCode;
  };
  readonly dispatcher: Dispatcher;
}

/** Maximum time for a token request and its response, in ms. If it is too small, requests to slow identity providers always time out. */
const TIMEOUT_MS = 10_000;
/**
 * Maximum size of a token response, in bytes. If it is too small, long tokens can't be used: those that list hundreds of user groups have
 * about 50 kB.
 */
const MAX_RESPONSE_BYTES = 1024 * 1024;
/** Maximum length of a text that is copied from a token response to an error message, in characters. */
const MAX_TEXT_LENGTH = 200;

/** HTTP statuses below 500, and OAuth error codes, after which a later request may succeed. */
const TEMPORARY: ReadonlySet<unknown> = new Set([
  ...[408, 425, 429],
  ...['temporarily_unavailable', 'server_error'],
]);

/** Lifetime that is assumed for a token without a plausible lifetime, in ms. */
const DEFAULT_LIFE_MS = 60_000;
/** Maximum lifetime that is assumed for a token, in ms. A token with a longer lifetime is renewed earlier than necessary. */
const MAX_LIFE_MS = 86_400_000;

/**
 * Creates a source of access tokens that uses the OAuth 2 client credentials grant. The client authenticates with HTTP Basic or, if the
 * endpoint refuses that, with the secret in the form body.
 *
 * Errors are CellarstreamErrors with the code `errors.unreachable`, `errors.refused` or `TLS_REFUSED`.
 */
export function clientTokens(
  endpoint: TokenEndpoint,
  options: Pick<AccessTokensOptions, 'onRenewalFailed' | 'now'> = {},
): AccessTokens {
  const { settings, unreachable } = endpoint.errors;
  let auth: ClientAuth = 'basic';
  let hasGranted = false;
  const requestBy = async (by: ClientAuth, now: number): Promise<GrantedToken> => {
    const token = await requestToken(endpoint, by, hasGranted, now);
    hasGranted = true;
    auth = by;
    return token;
  };
  const request = (now: number): Promise<GrantedToken> =>
    requestBy(auth, now).catch((error: unknown) => {
      const isRefused = error instanceof CellarstreamError && error.context.oauth !== undefined;
      if (!isRefused || hasGranted) throw error;
      return requestBy('post', now).catch((atPost: unknown) => {
        throw isRetryable(atPost) ? atPost : error;
      });
    });
  return new AccessTokens({ ...options, request, issuer: `${settings}_TOKEN_URL`, unreachable });
}

/**
 * Requests a token from the endpoint.
 *
 * @param hasGranted Whether the endpoint has granted a token before. If so, a response that is neither a token nor a refusal counts as a
 * temporary error.
 * @param now Current time, in epoch ms.
 * @throws CellarstreamError. Its context has `oauth: 'invalid_client'` if the endpoint refused the client or seems to have refused it.
 */
async function requestToken(
  endpoint: TokenEndpoint,
  auth: ClientAuth,
  hasGranted: boolean,
  now: number,
): Promise<GrantedToken> {
  const { credentials, errors, dispatcher } = endpoint;
  const { tokenUrl, clientId, clientSecret, scope } = credentials;
  const url = new URL(tokenUrl);
  const secret = clientSecret.reveal();
  // Percent-encoded, as RFC 6749, section 2.3.1, requires, but only the characters that need it: some servers do not decode them.
  const authorization = basicAuth(encodeURIComponent(clientId), encodeURIComponent(secret));
  const form = new URLSearchParams({ grant_type: 'client_credentials' });
  if (scope !== undefined) form.set('scope', scope);
  if (auth === 'post') {
    form.set('client_id', clientId);
    form.set('client_secret', secret);
  }
  let status: number;
  let text: string;
  try {
    const answer = await dispatcher.request({
      origin: url.origin,
      path: url.pathname + url.search,
      method: 'POST',
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        accept: 'application/json',
        'user-agent': USER_AGENT,
        ...(auth === 'basic' && { authorization }),
      },
      body: form.toString(),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    status = answer.statusCode;
    text = await limitedText(answer.body);
  } catch (cause) {
    throw httpError(cause, {
      who: `${errors.settings}_TOKEN_URL (${url.origin})`,
      address: `${errors.settings}_TOKEN_URL`,
      ca: errors.ca,
      protocol: url.protocol,
      unreachable: errors.unreachable,
    });
  }
  const body = objectIn(text);
  if (status >= 200 && status < 300) {
    const value = body?.access_token;
    if (typeof value === 'string' && /^[\x21-\x7e]+$/.test(value)) {
      return { value, lifeMs: lifeOf(value, body?.expires_in, now) };
    }
  }
  throw responseError(endpoint, hasGranted, status, body);
}

function responseError(
  { credentials, errors }: TokenEndpoint,
  hasGranted: boolean,
  status: number,
  body: Readonly<Record<string, unknown>> | undefined,
): CellarstreamError {
  const { settings, refused, unreachable } = errors;
  const url = `${settings}_TOKEN_URL`;
  const client = `check ${settings}_CLIENT_ID and ${settings}_CLIENT_SECRET`;
  const oauth = serverMessage(body?.error, credentials);
  const message = [oauth, serverMessage(body?.error_description, credentials)]
    .filter(Boolean)
    .join(': ');
  const describe = (advice?: string) =>
    `${url} answered ${status}${message ? ` (${message})` : ''}${advice ? `: ${advice}` : ''}`;
  const error = (code: ErrorCode, advice?: string, kind?: string) =>
    new CellarstreamError(code, describe(advice), { context: { status, oauth: kind } });

  if (status >= 500 || TEMPORARY.has(status) || TEMPORARY.has(oauth)) return error(unreachable);
  if (oauth === 'invalid_scope' || oauth === 'invalid_target')
    return error(refused, `check ${settings}_SCOPE`);
  if (oauth === 'unauthorized_client' || oauth === 'unsupported_grant_type') {
    const advice =
      'the client needs the grant client_credentials: allow it at the identity provider';
    return error(refused, advice);
  }
  if (oauth === 'invalid_client' || status === 401) return error(refused, client, 'invalid_client');
  if (status === 403 || (status === 400 && oauth)) {
    return error(refused, `${client}, and ${settings}_SCOPE`, 'invalid_client');
  }
  return new CellarstreamError(
    hasGranted ? unreachable : refused,
    `${url} answered ${status}, and the response contains no access token: check that it is the address of the token endpoint`,
    { context: { status } },
  );
}

/**
 * Returns a text from a token response for logs: on one line, shortened. Undefined if it is empty, not a text, or contains the client
 * secret.
 */
function serverMessage(value: unknown, { clientSecret }: ClientCredentials): string | undefined {
  if (typeof value !== 'string' || value.includes(clientSecret.reveal())) return undefined;
  return (
    value
      .replace(/[\s\p{C}]+/gu, ' ')
      .trim()
      .slice(0, MAX_TEXT_LENGTH) || undefined
  );
}

/**
 * Returns the lifetime of an access token, in ms: the shortest positive one that the response (`expires_in`) or the token's claims (`exp`,
 * `iat`) state, at most {@link MAX_LIFE_MS}. If they state none, {@link DEFAULT_LIFE_MS}.
 */
function lifeOf(token: string, expiresIn: unknown, now: number): number {
  const claims = claimsOf(token);
  const [exp, iat] = [Number(claims.exp), Number(claims.iat)]; // NaN if the token has no such claim
  const hasLife = typeof expiresIn === 'string' || typeof expiresIn === 'number';
  const granted = hasLife ? Number(expiresIn) * 1_000 : NaN;
  const lives = [granted, (exp - iat) * 1_000, exp * 1_000 - now].filter((life) => life > 0);
  return Math.min(MAX_LIFE_MS, ...(lives.length > 0 ? lives : [DEFAULT_LIFE_MS]));
}

function claimsOf(token: string): JWTPayload {
  try {
    return decodeJwt(token);
  } catch {
    return {}; // tokens need not be JWTs
  }
}

/** Reads a response body as text. Returns an empty text if the body is larger than {@link MAX_RESPONSE_BYTES}. */
async function limitedText(body: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of body) {
    length += chunk.length;
    if (length > MAX_RESPONSE_BYTES) return '';
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}
