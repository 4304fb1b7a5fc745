// Requests to a schema registry, with its errors told apart.

import { setTimeout as pause } from 'node:timers/promises';
import { basicAuth } from '../../core/basic-auth.ts';
import { CellarstreamError } from '../../core/errors.ts';
import { httpConnections } from '../../core/http-connections.ts';
import { httpError, ifTls } from '../../core/http-error.ts';
import { objectIn } from '../../core/json-object.ts';
import type { Proxies } from '../../core/proxies.ts';
import { USER_AGENT } from '../../core/version.ts';

/** Where a registry is, and how to log in. */
export interface RegistryOptions {
  /** The root of the API: `http://127.0.0.1:8081`, `http://127.0.0.1:8080/apis/ccompat/v7`. */
  readonly url: string;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  /** Bearer token in place of user name and password, or a source of them. */
  readonly token?: string | BearerTokens | undefined;
  /** Further headers of each request, such as `target-sr-cluster` of Confluent Cloud. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Client certificate with its chain, in PEM. Default: none is presented. */
  readonly cert?: string | undefined;
  /** Private key of `cert`, in PEM. */
  readonly key?: string | undefined;
  /** Certificates to trust instead of the system's, in PEM. */
  readonly ca?: string | undefined;
  /** For connecting, for the headers, and between two parts of an answer. Default 10,000. */
  readonly timeoutMs?: number | undefined;
  /** HTTP proxies, as `loadConfig` reads them from `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`. Default: direct connections. */
  readonly proxies?: Proxies | undefined;
}

/** A source of bearer tokens that expire. */
export interface BearerTokens {
  /** A valid token; called before each request. */
  readonly get: () => Promise<{ readonly value: string }>;
  /** Called when the registry has refused a token: the next call of `get` gives another, or the same if it is only some seconds old. */
  readonly forget: (value: string) => void;
}

/** A registry's answer: a 2xx, or a 404 with the registry's own `error_code`. */
export interface RegistryAnswer {
  readonly found: boolean;
  readonly body: Readonly<Record<string, unknown>>;
}

/** Requests to a registry, with its errors told apart. */
interface RegistryHttp {
  /**
   * @param about What is asked for, for errors: a subject, a schema's id.
   * @throws CellarstreamError `REGISTRY_UNREACHABLE`: no answer, 408, 429 or 5xx;
   * `REGISTRY_REFUSED`: anything but a 2xx and the registry's own 404; `TLS_REFUSED`.
   */
  readonly ask: (
    method: string,
    path: string,
    about: string,
    body?: object,
  ) => Promise<RegistryAnswer>;
  readonly close: () => Promise<void>;
}

const SERVER = {
  address: 'SCHEMA_REGISTRY_URL',
  ca: 'SCHEMA_REGISTRY_CA_FILE',
  clientCertificate: { cert: 'SCHEMA_REGISTRY_CERT_FILE', key: 'SCHEMA_REGISTRY_KEY_FILE' },
  unreachable: 'REGISTRY_UNREACHABLE',
} as const;

/** Advice about a refusal by its status; names the settings of the login that was sent. */
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

/** A proxy, most of the time, or a registry whose API is at another path. */
const UNKNOWN = 'no word that a registry would use';

/**
 * Pauses before a request is repeated whose token was refused, in ms: a registry may know a token only some seconds after its issue. Longer
 * in all: a token that will never be accepted is reported later.
 */
const REFUSED_PAUSES_MS = [1_000, 2_000, 4_000] as const;

const TIMEOUT_MS = 10_000;
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;
const MAX_MESSAGE_LENGTH = 500;
const MEDIA_TYPE = 'application/vnd.schemaregistry.v1+json';

export function createRegistryHttp(options: RegistryOptions): RegistryHttp {
  const { origin, protocol, pathname, username, password } = new URL(options.url);
  const base = pathname.replace(/\/+$/, '');
  const where = `the schema registry at ${origin}${base}`; // an address may carry a password
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
    answerTimeoutMs: timeout,
    maxAnswerBytes: MAX_ANSWER_BYTES,
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
  ): Promise<RegistryAnswer> => {
    let bearer = await bearerOf(token);
    const send = () =>
      exchange(method, path, body, bearer === undefined ? login : `Bearer ${bearer}`);
    let answer = await send();
    for (const pauseMs of REFUSED_PAUSES_MS) {
      if (answer.status !== 401 || typeof token !== 'object' || bearer === undefined) break;
      await pause(pauseMs);
      token.forget(bearer); // revoked, or over by the registry's clock
      bearer = await bearerOf(token);
      answer = await send();
    }
    const { status, text } = answer;
    const parsed = objectIn(text);
    const found = status >= 200 && status < 300;
    if (parsed && (found || (status === 404 && 'error_code' in parsed)))
      return { found, body: parsed };

    const words = wordsIn(parsed);
    // A port that speaks TLS answers plain text with a 400 of its own, if it answers.
    const isPlain = protocol === 'http:' && status === 400 && parsed === undefined;
    const isElsewhere = found || status === 404;
    const advice = isPlain
      ? ifTls(SERVER.address)
      : isElsewhere
        ? pathAdvice(base)
        : adviceOn(status, token);
    const said = [words ?? (isElsewhere ? UNKNOWN : undefined), advice].filter(
      (part) => part !== undefined,
    );
    const message = `${about}: ${where} answered ${status}: ${said.join(': ') || UNKNOWN}`;
    const passing = status === 408 || status === 429 || status >= 500;
    const code = passing ? 'REGISTRY_UNREACHABLE' : 'REGISTRY_REFUSED';
    const errorCode = parsed?.error_code;
    throw new CellarstreamError(code, message, {
      context: { status, ...(typeof errorCode === 'number' && { errorCode }) },
    });
  };

  return { ask, close: () => connections.destroy() };
}

/** What answers there is no registry. */
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

/** The registry's explanation: Confluent and Apicurio call it `message`, Karapace `reason` or `detail` where a login or a right is missing. */
function wordsIn(answer: Readonly<Record<string, unknown>> | undefined): string | undefined {
  const texts = [answer?.message, answer?.reason, answer?.detail, answer?.error];
  const text = texts.find((each) => typeof each === 'string');
  return text === undefined ? undefined : oneLine(text);
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim().slice(0, MAX_MESSAGE_LENGTH);
}
