/** Codes of all errors of this library. The codes do not change between releases. Programs should check the code and never the message. */
export type ErrorCode =
  /** The command line, a setting, or a file that a setting names is wrong. The message lists all wrong settings. */
  | 'SETTINGS'
  /**
   * The API or its login refused the API key or other credentials. Credentials that it accepted before are retried for
   * `API_KEY_PATIENCE_MS`.
   */
  | 'API_KEY_REJECTED'
  /** The API refused the token of a request for records. The request is repeated with the same token or a new one. */
  | 'TOKEN_REJECTED'
  /**
   * The API refused a request because the quota was used up (429, or a status that means `quota` in the description). Also: the command
   * `check` could not send its requests, because the configured quota was used up.
   */
  | 'QUOTA_EXCEEDED'
  /**
   * The API responded with a status that does not mean success and has no other code. `canPass` in the context decides whether the request
   * is retried; without `canPass`, the status decides.
   */
  | 'API_STATUS'
  /** The API's response is malformed: it is truncated, is not JSON, or does not have the form that the description states. */
  | 'API_ANSWER'
  /** A request to the API was not sent, because the lease (the right to send requests) had expired. */
  | 'LEASE_OVER'
  /** A command got no permits for its API requests, because the quota is used up or the service that runs the account does not respond. */
  | 'NO_PERMITS'
  /**
   * The API did not respond: the connection or the proxy failed, the request timed out, or TLS failed for a reason that the server's
   * operator must resolve.
   */
  | 'API_UNREACHABLE'
  /** The brokers did not respond, or responded with an error that a retry may resolve. */
  | 'KAFKA_UNREACHABLE'
  /** A transaction failed or its outcome is unknown. The process must read from Kafka what was committed. */
  | 'COMMIT_FAILED'
  /**
   * Another instance has claimed this account and fenced this one, or another producer has opened the transactional id that this program
   * uses.
   */
  | 'FENCED'
  /** The brokers refused the credentials, the rights or the settings of this client, or have batches of messages that can't be read. */
  | 'KAFKA_REFUSED'
  /** The key fields of a resource can't be determined, or do not fit its published events or the `PII_` settings. */
  | 'KEY_FIELDS'
  /** The cursor in Kafka, which records how far a list has been read and published, can't be read by this version of the service. */
  | 'CURSOR_UNREADABLE'
  /** A topic exists, but its settings would cause loss of data, or its maximum message size is too small for a message to be written. */
  | 'TOPIC_SETTINGS'
  /** A topic was deleted or recreated, or its number of partitions has changed. */
  | 'TOPIC_CHANGED'
  /** A required topic does not exist or lacks the requested partition or offset, or the messages at that offset have been deleted. */
  | 'POSITION'
  /**
   * A message does not have the format of its topic, or the registry lacks its schema. A consumer's error usually has the message's
   * partition and offset in its context.
   */
  | 'VALUE_UNREADABLE'
  /** The schema registry did not respond, or responded with 408, 429 or 5xx. */
  | 'REGISTRY_UNREACHABLE'
  /** The schema registry refused a schema or the credentials of this client, or does not have a schema that is needed. */
  | 'REGISTRY_REFUSED'
  /** A TLS connection to a server is impossible with these settings, for example because an unknown authority signed its certificate. */
  | 'TLS_REFUSED'
  /** Another process uses the state folder. */
  | 'STATE_LOCKED'
  /** The state folder can't be created, read or written, its disk is full, or another process is renewing the refresh token in it. */
  | 'STATE_FOLDER'
  /** The contents of the state folder are damaged. They are restored from Kafka. */
  | 'STATE_DAMAGED'
  /** The demo can't start a server that it needs (Kafka, the schema registry) or an instance of its fleet. */
  | 'SERVICES';

/** Details of an error for logs and programs, such as offsets, statuses and addresses. They never contain a secret. */
export type ErrorContext = Readonly<Record<string, string | number | boolean | undefined>>;

/** Error class of this library. An error has a stable code, a message of one line that says what to do, and details in `context`. */
export class CellarstreamError extends Error {
  override readonly name = 'CellarstreamError';
  readonly code: ErrorCode;
  readonly context: ErrorContext;

  constructor(
    code: ErrorCode,
    message: string,
    options: { readonly cause?: unknown; readonly context?: ErrorContext } = {},
  ) {
    super(message, options);
    this.code = code;
    this.context = options.context ?? {};
  }
}

/**
 * Codes of temporary errors. Calls that fail with such a code are retried. For `API_STATUS` and `API_KEY_REJECTED`, {@link isRetryable}
 * decides by the context of the error.
 */
const RETRYABLE_CODES: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'TOKEN_REJECTED',
  'QUOTA_EXCEEDED',
  'LEASE_OVER',
  'API_ANSWER',
  'API_UNREACHABLE',
  'KAFKA_UNREACHABLE',
  'COMMIT_FAILED',
  'REGISTRY_UNREACHABLE',
  'STATE_FOLDER',
  'STATE_DAMAGED',
]);

/**
 * Codes of errors that concern only one resource: if they are final, the other resources continue. For `KAFKA_REFUSED`,
 * {@link isResourceError} decides by the context of the error.
 */
const RESOURCE_CODES: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'API_STATUS',
  'CURSOR_UNREADABLE',
  'KEY_FIELDS',
  'POSITION',
  'REGISTRY_REFUSED',
  'TOPIC_CHANGED',
  'TOPIC_SETTINGS',
  'VALUE_UNREADABLE',
]);

/** HTTP statuses below 500 after which a request is retried: request timeout, conflict, locked, too early, too many requests. */
export const RETRYABLE_STATUSES: ReadonlySet<number> = new Set([408, 409, 423, 425, 429]);

/**
 * Whether an error is temporary, so that a retry may succeed:
 *
 * - CellarstreamErrors with `canPass` in the context: its value decides.
 * - Other CellarstreamErrors with the code `API_STATUS`: temporary for the HTTP statuses 5xx, 408, 409, 423, 425 and 429.
 * - All other CellarstreamErrors: the code decides.
 * - Errors of other classes: temporary if they are network errors or timeouts of Node, `fetch` or undici.
 */
export function isRetryable(error: unknown): boolean {
  if (!(error instanceof CellarstreamError)) return hasCode(error, NETWORK_CODES);
  if (typeof error.context.canPass === 'boolean') return error.context.canPass;
  if (error.code !== 'API_STATUS') return RETRYABLE_CODES.has(error.code);
  const status = Number(error.context.status);
  return status >= 500 || RETRYABLE_STATUSES.has(status);
}

/**
 * Whether an error of a request to the API is temporary: as {@link isRetryable} decides, but redirects and 404 are temporary, too, unless
 * `canPass` is false. Gateways send them while the API is being replaced.
 */
export function isRetryableAtApi(error: unknown): boolean {
  if (isRetryable(error)) return true;
  if (!(error instanceof CellarstreamError) || error.code !== 'API_STATUS') return false;
  if (error.context.canPass === false) return false;
  const status = Number(error.context.status);
  return status === 404 || (status >= 300 && status < 400);
}

/**
 * Whether a final error concerns only one resource, so that the other resources can continue. An error with the code `KAFKA_REFUSED`
 * concerns one resource if its context has `concerns: 'topic'`.
 */
export function isResourceError(error: unknown): boolean {
  if (!(error instanceof CellarstreamError)) return false;
  if (error.code === 'KAFKA_REFUSED') return error.context.concerns === 'topic';
  return RESOURCE_CODES.has(error.code);
}

/** Returns an error's message and those of its causes on one line: at most four messages, without repetitions. */
export function describeError(error: unknown): string {
  const parts: string[] = [];
  for (let at = error; at !== undefined && at !== null && parts.length < 4;) {
    const text =
      at instanceof Error
        ? at.message || codeOf(at) || at.name
        : typeof at === 'string'
          ? at
          : JSON.stringify(at);
    if (!parts.some((part) => part.includes(text))) parts.push(text);
    at = at instanceof Error ? (at.cause ?? firstCause(at)) : undefined;
  }
  return parts.join(': ').replace(/\s+/g, ' ').trim();
}

function firstCause(error: Error): unknown {
  return 'errors' in error && Array.isArray(error.errors) ? error.errors[0] : undefined;
}

/** Returns the `code` of an error, such as that of an error of Node. Undefined if the error has none. */
export function codeOf(error: unknown): string | undefined {
  const code = (error as { readonly code?: unknown } | null)?.code;
  return typeof code === 'string' ? code : undefined;
}

/**
 * Error codes of Node and undici for a server that can't be reached, does not respond, or closes the connection. Codes of failed TLS
 * handshakes are not included: an operator must resolve them.
 */
const NETWORK_CODES: ReadonlySet<unknown> = new Set([
  ...['EAI_AGAIN', 'ENOTFOUND', 'ENETDOWN', 'ENETUNREACH', 'EHOSTDOWN', 'EHOSTUNREACH'],
  ...['ECONNREFUSED', 'ECONNABORTED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT'],
  ...['UND_ERR_CONNECT_TIMEOUT', 'UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT'],
  'UND_ERR_SOCKET',
]);
/** undici's error codes for response headers, or a part of the body, that did not arrive in time. */
const RESPONSE_TIMEOUT_CODES: ReadonlySet<unknown> = new Set([
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
]);

/** Whether an error means that a response, or the rest of it, did not arrive in time. undici's connect timeout is not included. */
export function isTimeout(error: unknown): boolean {
  return hasCode(error, RESPONSE_TIMEOUT_CODES);
}

/** Whether an error or one of its causes has one of `codes` or is a `TimeoutError`. At most `causes` errors of the chain are examined. */
function hasCode(error: unknown, codes: ReadonlySet<unknown>, causes = 4): boolean {
  if (!(error instanceof Error) || causes === 0) return false;
  if (error.name === 'TimeoutError' || ('code' in error && codes.has(error.code))) return true;
  // `fetch` throws an error `fetch failed`, and only its cause has the reason.
  return hasCode(error.cause, codes, causes - 1);
}
