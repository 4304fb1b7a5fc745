import { setTimeout as pause } from 'node:timers/promises';
import { basicAuth, objectIn } from '../../core/http-text.ts';
import { CellarstreamError } from '../../core/errors.ts';
import { httpConnections } from '../../core/http-connections.ts';
import { httpError, ifTls } from '../../core/http-error.ts';
import type { Proxies } from '../../core/proxies.ts';
import { USER_AGENT } from '../../core/version.ts';

/** Address of a schema registry, the credentials for it, and how to connect to it. */
export interface RegistryOptions {
  /** Base URL of the registry's API: `http://127.0.0.1:8081`, `http://127.0.0.1:8080/apis/ccompat/v7`. */
  readonly url: string;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  /** Bearer token, or a source of bearer tokens, that is sent instead of user name and password. */
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
   * Called with a token that the registry has refused. The next `get` then fetches another token, unless the refused one was issued only
   * some seconds before.
   */
  readonly forget: (value: string) => void;
}

type ResponseBody = NonNullable<ReturnType<typeof objectIn>>;

const SERVER = {
  address: 'SCHEMA_REGISTRY_URL',
  ca: 'SCHEMA_REGISTRY_CA_FILE',
  clientCertificate: { cert: 'SCHEMA_REGISTRY_CERT_FILE', key: 'SCHEMA_REGISTRY_KEY_FILE' },
  unreachable: 'REGISTRY_UNREACHABLE',
} as const;

/** Returns advice for the error message if the registry responded with the status 401 or 403; undefined for other statuses. */
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

/** Part of the error message for a response that comes from a proxy, or from a registry whose API is at another path. */
const NOT_A_REGISTRY = 'the response is not from a schema registry';

/**
 * Pauses in ms before each retry of a request whose OAuth token was refused: a registry may accept a token only some seconds after its
 * issue. Longer pauses delay the error for a token that is never accepted.
 */
const TOKEN_RETRY_PAUSES_MS = [1_000, 2_000, 4_000] as const;

const TIMEOUT_MS = 10_000;
const MAX_RESPONSE_BYTES = 16 * 1024 * 1024;
const MAX_MESSAGE_LENGTH = 500;
const MEDIA_TYPE = 'application/vnd.schemaregistry.v1+json';

/** HTTP client of a schema registry. Its only state is its connections. */
export class RegistryHttp {
  readonly #options: RegistryOptions;
  readonly #url: URL;
  readonly #base: string;
  /** `Authorization` header with the user name and password from the options or the URL; undefined if neither has them. */
  readonly #basicAuth: string | undefined;
  readonly #connections: ReturnType<typeof httpConnections>;

  constructor(options: RegistryOptions) {
    const url = new URL(options.url);
    this.#options = options;
    this.#url = url;
    this.#base = url.pathname.replace(/\/+$/, '');
    const username = options.username ?? decodeURIComponent(url.username);
    const password = options.password ?? decodeURIComponent(url.password);
    this.#basicAuth =
      username === '' && password === '' ? undefined : basicAuth(username, password);
    const { timeoutMs = TIMEOUT_MS, ca, cert, key, proxies } = options;
    this.#connections = httpConnections({
      ...{ ca, cert, key, proxies },
      connectTimeoutMs: timeoutMs,
      responseTimeoutMs: timeoutMs,
      maxResponseBytes: MAX_RESPONSE_BYTES,
    });
  }

  /**
   * Sends a request to the registry and returns the response. `exists` is true for a 2xx, and false for a 404 from the registry itself.
   *
   * @param about The subject or schema id that the request concerns, for error messages.
   * @throws CellarstreamError `REGISTRY_UNREACHABLE` if there is no response, and for 408, 429 and 5xx; `TLS_REFUSED` if no TLS connection
   * can be set up; `REGISTRY_REFUSED` for any other response.
   */
  async request(
    method: string,
    path: string,
    about: string,
    body?: object,
  ): Promise<{ readonly exists: boolean; readonly body: ResponseBody }> {
    const send = (authorization: string | undefined) =>
      this.#send(method, path, body, authorization);
    const { status, text } = await this.#authorized(send);
    const parsed = objectIn(text);
    const exists = status >= 200 && status < 300;
    if (parsed && (exists || (status === 404 && 'error_code' in parsed)))
      return { exists, body: parsed };
    throw this.#refusal(about, status, parsed);
  }

  close(): Promise<void> {
    return this.#connections.destroy();
  }

  /**
   * Calls `send` with the value of the header `Authorization`. Calls it again after each of the {@link TOKEN_RETRY_PAUSES_MS} while the
   * registry refuses an OAuth token with 401.
   */
  async #authorized<T extends { readonly status: number }>(
    send: (authorization: string | undefined) => Promise<T>,
  ): Promise<T> {
    const { token } = this.#options;
    if (token === undefined) return send(this.#basicAuth);
    if (typeof token === 'string') return send(`Bearer ${token}`);
    let { value } = await token.get();
    let answer = await send(`Bearer ${value}`);
    for (const pauseMs of TOKEN_RETRY_PAUSES_MS) {
      if (answer.status !== 401) break;
      await pause(pauseMs);
      token.forget(value); // revoked, or expired by the registry's clock
      ({ value } = await token.get());
      answer = await send(`Bearer ${value}`);
    }
    return answer;
  }

  async #send(
    method: string,
    path: string,
    body: object | undefined,
    authorization: string | undefined,
  ) {
    try {
      const answer = await this.#connections.request({
        origin: this.#url.origin,
        path: this.#base + path,
        method,
        headers: {
          'user-agent': USER_AGENT,
          accept: `${MEDIA_TYPE}, application/json`,
          'content-type': MEDIA_TYPE,
          ...(authorization !== undefined && { authorization }),
          ...this.#options.headers,
        },
        body: body ? JSON.stringify(body) : null,
      });
      return { status: answer.statusCode, text: await answer.body.text() };
    } catch (cause) {
      throw httpError(cause, { ...SERVER, who: this.#name, protocol: this.#url.protocol });
    }
  }

  /** The registry's address in error messages, without the credentials that the URL may contain. */
  get #name(): string {
    return `the schema registry at ${this.#url.origin}${this.#base}`;
  }

  #refusal(about: string, status: number, body: ResponseBody | undefined) {
    const isFromElsewhere = status === 404 || (status >= 200 && status < 300);
    const isFromTlsPort = this.#url.protocol === 'http:' && status === 400 && body === undefined;
    // A TLS port answers plain HTTP with a 400 without JSON, if at all.
    const advice = isFromTlsPort
      ? ifTls(SERVER.address)
      : isFromElsewhere
        ? pathAdvice(this.#base)
        : adviceOn(status, this.#options.token);
    const reason = errorMessageIn(body) ?? (isFromElsewhere ? NOT_A_REGISTRY : undefined);
    const details = [reason, advice].filter((part) => part !== undefined).join(': ');
    const isTransient = status === 408 || status === 429 || status >= 500;
    const errorCode = body?.error_code;
    return new CellarstreamError(
      isTransient ? 'REGISTRY_UNREACHABLE' : 'REGISTRY_REFUSED',
      `${about}: ${this.#name} answered ${status}: ${details || NOT_A_REGISTRY}`,
      { context: { status, ...(typeof errorCode === 'number' && { errorCode }) } },
    );
  }
}

/** Returns advice for the error message after a response that isn't from a registry: check the path in the URL. */
function pathAdvice(base: string): string {
  return base === ''
    ? `give ${SERVER.address} the path of its API, as /apis/ccompat/v7 of Apicurio`
    : `check the path in ${SERVER.address}`;
}

/** Returns the error message of a registry's response, as one line; undefined if the response has none. */
function errorMessageIn(answer: ResponseBody | undefined): string | undefined {
  // Confluent and Apicurio use `message`; Karapace uses `reason` or `detail` for missing credentials or rights.
  const texts = [answer?.message, answer?.reason, answer?.detail, answer?.error];
  const text = texts.find((each) => typeof each === 'string');
  return text?.replace(/\s+/g, ' ').trim().slice(0, MAX_MESSAGE_LENGTH);
}
