// HTTP requests to a schema registry, with error codes that distinguish outages from refusals.

import { setTimeout as pause } from 'node:timers/promises';
import { basicAuth, objectIn } from '../../core/http-text.ts';
import { CellarstreamError } from '../../core/errors.ts';
import { httpConnections } from '../../core/http-connections.ts';
import { httpError, ifTls } from '../../core/connection-error.ts';
import type { Proxies } from '../../core/proxies.ts';
import { USER_AGENT } from '../../core/version.ts';

/** Address of a schema registry, the credentials for it, and how to connect to it. */
export interface RegistryOptions {
  /** Base URL of the registry's API: `http://127.0.0.1:8081`, `http://127.0.0.1:8080/apis/ccompat/v7`. */
  readonly url: string;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  /** Bearer token instead of user name and password, or a source of tokens. */
  readonly token?: string | BearerTokens | undefined;
  /** Additional headers of each request to the registry, such as `target-sr-cluster` for Confluent Cloud. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Client certificate to present to the registry, with its chain, in PEM. Default: none is presented. */
  readonly cert?: string | undefined;
  /** Private key of `cert`, in PEM. */
  readonly key?: string | undefined;
  /** CA certificates to trust instead of the system's, in PEM. */
  readonly ca?: string | undefined;
  /** Timeout in ms for the connection, for the response headers, and between two parts of the response body. Default 10,000. */
  readonly timeoutMs?: number | undefined;
  /** HTTP proxies, as `loadConfig` reads them from `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`. Default: direct connections. */
  readonly proxies?: Proxies | undefined;
}

/** A source of bearer tokens that expire. */
export interface BearerTokens {
  /** Returns a valid token; called before each request to the registry. */
  readonly get: () => Promise<{ readonly value: string }>;
  /**
   * Called when the registry has refused a token. The next call of `get` then fetches another one, unless the token is only some seconds
   * old.
   */
  readonly forget: (value: string) => void;
}

/** A schema registry's response: a 2xx (`exists` is true), or a 404 with the registry's own `error_code`. */
export interface RegistryResponse {
  readonly exists: boolean;
  readonly body: Readonly<Record<string, unknown>>;
}

/** HTTP client of a schema registry, with error codes that distinguish outages from refusals. */
interface RegistryHttp {
  /**
   * Sends one request to the registry.
   *
   * @param about The subject or schema id that the request concerns, for error messages.
   * @throws CellarstreamError `REGISTRY_UNREACHABLE`: no response, 408, 429 or 5xx; `REGISTRY_REFUSED`: any other response than a 2xx or
   * the registry's own 404; `TLS_REFUSED`.
   */
  readonly request: (
    method: string,
    path: string,
    about: string,
    body?: object,
  ) => Promise<RegistryResponse>;
  readonly close: () => Promise<void>;
}

const SERVER = {
  address: 'SCHEMA_REGISTRY_URL',
  ca: 'SCHEMA_REGISTRY_CA_FILE',
  clientCertificate: { cert: 'SCHEMA_REGISTRY_CERT_FILE', key: 'SCHEMA_REGISTRY_KEY_FILE' },
  unreachable: 'REGISTRY_UNREACHABLE',
} as const;

/**
 * Returns advice for the error message after the registry has refused a request with this HTTP status: which settings, of the credentials
 * that were sent, to check. Undefined if there is no advice.
 */
function adviceOn(status: number, token: RegistryOptions['token']): string | undefined {
  const [account, login] =
    token === undefined
      ? ['SCHEMA_REGISTRY_USERNAME', 'SCHEMA_REGISTRY_USERNAME and SCHEMA_REGISTRY_PASSWORD']
      : typeof token === 'string'
        ? ['SCHEMA_REGISTRY_TOKEN', 'SCHEMA_REGISTRY_TOKEN']
        : [
            'SCHEMA_REGISTRY_OAUTH_CLIENT_ID',
            'SCHEMA_REGISTRY_OAUTH_SCOPE, and the issuers that the registry trusts',
          ];
  if (status === 401) return `check ${login}`;
  return status === 403 ? `${account} needs the right to read and register schemas` : undefined;
}

/** Message part for a response that isn't from a registry: usually from a proxy, or from a registry whose API is at another path. */
const NOT_A_REGISTRY = 'the response is not from a schema registry';

/**
 * Pauses in ms before each retry of a request whose OAuth token was refused: a registry may accept a token only some seconds after its
 * issue. Longer pauses in total delay the error for a token that is never accepted.
 */
const TOKEN_RETRY_PAUSES_MS = [1_000, 2_000, 4_000] as const;

const TIMEOUT_MS = 10_000;
const MAX_RESPONSE_BYTES = 16 * 1024 * 1024;
const MAX_MESSAGE_LENGTH = 500;
const MEDIA_TYPE = 'application/vnd.schemaregistry.v1+json';

export function createRegistryHttp(options: RegistryOptions): RegistryHttp {
  const { origin, protocol, pathname, username, password } = new URL(options.url);
  const base = pathname.replace(/\/+$/, '');
  const where = `the schema registry at ${origin}${base}`; // without the credentials that the URL may contain
  const server = { ...SERVER, who: where, protocol };
  const { token, headers } = options;
  const login = loginOf(
    options.username ?? decodeURIComponent(username),
    options.password ?? decodeURIComponent(password),
  );
  const timeout = options.timeoutMs ?? TIMEOUT_MS;
  const connections = httpConnections({
    ca: options.ca,
    cert: options.cert,
    key: options.key,
    connectTimeoutMs: timeout,
    responseTimeoutMs: timeout,
    maxResponseBytes: MAX_RESPONSE_BYTES,
    proxies: options.proxies,
  });

  const exchange = async (
    method: string,
    path: string,
    body: object | undefined,
    authorization: string | undefined,
  ): Promise<{ readonly status: number; readonly text: string }> => {
    try {
      const answer = await connections.request({
        origin,
        path: base + path,
        method,
        headers: {
          'user-agent': USER_AGENT,
          accept: `${MEDIA_TYPE}, application/json`,
          'content-type': MEDIA_TYPE,
          ...(authorization !== undefined && { authorization }),
          ...headers,
        },
        body: body ? JSON.stringify(body) : null,
      });
      return { status: answer.statusCode, text: await answer.body.text() };
    } catch (cause) {
      throw httpError(cause, server);
    }
  };

  const ask = async (
    method: string,
    path: string,
    about: string,
    body?: object,
  ): Promise<RegistryResponse> => {
    let bearer = await bearerOf(token);
    const send = () =>
      exchange(method, path, body, bearer === undefined ? login : `Bearer ${bearer}`);
    let answer = await send();
    for (const pauseMs of TOKEN_RETRY_PAUSES_MS) {
      if (answer.status !== 401 || typeof token !== 'object' || bearer === undefined) break;
      await pause(pauseMs);
      token.forget(bearer); // revoked, or expired by the registry's clock
      bearer = await bearerOf(token);
      answer = await send();
    }
    const { status, text } = answer;
    const parsed = objectIn(text);
    const exists = status >= 200 && status < 300;
    if (parsed && (exists || (status === 404 && 'error_code' in parsed)))
      return { exists, body: parsed };

    const serverMessage = errorMessageIn(parsed);
    // A TLS port answers plain HTTP with a 400 without JSON, if at all.
    const isPlain = protocol === 'http:' && status === 400 && parsed === undefined;
    const isElsewhere = exists || status === 404;
    const advice = isPlain
      ? ifTls(SERVER.address)
      : isElsewhere
        ? pathAdvice(base)
        : adviceOn(status, token);
    const details = [serverMessage ?? (isElsewhere ? NOT_A_REGISTRY : undefined), advice].filter(
      (part) => part !== undefined,
    );
    const message = `${about}: ${where} answered ${status}: ${details.join(': ') || NOT_A_REGISTRY}`;
    const passing = status === 408 || status === 429 || status >= 500;
    const code = passing ? 'REGISTRY_UNREACHABLE' : 'REGISTRY_REFUSED';
    const errorCode = parsed?.error_code;
    throw new CellarstreamError(code, message, {
      context: { status, ...(typeof errorCode === 'number' && { errorCode }) },
    });
  };

  return { request: ask, close: () => connections.destroy() };
}

/** Returns advice for the error message after a response that isn't from a registry: check the path in the URL. */
function pathAdvice(base: string): string {
  return base === ''
    ? `give ${SERVER.address} the path of its API, as /apis/ccompat/v7 of Apicurio`
    : `is its path the right one in ${SERVER.address}?`;
}

async function bearerOf(token: RegistryOptions['token']): Promise<string | undefined> {
  return typeof token === 'object' ? (await token.get()).value : token;
}

function loginOf(username: string, password: string): string | undefined {
  return username === '' && password === '' ? undefined : basicAuth(username, password);
}

/**
 * The error message in a registry's response: Confluent and Apicurio call it `message`; Karapace uses `reason` or `detail` for missing
 * credentials or rights.
 */
function errorMessageIn(answer: Readonly<Record<string, unknown>> | undefined): string | undefined {
  const texts = [answer?.message, answer?.reason, answer?.detail, answer?.error];
  const text = texts.find((each) => typeof each === 'string');
  return text === undefined ? undefined : oneLine(text);
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim().slice(0, MAX_MESSAGE_LENGTH);
}
