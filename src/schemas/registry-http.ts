import { Agent, errors } from 'undici';
import { CellarstreamError } from '../errors.ts';
import { tlsError } from '../tls-error.ts';

/** Where a registry is, and how to log in. */
export interface RegistryOptions {
  /** The root of the API: `http://127.0.0.1:8081`, `http://127.0.0.1:8080/apis/ccompat/v7`. */
  readonly url: string;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  /** Certificates to trust instead of the system's, in PEM. */
  readonly ca?: string | undefined;
  /** For connecting, for the headers, and between two parts of an answer. Default 10,000. */
  readonly timeoutMs?: number | undefined;
}

/** What a registry answered: 200, or 404 in its own words. */
export interface RegistryAnswer {
  readonly found: boolean;
  readonly body: Readonly<Record<string, unknown>>;
}

/** Requests to a registry, with its errors told apart. */
export interface RegistryHttp {
  /**
   * @param about What is asked for, for errors: a subject, a schema's id.
   * @throws CellarstreamError `REGISTRY_UNREACHABLE`: no answer, 408, 429 or 5xx;
   * `REGISTRY_REFUSED`: anything but 200 and the registry's own 404; `TLS_REFUSED`.
   */
  readonly ask: (
    method: string,
    path: string,
    about: string,
    body?: object,
  ) => Promise<RegistryAnswer>;
  readonly close: () => Promise<void>;
}

const TLS = {
  address: 'SCHEMA_REGISTRY_URL',
  ca: 'SCHEMA_REGISTRY_CA_FILE',
  ifPlain: 'begin SCHEMA_REGISTRY_URL with http://, or give it the port that does',
  unreachable: 'REGISTRY_UNREACHABLE',
} as const;

/** What to do about it. */
const ADVICE: Readonly<Record<number, string>> = {
  401: 'check SCHEMA_REGISTRY_USERNAME and SCHEMA_REGISTRY_PASSWORD',
  403: 'SCHEMA_REGISTRY_USERNAME needs the right to read and register schemas',
};
/** A proxy, most of the time. */
const UNKNOWN = 'no word that a registry would use';

const TIMEOUT_MS = 10_000;
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;
const MAX_MESSAGE_LENGTH = 500;
const MEDIA_TYPE = 'application/vnd.schemaregistry.v1+json';

export function createRegistryHttp(options: RegistryOptions): RegistryHttp {
  const { origin, protocol, pathname, username, password } = new URL(options.url);
  const base = pathname.replace(/\/+$/, '');
  const where = `the schema registry at ${origin}${base}`; // an address may carry a password
  const server = { ...TLS, who: where };
  const authorization = basic(
    options.username ?? decodeURIComponent(username),
    options.password ?? decodeURIComponent(password),
  );
  const timeout = options.timeoutMs ?? TIMEOUT_MS;
  const agent = new Agent({
    connect: { timeout, ...(options.ca === undefined ? {} : { ca: options.ca }) },
    headersTimeout: timeout,
    bodyTimeout: timeout,
    maxResponseSize: MAX_ANSWER_BYTES,
  });

  const ask = async (
    method: string,
    path: string,
    about: string,
    body?: object,
  ): Promise<RegistryAnswer> => {
    let status: number;
    let text: string;
    try {
      const answer = await agent.request({
        origin,
        path: base + path,
        method,
        headers: {
          accept: `${MEDIA_TYPE}, application/json`,
          'content-type': MEDIA_TYPE,
          ...authorization,
        },
        body: body ? JSON.stringify(body) : null,
      });
      status = answer.statusCode;
      text = await answer.body.text();
    } catch (cause) {
      throw tlsError(cause, server) ?? noAnswer(where, protocol, cause);
    }
    const parsed = objectIn(text);
    const found = status === 200;
    if (parsed && (found || (status === 404 && 'error_code' in parsed)))
      return { found, body: parsed };

    const words = typeof parsed?.message === 'string' ? oneLine(parsed.message) : undefined;
    const said = [words, ADVICE[status]].filter((part) => part !== undefined);
    const message = `${about}: ${where} answered ${status}: ${said.join(': ') || UNKNOWN}`;
    const passing = status === 408 || status === 429 || status >= 500;
    const code = passing ? 'REGISTRY_UNREACHABLE' : 'REGISTRY_REFUSED';
    throw new CellarstreamError(code, message, { context: { status } });
  };

  return { ask, close: () => agent.destroy() };
}

/** A port that speaks TLS closes a connection on which it is spoken to in plain text. */
function noAnswer(where: string, protocol: string, cause: unknown): CellarstreamError {
  const isClosed = protocol === 'http:' && cause instanceof errors.SocketError;
  const advice = isClosed ? ' (if it speaks TLS, begin SCHEMA_REGISTRY_URL with https://)' : '';
  return new CellarstreamError('REGISTRY_UNREACHABLE', `no answer from ${where}${advice}`, {
    cause,
  });
}

function basic(username: string, password: string): Record<string, string> {
  if (username === '' && password === '') return {};
  return { authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}` };
}

/** The object that a JSON text holds; undefined for any other text. */
export function objectIn(text: string): Record<string, unknown> | undefined {
  try {
    const value = JSON.parse(text) as unknown;
    return typeof value === 'object' && value !== null
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined; // not JSON; the caller knows what should have been
  }
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim().slice(0, MAX_MESSAGE_LENGTH);
}
