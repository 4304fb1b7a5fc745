/** Node's code of an error; undefined where it has none. */
export function codeOf(error: unknown): string | undefined {
  const code = (error as { readonly code?: unknown } | null)?.code;
  return typeof code === 'string' ? code : undefined;
}

/** Node's and undici's codes of a server that is not there (yet), does not answer, or is gone in the middle of it. */
const CODES: ReadonlySet<unknown> = new Set([
  ...['EAI_AGAIN', 'ENOTFOUND', 'ENETDOWN', 'ENETUNREACH', 'EHOSTDOWN', 'EHOSTUNREACH'],
  ...['ECONNREFUSED', 'ECONNABORTED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT'],
  ...['UND_ERR_CONNECT_TIMEOUT', 'UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT'],
  'UND_ERR_SOCKET',
]);
/** `fetch` says `fetch failed`, and why in its cause. */
const MAX_CAUSES = 4;

/**
 * Whether it is the network's error, as `fetch`, undici and Node throw it, or that of a time that was set for
 * an answer (`AbortSignal.timeout`). One of TLS that can't be set up is none: somebody has to do something.
 */
export function isNetworkError(error: unknown, causes = MAX_CAUSES): boolean {
  if (!(error instanceof Error) || causes === 0) return false;
  if (error.name === 'TimeoutError' || ('code' in error && CODES.has(error.code))) return true;
  return isNetworkError(error.cause, causes - 1);
}

/** Codes of the time limits for an answer: those for its headers and for the time between two parts of its body. */
const ANSWER_TIMEOUTS: ReadonlySet<unknown> = new Set([
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
]);

/** Whether an answer, or the whole of it, did not come in time; connections that are not set up in time are another matter. */
export function isTimeout(error: unknown, causes = MAX_CAUSES): boolean {
  if (!(error instanceof Error) || causes === 0) return false;
  if (error.name === 'TimeoutError') return true;
  if ('code' in error && ANSWER_TIMEOUTS.has(error.code)) return true;
  return isTimeout(error.cause, causes - 1);
}
