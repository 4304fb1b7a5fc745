import { Observable } from 'rxjs';
import type { Dispatcher } from 'undici';
import { httpError } from '../../core/connection-error.ts';
import { CellarstreamError, isTimeout } from '../../core/errors.ts';
import type { ErrorContext } from '../../core/errors.ts';
import { USER_AGENT } from '../../core/version.ts';
import { RETRY_AFTER } from '../flow/backoff.ts';
import type { Retry } from '../flow/backoff.ts';
import { readAnswer } from './answer-reader.ts';
import type { Reading } from './answer-reader.ts';
import { Body } from './body.ts';
import type { BodyPool } from './body.ts';
import { inUtf8, UnknownCharset } from './charset.ts';
import { withoutCoding } from './content-coding.ts';

/** One request of {@link exchange}. */
export interface HttpRequest {
  readonly dispatcher: Dispatcher;
  readonly method: 'GET' | 'POST';
  readonly url: URL;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Most bytes of an answer's body, after decompression. */
  readonly maxBytes: number;
  /** Where the memory for the body is taken from, and given back to by whoever deals with it. Default new memory. */
  readonly bodies?: BodyPool | undefined;
  /** The setting of the address, for errors. Default `API_BASE_URL`. */
  readonly setting?: string;
}

/** An answer of whatever status, read to its end. */
export interface HttpAnswer {
  readonly status: number;
  /** In UTF-8, without a byte order mark. */
  readonly body: Body;
  readonly text: string;
  /** The `Date` header, ms since the epoch; undefined when it is not sent or not a date. */
  readonly date: number | undefined;
  /** The `Age` header in ms: how long ago a cache had the answer from the API; undefined when it is not sent or not plausible. */
  readonly ageMs: number | undefined;
  /** `Retry-After` in milliseconds from now; undefined when it is not sent or not readable. */
  readonly retryAfterMs: number | undefined;
  /** Origin of the `Location` header where that is another one than the request's; undefined without one. */
  readonly redirectOrigin?: string | undefined;
}

/** A request that has ended, as it is told to those who count. */
export interface AnswerSeen {
  /** Of its answer; undefined when there was none, or not whole. */
  readonly status: number | undefined;
  /** From the request to the last byte of its answer, or until it failed, in milliseconds. */
  readonly elapsedMs: number;
  /** How long it had waited for the quota before, in milliseconds. */
  readonly waitedMs: number;
}

/** What is told of requests. All optional; what one throws is an error of the request. */
export interface RequestHooks {
  /** Told of every request as it ends, refused ones and those without an answer included. */
  readonly onAnswer?: (answer: AnswerSeen) => void;
  /** Told of every try that failed and is made again. */
  readonly onRetry?: (retry: Retry) => void;
}

/** Longest pause taken from a `Retry-After`: past that a server's word is not believed. */
const MAX_RETRY_AFTER_MS = 10 * 60_000;

/**
 * One HTTP exchange: emits the whole answer, whatever its status, and completes. Unsubscribing aborts it. Redirects are not followed: they
 * would carry the token elsewhere.
 *
 * Errors with `API_UNREACHABLE` (refused, reset, timed out), `TLS_REFUSED`, or `API_ANSWER` (cut off, too large, in an unknown charset).
 */
export function exchange(request: HttpRequest): Observable<HttpAnswer> {
  return new Observable((subscriber) => {
    const reading = read(request);
    let isUnderWay = true;
    void unpackedAnswer(reading, request).then(
      (answer) => {
        isUnderWay = false;
        subscriber.next(answer);
        subscriber.complete();
      },
      (error: unknown) => {
        if (!isUnderWay) return;
        isUnderWay = false;
        subscriber.error(classify(request, error));
      },
    );
    return () => {
      if (!isUnderWay) return;
      isUnderWay = false;
      reading.abort();
    };
  });
}

function read({ dispatcher, method, url, headers, body, maxBytes, bodies }: HttpRequest): Reading {
  const asked = {
    method,
    origin: url.origin,
    path: url.pathname + url.search,
    headers: {
      'user-agent': USER_AGENT,
      accept: 'application/json',
      'accept-encoding': 'gzip',
      'cache-control': 'no-cache', // a cache may only answer with what the origin has just confirmed
      ...headers,
    },
    body: body ?? null,
  };
  return readAnswer(dispatcher, asked, {
    maxBytes,
    bodies,
    tooLarge: () => {
      const advice = 'a smaller PAGE_SIZE may help';
      return new CellarstreamError(
        'API_ANSWER',
        `${where(url)} sent more than ${maxBytes} bytes: ${advice}`,
      );
    },
    // The headers were there: whatever ends the body early but time has cut an answer off.
    cutOff: (cause) =>
      cause instanceof CellarstreamError || isTimeout(cause) ? cause : unreadable(url, cause),
  });
}

async function unpackedAnswer(
  reading: Reading,
  { url, maxBytes }: HttpRequest,
): Promise<HttpAnswer> {
  const { status, headers, body: sent } = await reading.answer;
  if (status === 206 && isPart(single(headers['content-range']))) {
    sent.giveBack();
    throw unreadable(url, new Error('206 with a part of the answer, which was not asked for'));
  }
  let body: Body;
  try {
    const plain = await withoutCoding(sent.bytes, all(headers['content-encoding']), maxBytes);
    body = inUtf8Body(sent, plain, all(headers['content-type']));
  } catch (cause) {
    sent.giveBack();
    throw unreadable(url, cause);
  }
  const date = single(headers.date);
  const retryAfter = single(headers['retry-after']);
  return {
    status,
    body,
    get text() {
      return body.bytes.toString('utf8');
    },
    date: date === undefined ? undefined : instant(date),
    ageMs: cacheAge(single(headers.age)),
    retryAfterMs: retryAfter === undefined ? undefined : pause(retryAfter, date),
    redirectOrigin: otherOrigin(url, single(headers.location)),
  };
}

/** The decompressed body in UTF-8; the memory of `sent` is given back with it, or at once if the bytes stand elsewhere now. */
function inUtf8Body(sent: Body, plain: Buffer, contentType: string | undefined): Body {
  const body = inUtf8(plain, contentType);
  if (body.buffer === sent.bytes.buffer) return new Body(body, () => sent.giveBack());
  sent.giveBack();
  return new Body(body);
}

/** Whether a `Content-Range` tells of bytes that are missing; ranges of other units are pages of lists (PostgREST counts rows). */
function isPart(range: string | undefined): boolean {
  const [, first, last, length] = /^\s*bytes\s+(\d+)-(\d+)\/(\d+|\*)/i.exec(range ?? '') ?? [];
  if (first === undefined) return false;
  return Number(first) > 0 || (length !== '*' && Number(last) + 1 < Number(length));
}

function classify(request: HttpRequest, cause: unknown): CellarstreamError {
  if (cause instanceof CellarstreamError) return cause;
  const { url, setting = 'API_BASE_URL' } = request;
  return httpError(cause, {
    who: where(url),
    protocol: url.protocol,
    address: setting,
    ca: 'API_CA_FILE',
    unreachable: 'API_UNREACHABLE',
  });
}

function unreadable(url: URL, cause: unknown): CellarstreamError {
  const isText = cause instanceof UnknownCharset;
  const why = isText ? `can't be read: ${cause.message}` : "was cut off or can't be unpacked";
  const message = `${where(url)} sent an answer that ${why}`;
  return new CellarstreamError('API_ANSWER', message, isText ? {} : { cause });
}

/** The error that speaks of an answer's status. Its body stays out: it may hold personal fields. */
export function statusError(
  url: URL,
  answer: HttpAnswer,
  context: ErrorContext = {},
  setting = 'API_BASE_URL',
): Error {
  const { status, retryAfterMs } = answer;
  const known = {
    ...context,
    status,
    ...(retryAfterMs === undefined ? {} : { [RETRY_AFTER]: retryAfterMs }),
  };
  if (status === 429) {
    return new CellarstreamError('QUOTA_EXCEEDED', `${where(url)} answered 429: quota exceeded`, {
      context: known,
    });
  }
  const { redirectOrigin } = answer;
  const redirect =
    redirectOrigin === undefined || status < 300 || status > 399
      ? ''
      : `, a redirect to ${redirectOrigin}: redirects are not followed, so if the API has moved there, set ${setting} to its new address`;
  return new CellarstreamError('API_STATUS', `${where(url)} answered ${status}${redirect}`, {
    context: known,
  });
}

/**
 * The error for a refusal (4xx) whose body is not JSON. The API answers in JSON, so a firewall, a proxy or another server in front of it
 * has refused the request: that says nothing about the API key or the token, and can pass.
 */
export function blockedError(url: URL, { status }: HttpAnswer, context: ErrorContext = {}): Error {
  // A port that speaks TLS answers plain text with a 400 of its own, if it answers.
  const scheme =
    status === 400 && url.protocol === 'http:'
      ? 'whether the address must begin with https://, '
      : '';
  return new CellarstreamError(
    'API_STATUS',
    `${where(url)} answered ${status} without JSON: something in front of the API blocks this client, or the address is wrong. ` +
      `Check API_BASE_URL and API_LOGIN_URL, ${scheme}and whether a firewall there allows this IP address and user agent`,
    { context: { ...context, status, canPass: true } },
  );
}

/** Whether the body is JSON, as every answer of the API itself is. */
export function isJson(answer: Pick<HttpAnswer, 'text'>): boolean {
  try {
    JSON.parse(answer.text);
    return true;
  } catch {
    return false;
  }
}

function otherOrigin(url: URL, location: string | undefined): string | undefined {
  if (location === undefined || !URL.canParse(location, url.href)) return undefined;
  const { origin } = new URL(location, url);
  return origin === url.origin ? undefined : origin;
}

/** Any 2xx: some servers answer 201 to a login, 203 behind a gateway, and 206 with a page of a list. */
export function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}

/** An address fit for a log line: no query, no credentials. */
export function where(url: URL): string {
  return url.origin + url.pathname;
}

function single(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header;
}

/** A header that may be sent more than once, as one list. */
function all(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header.join(', ') : header;
}

function instant(date: string): number | undefined {
  const ms = Date.parse(date);
  return Number.isNaN(ms) ? undefined : ms;
}

/** Longest plausible `Age`, in seconds: an answer that says more has a wrong header, and would move windows back by years. */
const MAX_AGE_S = 7 * 86_400;

function cacheAge(age: string | undefined): number | undefined {
  const seconds = age !== undefined && /^\d{1,9}$/.test(age.trim()) ? Number(age) : Infinity;
  return seconds <= MAX_AGE_S ? seconds * 1_000 : undefined;
}

/** Seconds, or a date to be held against the server's own clock. */
function pause(retryAfter: string, date: string | undefined): number | undefined {
  // Date.parse takes `1.5` for a day in 2001: a date names its weekday.
  const until = /^[A-Z]/i.test(retryAfter) ? instant(retryAfter) : undefined;
  const from = date === undefined ? undefined : instant(date);
  const ms = /^\d+$/.test(retryAfter)
    ? Number(retryAfter) * 1_000
    : until !== undefined && from !== undefined
      ? until - from
      : undefined;
  return ms === undefined ? undefined : Math.min(Math.max(ms, 0), MAX_RETRY_AFTER_MS);
}
