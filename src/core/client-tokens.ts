import { decodeJwt } from 'jose';
import type { Dispatcher } from 'undici';
import { AccessTokens } from './access-tokens.ts';
import type { AccessTokensOptions, GrantedToken } from './access-tokens.ts';
import { httpError } from './connection-error.ts';
import { CellarstreamError } from './errors.ts';
import type { ErrorCode } from './errors.ts';
import { basicAuth, objectIn } from './http-text.ts';
import type { Secret } from './secret.ts';
import { USER_AGENT } from './version.ts';

/** An OAuth 2 client that logs in with its own credentials (RFC 6749, section 4.4). */
export interface ClientCredentials {
  readonly tokenUrl: string;
  readonly clientId: string;
  readonly clientSecret: Secret;
  readonly scope: string | undefined;
}

/** The names and codes that errors of a token endpoint use. */
interface TokenErrors {
  /** Prefix of the names of its settings, such as `KAFKA_OAUTH`. */
  readonly settings: string;
  /** The setting that names the file with its authority's certificate. */
  readonly ca: string;
  /** Code of errors that a later try may heal. */
  readonly unreachable: ErrorCode;
  /** Code of errors that need another setting. */
  readonly refused: ErrorCode;
}

/** How a client proves who it is: with an `Authorization` header, or in the form. */
type ClientAuth = 'basic' | 'post';

export interface TokenEndpoint {
  readonly credentials: ClientCredentials;
  readonly errors: TokenErrors;
  readonly dispatcher: Dispatcher;
}

interface TokenRequest extends TokenEndpoint {
  readonly auth: ClientAuth;
  /** Whether the endpoint has granted a token before: then an answer of another server (404, a web page) may pass. */
  readonly hasGranted: boolean;
  /** The time now, in ms since the epoch. */
  readonly now: number;
}

/** Limit of a whole request, in ms. Too small: slow identity providers never answer in time. */
const TIMEOUT_MS = 10_000;
/** Largest answer that is read, in bytes; tokens with hundreds of groups have some 50 kB. */
const MAX_ANSWER_BYTES = 1024 * 1024;
/** Longest text of an answer in an error message, in characters. */
const MAX_TEXT_LENGTH = 200;

/** Assumed life of a token that says nothing plausible about it, in ms. */
const UNKNOWN_LIFE_MS = 60_000;
/** Longest life that is believed, in ms; a token that lives longer is renewed early. */
const MAX_LIFE_MS = 86_400_000;

/**
 * Access tokens by the client credentials grant. The client authenticates with HTTP Basic; where it is refused, with the secret in
 * the form, until one of them has worked.
 *
 * They throw CellarstreamError with `errors.unreachable`, `errors.refused` or `TLS_REFUSED`.
 */
export function clientTokens(
  endpoint: TokenEndpoint,
  options: Pick<AccessTokensOptions, 'onRenewalFailed' | 'now'> = {},
): AccessTokens {
  const { settings, unreachable } = endpoint.errors;
  let auth: ClientAuth = 'basic';
  let hasGranted = false;
  const requestBy = async (by: ClientAuth, now: number): Promise<GrantedToken> => {
    const token = await requestToken({ ...endpoint, auth: by, hasGranted, now });
    hasGranted = true;
    auth = by;
    return token;
  };
  const request = (now: number): Promise<GrantedToken> =>
    requestBy(auth, now).catch((error: unknown) => {
      const isRefused = error instanceof CellarstreamError && error.context.oauth !== undefined;
      if (!isRefused || hasGranted) throw error;
      return requestBy('post', now).catch(() => {
        throw error;
      });
    });
  return new AccessTokens({ ...options, request, issuer: `${settings}_TOKEN_URL`, unreachable });
}

/** @throws CellarstreamError; where the client itself was refused its context has `oauth: 'invalid_client'`. */
async function requestToken(request: TokenRequest): Promise<GrantedToken> {
  const { credentials, errors, dispatcher, auth, now } = request;
  const { tokenUrl, clientId, clientSecret, scope } = credentials;
  const url = new URL(tokenUrl);
  const secret = clientSecret.reveal();
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
        ...(auth === 'basic' && { authorization: basic(clientId, secret) }),
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
  throw answerError(request, status, body);
}

function answerError(
  { credentials, errors, hasGranted }: TokenRequest,
  status: number,
  body: Readonly<Record<string, unknown>> | undefined,
): CellarstreamError {
  const { settings, refused, unreachable } = errors;
  const url = `${settings}_TOKEN_URL`;
  const client = `check ${settings}_CLIENT_ID and ${settings}_CLIENT_SECRET`;
  const oauth = words(body?.error, credentials);
  const said = [oauth, words(body?.error_description, credentials)].filter(Boolean).join(': ');
  const describe = (advice?: string) =>
    `${url} answered ${status}${said ? ` (${said})` : ''}${advice ? `: ${advice}` : ''}`;
  const error = (code: ErrorCode, advice?: string, kind?: string) =>
    new CellarstreamError(code, describe(advice), { context: { status, oauth: kind } });

  if (status === 408 || status === 425 || status === 429 || status >= 500)
    return error(unreachable);
  switch (oauth) {
    case 'invalid_scope':
    case 'invalid_target':
      return error(refused, `check ${settings}_SCOPE`);
    case 'unauthorized_client':
    case 'unsupported_grant_type':
      return error(
        refused,
        `the client needs the grant client_credentials: allow it at the identity provider`,
      );
    case 'temporarily_unavailable':
    case 'server_error':
      return error(unreachable);
  }
  if (oauth === 'invalid_client' || status === 401) return error(refused, client, 'invalid_client');
  if (status === 403 || (status === 400 && oauth)) {
    return error(refused, `${client}, and ${settings}_SCOPE`, 'invalid_client');
  }
  return new CellarstreamError(
    hasGranted ? unreachable : refused,
    `${url} answered ${status} without an access token: is it the address of the token endpoint?`,
    { context: { status } },
  );
}

/** Words of an answer, fit for a log line; undefined where there are none, or where they repeat the secret. */
function words(value: unknown, { clientSecret }: ClientCredentials): string | undefined {
  if (typeof value !== 'string' || value.includes(clientSecret.reveal())) return undefined;
  return (
    value
      .replace(/[\s\p{C}]+/gu, ' ')
      .trim()
      .slice(0, MAX_TEXT_LENGTH) || undefined
  );
}

/**
 * RFC 6749, section 2.3.1, encodes id and secret as a form does. Servers that do not decode them exist: characters that need no
 * encoding are therefore left as they are.
 */
function basic(clientId: string, secret: string): string {
  return basicAuth(encodeURIComponent(clientId), encodeURIComponent(secret));
}

/**
 * The shortest plausible life of a token, in ms: of what the answer says (`expires_in`, in seconds; some send text) and what the
 * token says where it is a JWT, by the server's clock and by ours. Values that are not positive are not believed.
 */
function lifeOf(token: string, expiresIn: unknown, now: number): number {
  const { exp, iat } = claimsOf(token);
  const lives = [
    Number(typeof expiresIn === 'string' || typeof expiresIn === 'number' ? expiresIn : NaN) *
      1_000,
    (exp - iat) * 1_000,
    exp * 1_000 - now,
  ].filter((life) => life > 0);
  return Math.min(MAX_LIFE_MS, ...(lives.length > 0 ? lives : [UNKNOWN_LIFE_MS]));
}

function claimsOf(token: string): { readonly exp: number; readonly iat: number } {
  try {
    const { exp = NaN, iat = NaN } = decodeJwt(token);
    return { exp: Number(exp), iat: Number(iat) };
  } catch {
    return { exp: NaN, iat: NaN }; // tokens need not be JWTs
  }
}

async function limitedText(body: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of body) {
    length += chunk.length;
    if (length > MAX_ANSWER_BYTES) return '';
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}
