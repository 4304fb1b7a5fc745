/** What can go wrong, by a code that stays the same from release to release. Match on the code, never on the text. */
export type ErrorCode =
  /** Wrong usage or settings; the message lists every setting that is wrong. */
  | 'SETTINGS'
  /** The login refused the API key. It can pass (`canPass` in the context) where it was accepted before. */
  | 'API_KEY_REJECTED'
  /** A list request was answered 401 or 403. */
  | 'TOKEN_REJECTED'
  /** The API answered 429. */
  | 'QUOTA_EXCEEDED'
  /** The API answered with a status that no rule covers. With `canPass` in the context it is tried again whatever the status. */
  | 'API_STATUS'
  /** The API's answer is not what its description promises: cut off, no JSON, not in the API's format of lists. */
  | 'API_ANSWER'
  /** A request was not sent: the time for which it had been declared was over. */
  | 'LEASE_OVER'
  /** Somebody else runs the account, or has used up its quota, and gives no permits for requests beside its own. */
  | 'NO_PERMITS'
  /** No answer from the API: connection refused, reset, timed out. */
  | 'API_UNREACHABLE'
  /** No answer from the brokers. */
  | 'KAFKA_UNREACHABLE'
  /** A transaction failed, or its outcome is unknown: what was committed must be read back. */
  | 'COMMIT_FAILED'
  /** A newer instance has taken over this account. */
  | 'FENCED'
  /** The brokers refused our credentials, rights or settings. */
  | 'KAFKA_REFUSED'
  /** What a resource's keys are made of can't be told, or is not what its events are keyed by. */
  | 'KEY_FIELDS'
  /** The cursor in Kafka can't be read by this version. */
  | 'CURSOR_UNREADABLE'
  /** A topic exists with settings that would lose data. */
  | 'TOPIC_SETTINGS'
  /** A topic has another number of partitions than before, was made anew, or is gone. */
  | 'TOPIC_CHANGED'
  /** A topic, or an offset in it, from which to read is not there. */
  | 'POSITION'
  /** A message is not in the format of its topic; the context has its place. */
  | 'VALUE_UNREADABLE'
  /** No answer from the schema registry. */
  | 'REGISTRY_UNREACHABLE'
  /** The schema registry refused a schema or our credentials. */
  | 'REGISTRY_REFUSED'
  /**
   * TLS with a server can't be set up by these settings: its certificate is by an unknown authority or for
   * another host, or its port speaks no TLS.
   */
  | 'TLS_REFUSED'
  /** Another process uses the state folder. */
  | 'STATE_LOCKED'
  /** The state folder can't be made, read or written, or its disk is full. */
  | 'STATE_FOLDER'
  /** What is stored in the state folder is not what was stored: it is read anew from Kafka. */
  | 'STATE_DAMAGED'
  /** The services of the demo can't be had on this machine. */
  | 'SERVICES';

/** What is known of the circumstances: offsets, statuses, addresses; never a secret. */
export type ErrorContext = Readonly<Record<string, string | number | boolean | undefined>>;

/** The one error of this library: a stable code, a line that says what to do, the circumstances. */
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
 * Codes that a later try can heal without anyone's doing. `API_STATUS` is decided by its status,
 * `API_KEY_REJECTED` by who knows whether the key has worked before.
 */
const PASSING: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
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
 * Codes that concern one resource: it can't go on until somebody does something, but the others can.
 * The rest of what can't pass concerns the process.
 */
const OF_ONE_RESOURCE: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'API_STATUS',
  'CURSOR_UNREADABLE',
  'KEY_FIELDS',
  'POSITION',
  'REGISTRY_REFUSED',
  'TOPIC_CHANGED',
  'TOPIC_SETTINGS',
  'VALUE_UNREADABLE',
]);

/** Timeout, conflict, locked, too early, too many; but a 429 of the API itself is `QUOTA_EXCEEDED`. */
export const PASSING_STATUSES: ReadonlySet<number> = new Set([408, 409, 423, 425, 429]);

/**
 * Decides, with {@link isRetryableAtApi}, whether to try again; nothing else does. Of errors that are not ours those of the network pass,
 * as `fetch` and undici throw them; the others are bugs, and final. Of statuses (`API_STATUS`, by the `status` in its context) those pass
 * that speak of the server's state and not of the request: 5xx, 408, 409, 423, 425, 429. A 404 and a redirect are final: what is not there,
 * or elsewhere, mostly stays so. `canPass` in the context overrides the status.
 */
export function isRetryable(error: unknown): boolean {
  if (!(error instanceof CellarstreamError)) return hasCode(error, NETWORK_CODES);
  if (error.context.canPass === true) return true;
  if (error.code !== 'API_STATUS') return PASSING.has(error.code);
  const status = Number(error.context.status);
  return status >= 500 || PASSING_STATUSES.has(status);
}

/**
 * The same of an API at an address that is known to be right: redirects and 404 pass too, which gateways
 * send while the API behind them is being replaced.
 */
export function isRetryableAtApi(error: unknown): boolean {
  if (isRetryable(error)) return true;
  if (!(error instanceof CellarstreamError) || error.code !== 'API_STATUS') return false;
  const status = Number(error.context.status);
  return status === 404 || (status >= 300 && status < 400);
}

/**
 * Whether other resources can go on after an error of one that can't pass. What Kafka refuses concerns
 * one where the context names what of Kafka it `concerns`: a `topic`.
 */
export function isOfOneResource(error: unknown): boolean {
  if (!(error instanceof CellarstreamError)) return false;
  if (error.code === 'KAFKA_REFUSED') return error.context.concerns === 'topic';
  return OF_ONE_RESOURCE.has(error.code);
}

/** An error's text on one line, with the texts of its causes: what a person should read. */
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
    at = at instanceof Error ? (at.cause ?? firstOf(at)) : undefined;
  }
  return parts.join(': ').replace(/\s+/g, ' ').trim();
}

/** Of several: also of those that a library gathers in a class of its own. */
function firstOf(error: Error): unknown {
  return 'errors' in error && Array.isArray(error.errors) ? error.errors[0] : undefined;
}

/** Node's code of an error; undefined where it has none. */
export function codeOf(error: unknown): string | undefined {
  const code = (error as { readonly code?: unknown } | null)?.code;
  return typeof code === 'string' ? code : undefined;
}

/**
 * Node's and undici's codes of a server that is not there (yet), does not answer, or is gone in the middle of it. TLS that can't be set
 * up is none of these: somebody has to do something.
 */
const NETWORK_CODES: ReadonlySet<unknown> = new Set([
  ...['EAI_AGAIN', 'ENOTFOUND', 'ENETDOWN', 'ENETUNREACH', 'EHOSTDOWN', 'EHOSTUNREACH'],
  ...['ECONNREFUSED', 'ECONNABORTED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT'],
  ...['UND_ERR_CONNECT_TIMEOUT', 'UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT'],
  'UND_ERR_SOCKET',
]);
/** Codes of the time limits for an answer: those for its headers and for the time between two parts of its body. */
const ANSWER_TIMEOUTS: ReadonlySet<unknown> = new Set([
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
]);

/** Whether an answer, or the whole of it, did not come in time; connections that are not set up in time are another matter. */
export function isTimeout(error: unknown): boolean {
  return hasCode(error, ANSWER_TIMEOUTS);
}

/**
 * Whether an error or one of its causes has one of these codes, or is the time-out of `AbortSignal.timeout`. (`fetch` says `fetch
 * failed`, and why in its cause.)
 */
function hasCode(error: unknown, codes: ReadonlySet<unknown>, causes = 4): boolean {
  if (!(error instanceof Error) || causes === 0) return false;
  if (error.name === 'TimeoutError' || ('code' in error && codes.has(error.code))) return true;
  return hasCode(error.cause, codes, causes - 1);
}
