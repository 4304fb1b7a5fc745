import { Observable } from 'rxjs';
import type { Dispatcher } from 'undici';
import { httpError } from '../../core/http-error.ts';
import { CellarstreamError, isTimeout } from '../../core/errors.ts';
import type { ErrorContext } from '../../core/errors.ts';
import { USER_AGENT } from '../../core/version.ts';
import { RETRY_AFTER } from '../flow/backoff.ts';
import type { Retry } from '../flow/backoff.ts';
import { COSTS_NOTHING } from '../quota/token-bucket.ts';
import { readHttpResponse } from './response-reader.ts';
import type { PendingResponse } from './response-reader.ts';
import { Body } from './body.ts';
import type { BodyPool } from './body.ts';
import { inUtf8, UnknownCharset } from './charset.ts';
import { withoutCoding } from './content-coding.ts';

export interface HttpRequest {
  readonly dispatcher: Dispatcher;
  readonly method: 'GET' | 'POST';
  readonly url: URL;
  /** Address for error messages. Default `url`. Its query is never shown. */
  readonly shownUrl?: URL;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Maximum size of the response body, in bytes after decompression. */
  readonly maxBytes: number;
  /**
   * Pool for the buffer of the response body. The consumer of the response gives the buffer back. Without a pool the body gets a new
   * buffer.
   */
  readonly bodies?: BodyPool | undefined;
  /** Name of the setting that `url` comes from, for error messages. Default `API_BASE_URL`. */
  readonly setting?: string;
}

export interface HttpResponse {
  readonly status: number;
  /** The response body, decompressed, in UTF-8 without a byte order mark. */
  readonly body: Body;
  /** The body as a string, which is decoded on each access. */
  readonly text: string;
  /** The header fields by their names in lower case. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** The `Date` header in epoch ms; undefined if it is missing or malformed. */
  readonly date: number | undefined;
  /** The `Age` header in ms; undefined if it is missing, malformed or more than 7 days. */
  readonly ageMs: number | undefined;
  /**
   * The `Retry-After` header in ms, 10 minutes at most. Undefined if it is missing or malformed, or if it is a date but the `Date` header
   * is missing.
   */
  readonly retryAfterMs: number | undefined;
  /**
   * Origin of the address in the `Location` header. Undefined if it is the origin of the request, or the header is missing or malformed.
   */
  readonly redirectOrigin?: string | undefined;
}

/** Outcome of a finished request, as hooks receive it. */
export interface AnswerSeen {
  /** HTTP status of the response; undefined if no complete response arrived. */
  readonly status: number | undefined;
  /** Time from the request to the last byte of its response, or to its failure, in ms. */
  readonly elapsedMs: number;
  /** How long the request waited for the quota before it was sent, in ms. */
  readonly waitedMs: number;
  /** Whether the response says that the requested single record does not exist. Default false. */
  readonly isGone?: boolean;
}

/** Callbacks for the outcomes of requests, all optional. If one throws, the request fails with that error. */
export interface RequestHooks {
  /** Called when a request ends with a complete response, or with a failure before that. Not called for an aborted request. */
  readonly onAnswer?: (answer: AnswerSeen) => void;
  /** Called after each failed attempt that is retried, before the pause that precedes the retry. */
  readonly onRetry?: (retry: Retry) => void;
}

/**
 * Maximum `Retry-After`, in ms: a longer one is shortened to it. If it is too small, a rate-limited server gets requests too soon. If it is
 * too large, a wrong header stops a list.
 */
const MAX_RETRY_AFTER_MS = 10 * 60_000;

/**
 * Sends one HTTP request, emits the complete response, whatever its status, and completes. Unsubscribing aborts the request. Redirects are
 * not followed: they would send the token to another address.
 *
 * Errors with `API_UNREACHABLE` (refused, reset, timed out), `TLS_REFUSED`, or `API_ANSWER` (response truncated, incomplete, too large,
 * damaged, or in an unknown charset).
 */
export function exchange(request: HttpRequest): Observable<HttpResponse> {
  // Without operators: RxJS takes an eighth of the CPU time of a service at rest, and every request passes here.
  return new Observable((subscriber) => {
    const pending = sendRequest(request);
    decodedResponse(pending, request).then(
      (answer) => {
        subscriber.next(answer);
        subscriber.complete();
      },
      (error: unknown) => subscriber.error(classify(request, error)),
    );
    return pending.abort;
  });
}

function sendRequest(request: HttpRequest): PendingResponse {
  const { dispatcher, method, url, shownUrl = url, body, maxBytes, bodies } = request;
  const asked = {
    method,
    origin: url.origin,
    path: url.pathname + url.search,
    headers: {
      'user-agent': USER_AGENT,
      accept: 'application/json',
      'accept-encoding': 'gzip',
      'cache-control': 'no-cache', // caches must revalidate with the origin before they respond
      ...request.headers,
    },
    body: body ?? null,
  };
  return readHttpResponse(dispatcher, asked, {
    maxBytes,
    bodies,
    tooLargeError: () => {
      const message = `${loggableAddress(shownUrl)} sent more than ${maxBytes} bytes: a smaller PAGE_SIZE may help`;
      return new CellarstreamError('API_ANSWER', message);
    },
    // Called once the headers have arrived, so any error except a timeout means that the body is truncated.
    truncatedError: (cause) =>
      cause instanceof CellarstreamError || isTimeout(cause)
        ? cause
        : unreadableResponseError(shownUrl, cause),
  });
}

async function decodedResponse(
  pending: PendingResponse,
  { url, shownUrl = url, maxBytes }: HttpRequest,
): Promise<HttpResponse> {
  const { status, headers, body: sent } = await pending.response;
  let body: Body;
  try {
    if (status === 206 && isPart(single(headers['content-range']))) {
      throw new Error(
        'only a part of the content came (status 206), although all of it was requested',
      );
    }
    const plain = await withoutCoding(sent.bytes, all(headers['content-encoding']), maxBytes);
    body = inUtf8Body(sent, plain, all(headers['content-type']));
  } catch (cause) {
    sent.giveBack();
    throw unreadableResponseError(shownUrl, cause);
  }
  const servedAt = instant(single(headers.date) ?? '');
  const retryAfter = headerOf(headers, 'retry-after');
  return {
    status,
    body,
    get text() {
      return body.bytes.toString('utf8');
    },
    headers,
    date: servedAt,
    ageMs: cacheAge(single(headers.age)),
    retryAfterMs: retryAfter === undefined ? undefined : retryAfterOf(retryAfter, servedAt),
    redirectOrigin: otherOrigin(url, single(headers.location)),
  };
}

/**
 * Returns a response body in UTF-8, made from `plain`, the decompressed bytes of `sent`. If the returned body shares the memory of `sent`,
 * its `giveBack` releases that memory. Otherwise the memory is released at once.
 */
function inUtf8Body(sent: Body, plain: Buffer, contentType: string | undefined): Body {
  const body = inUtf8(plain, contentType);
  if (body.buffer === sent.bytes.buffer) return new Body(body, () => sent.giveBack());
  sent.giveBack();
  return new Body(body);
}

/**
 * Whether a `Content-Range` header says that the response contains only a part of the bytes. Ranges with a unit other than `bytes` are
 * ignored, as some servers count rows with them (PostgREST).
 */
function isPart(range: string | undefined): boolean {
  const [, first, last, length] = /^\s*bytes\s+(\d+)-(\d+)\/(\d+|\*)/i.exec(range ?? '') ?? [];
  if (first === undefined) return false;
  return Number(first) > 0 || (length !== '*' && Number(last) + 1 < Number(length));
}

function classify(request: HttpRequest, cause: unknown): CellarstreamError {
  if (cause instanceof CellarstreamError) return cause;
  const { url, shownUrl = url, setting = 'API_BASE_URL' } = request;
  return httpError(cause, {
    who: loggableAddress(shownUrl),
    protocol: url.protocol,
    address: setting,
    ca: 'API_CA_FILE',
    unreachable: 'API_UNREACHABLE',
  });
}

function unreadableResponseError(url: URL, cause: unknown): CellarstreamError {
  const isText = cause instanceof UnknownCharset;
  const why = isText ? `can't be read: ${cause.message}` : "was cut off or can't be unpacked";
  const message = `${loggableAddress(url)} sent an answer that ${why}`;
  return new CellarstreamError('API_ANSWER', message, isText ? {} : { cause });
}

/** Treatment of a response according to its status, where the API's description states one in place of the built-in rules. */
export interface DescribedStatus {
  /**
   * Reaction to a response with this status. Undefined: the built-in reaction to the status code.
   *
   * - `retry`: the request is repeated as after a temporary error;
   * - `quota`: the quota is used up, so the request is repeated as after a 429;
   * - `token`: it is repeated with a new token;
   * - `final`: it is not repeated.
   */
  readonly meaning?: 'retry' | 'quota' | 'token' | 'final' | undefined;
  /** How long to wait before a retry, in ms. Default: as the `Retry-After` header says. */
  readonly retryAfterMs?: number | undefined;
  /** Whether the response costs no quota. Default false. */
  readonly isFree?: boolean;
}

/** Returns the error for an unexpected status. The message leaves out the body, which may contain personal fields. */
export function statusError(
  url: URL,
  answer: HttpResponse,
  about: ErrorContext = {},
  setting = 'API_BASE_URL',
  described: DescribedStatus = {},
): Error {
  const { status, redirectOrigin } = answer;
  const { meaning, retryAfterMs = answer.retryAfterMs, isFree } = described;
  const context = {
    ...{ ...about, status },
    ...(retryAfterMs !== undefined && { [RETRY_AFTER]: retryAfterMs }),
    ...(isFree && { [COSTS_NOTHING]: true }),
    ...((meaning === 'retry' || meaning === 'final') && { canPass: meaning === 'retry' }),
  };
  const answered = `${loggableAddress(url)} answered ${status}`;
  if (meaning === 'quota') {
    const message = `${answered}: quota exceeded`;
    return new CellarstreamError('QUOTA_EXCEEDED', message, { context });
  }
  const isRedirect = redirectOrigin !== undefined && status >= 300 && status <= 399;
  const redirect = isRedirect
    ? `, a redirect to ${redirectOrigin}: redirects are not followed, so if the API has moved there, set ${setting} to its new address`
    : '';
  return new CellarstreamError('API_STATUS', answered + redirect, { context });
}

/**
 * Returns the error for a refusal (4xx) whose body is not JSON. Such a response comes from a firewall, a proxy or another server in front
 * of the API, so it says nothing about the API key or the token. The error is retryable.
 */
export function blockedError(
  url: URL,
  { status }: HttpResponse,
  context: ErrorContext = {},
): Error {
  // Some TLS servers respond to a plain-text request with a 400.
  const mayNeedTls = status === 400 && url.protocol === 'http:';
  const scheme = mayNeedTls ? 'whether the address must begin with https://, ' : '';
  return new CellarstreamError(
    'API_STATUS',
    `${loggableAddress(url)} answered ${status} without JSON: something in front of the API blocks this client, or the address is wrong. ` +
      `Check API_BASE_URL and API_LOGIN_URL, ${scheme}and whether a firewall of the API blocks the IP address or the user agent of this service`,
    { context: { ...context, status, canPass: true } },
  );
}

/** Whether the body is JSON, as all responses of the API itself are. */
export function isJson(answer: Pick<HttpResponse, 'text'>): boolean {
  try {
    JSON.parse(answer.text);
    return true;
  } catch {
    return false;
  }
}

function otherOrigin(url: URL, location: string | undefined): string | undefined {
  const target = location === undefined ? null : URL.parse(location, url.href);
  return target?.origin === url.origin ? undefined : target?.origin;
}

/**
 * Whether a status counts as success: any 2xx, as some servers send 201 for a login, 203 behind a gateway, or 206 with a page of a list.
 */
export function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}

/** Origin and path of a URL, without query and credentials. */
export function loggableAddress(url: URL): string {
  return url.origin + url.pathname;
}

function single(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header;
}

/** Joins the values of a repeated header with commas. */
function all(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header.join(', ') : header;
}

function instant(date: string): number | undefined {
  const ms = Date.parse(date);
  return Number.isNaN(ms) ? undefined : ms;
}

/**
 * Largest plausible `Age`, in seconds. A larger one is ignored. If this value is too small, a cached page counts as fresh. If it is too
 * large, a wrong header moves poll windows back by years.
 */
const MAX_AGE_S = 7 * 86_400;

function cacheAge(age: string | undefined): number | undefined {
  const seconds = age !== undefined && /^\d{1,9}$/.test(age.trim()) ? Number(age) : Infinity;
  return seconds <= MAX_AGE_S ? seconds * 1_000 : undefined;
}

/**
 * Converts a `Retry-After` header (a number of seconds, or a date) to a delay in ms, from 0 to 10 minutes. Undefined if the header is
 * malformed, or is a date and `date` is undefined.
 *
 * @param date `Date` header of the same response, in epoch ms: the delay until a date is counted from it.
 */
export function retryAfterOf(retryAfter: string, date: number | undefined): number | undefined {
  if (/^\d+(?:\.\d+)?$/.test(retryAfter)) return boundedWait(Number(retryAfter) * 1_000);
  // HTTP dates begin with a weekday; Date.parse would read many other texts as days, too.
  const until = /^[A-Z]/i.test(retryAfter) ? instant(retryAfter) : undefined;
  return until === undefined || date === undefined ? undefined : boundedWait(until - date);
}

/** Rounds a delay that a server requests up to whole ms, and limits it to the range from 0 to `MAX_RETRY_AFTER_MS` (10 minutes). */
export function boundedWait(ms: number): number {
  return Math.min(Math.max(Math.ceil(ms), 0), MAX_RETRY_AFTER_MS);
}

/** Returns the first value of a header; undefined if the response does not have it. */
export function headerOf(headers: HttpResponse['headers'], name: string): string | undefined {
  return single(headers[name.toLowerCase()])?.trim();
}
