/** Codes of all errors, which do not change between releases. Programs should match the code and never the text. */
export type ErrorCode =
  /** Wrong usage or settings; the message lists all wrong settings. */
  | 'SETTINGS'
  /** The login refused the API key. It is retried (`canPass` in the context) if the key was accepted before. */
  | 'API_KEY_REJECTED'
  /** The API responded with 401 or 403 to a list request; the token is tried again or renewed. */
  | 'TOKEN_REJECTED'
  /** The API responded with 429. */
  | 'QUOTA_EXCEEDED'
  /** The API responded with any other error status. With `canPass` in the context the request is retried whatever the status. */
  | 'API_STATUS'
  /** The API's response is malformed: truncated, not JSON, or not in the API's format of lists. */
  | 'API_ANSWER'
  /** A request was not sent, because the lease under which it was declared had expired. */
  | 'LEASE_OVER'
  /** A command got no permits for its API requests: the quota is used up, or the service that runs the account does not respond. */
  | 'NO_PERMITS'
  /** No response from the API: connection refused, reset or timed out. */
  | 'API_UNREACHABLE'
  /** No response from the brokers. */
  | 'KAFKA_UNREACHABLE'
  /** A transaction failed, or its outcome is unknown: the process must read back what was committed. */
  | 'COMMIT_FAILED'
  /** Another instance has claimed this account and fenced this one. */
  | 'FENCED'
  /** The brokers refused the credentials, rights or settings of this client. */
  | 'KAFKA_REFUSED'
  /** The key fields of a resource can't be determined, or differ from those of its published events. */
  | 'KEY_FIELDS'
  /** The cursor in Kafka can't be read by this version. */
  | 'CURSOR_UNREADABLE'
  /** A topic exists with settings that would lose data. */
  | 'TOPIC_SETTINGS'
  /** A topic was deleted or recreated, or its number of partitions has changed. */
  | 'TOPIC_CHANGED'
  /** A topic to read from does not exist, or a position in it does not exist or is not valid. */
  | 'POSITION'
  /** A message is not in the format of its topic; the context has its partition and offset. */
  | 'VALUE_UNREADABLE'
  /** No response from the schema registry. */
  | 'REGISTRY_UNREACHABLE'
  /** The schema registry refused a schema or the credentials of this client. */
  | 'REGISTRY_REFUSED'
  /**
   * A TLS connection to a server is impossible with these settings: its certificate is signed by an unknown authority or is for another
   * host, the server requires another client certificate, or its port does not speak TLS.
   */
  | 'TLS_REFUSED'
  /** Another process uses the state folder. */
  | 'STATE_LOCKED'
  /** The state folder can't be created, read or written, or its disk is full. */
  | 'STATE_FOLDER'
  /** The contents of the state folder are corrupt: they are restored from Kafka. */
  | 'STATE_DAMAGED'
  /** The services that the demo needs can't be started on this machine. */
  | 'SERVICES';

/** Details of an error for logs and programs, such as offsets, statuses and addresses; never a secret. */
export type ErrorContext = Readonly<Record<string, string | number | boolean | undefined>>;

/** Error class of this library: a stable code, a message of one line that says what to do, and details in `context`. */
export class CellarstreamError extends Error {
  override readonly name = 'CellarstreamError';
  readonly code: ErrorCode;
  readonly context: ErrorContext;

  constructor(
    code: ErrorCode,
    message: string,
    options: { readonly cause?: unknown; readonly context?: ErrorContext } = {},
  ) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined);
    this.code = code;
    this.context = options.context ?? {};
  }
}

/**
 * Codes of temporary errors, which are retried. `API_STATUS` is not among them, because its status decides, nor is `API_KEY_REJECTED`,
 * whose `canPass` says whether the key was accepted before.
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

/** Codes of final errors that stop one resource, until an operator resolves them; all other final errors concern the process. */
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

/**
 * HTTP statuses below 500 after which a request is retried: request timeout, conflict, locked, too early, too many requests. (A 429 of the
 * API becomes `QUOTA_EXCEEDED`.)
 */
export const RETRYABLE_STATUSES: ReadonlySet<number> = new Set([408, 409, 423, 425, 429]);

/**
 * Whether an error is temporary, so that a retry may succeed. This function and {@link isRetryableAtApi} are the only ones that decide it.
 * `canPass: true` in the context makes any CellarstreamError retryable. `API_STATUS` is retryable if its `status` concerns the server's
 * state and not the request: 5xx, 408, 409, 423, 425, 429; a 404 and redirects are final, because they rarely go away. For the other codes
 * the code decides. Of all other errors only network errors of Node, `fetch` and undici are retryable; the rest are bugs, and final.
 */
export function isRetryable(error: unknown): boolean {
  if (!(error instanceof CellarstreamError)) return hasCode(error, NETWORK_CODES);
  if (error.context.canPass === true) return true;
  if (error.code !== 'API_STATUS') return RETRYABLE_CODES.has(error.code);
  const status = Number(error.context.status);
  return status >= 500 || RETRYABLE_STATUSES.has(status);
}

/**
 * Whether an error of a request to the API is temporary: as `isRetryable`, and for redirects and 404 as well, which gateways send
 * while the API behind them is being replaced.
 */
export function isRetryableAtApi(error: unknown): boolean {
  if (isRetryable(error)) return true;
  if (!(error instanceof CellarstreamError) || error.code !== 'API_STATUS') return false;
  const status = Number(error.context.status);
  return status === 404 || (status >= 300 && status < 400);
}

/**
 * Whether a final error concerns one resource only, so that the other resources can continue. `KAFKA_REFUSED` does if its context has
 * `concerns: 'topic'`.
 */
export function isResourceError(error: unknown): boolean {
  if (!(error instanceof CellarstreamError)) return false;
  if (error.code === 'KAFKA_REFUSED') return error.context.concerns === 'topic';
  return RESOURCE_CODES.has(error.code);
}

/** Returns an error's message on one line for people, followed by the messages of its causes, four messages at most. */
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

/** The `code` of an error, such as Node's; undefined if it has none. */
export function codeOf(error: unknown): string | undefined {
  const code = (error as { readonly code?: unknown } | null)?.code;
  return typeof code === 'string' ? code : undefined;
}

/**
 * Error codes of Node and undici for a server that can't be reached, does not respond, or closes the connection. Codes of failed TLS
 * handshakes are not among them, because an operator must resolve those.
 */
const NETWORK_CODES: ReadonlySet<unknown> = new Set([
  ...['EAI_AGAIN', 'ENOTFOUND', 'ENETDOWN', 'ENETUNREACH', 'EHOSTDOWN', 'EHOSTUNREACH'],
  ...['ECONNREFUSED', 'ECONNABORTED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT'],
  ...['UND_ERR_CONNECT_TIMEOUT', 'UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT'],
  'UND_ERR_SOCKET',
]);
/** undici's codes for late headers, or a late chunk of the body. */
const RESPONSE_TIMEOUT_CODES: ReadonlySet<unknown> = new Set([
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
]);

/** Whether a response, or the rest of it, did not arrive in time. Timeouts of connecting do not count. */
export function isTimeout(error: unknown): boolean {
  return hasCode(error, RESPONSE_TIMEOUT_CODES);
}

/**
 * Whether an error or one of its causes has one of `codes`, or is a `TimeoutError`, as of `AbortSignal.timeout`. Causes are examined
 * because `fetch` throws `fetch failed` with the reason as its cause. At most `causes` errors of the chain are examined.
 */
function hasCode(error: unknown, codes: ReadonlySet<unknown>, causes = 4): boolean {
  if (!(error instanceof Error) || causes === 0) return false;
  if (error.name === 'TimeoutError' || ('code' in error && codes.has(error.code))) return true;
  return hasCode(error.cause, codes, causes - 1);
}
