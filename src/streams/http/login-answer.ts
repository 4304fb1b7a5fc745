import { CellarstreamError } from '../../core/errors.ts';
import { objectIn } from '../../core/json-object.ts';
import { where } from './http.ts';
import type { HttpAnswer } from './http.ts';

/** An access token and its lifetime. */
export interface Token {
  /** The JWT, as it is sent. */
  readonly text: string;
  /** When the login request was sent, in ms on the scheduler's clock. The token's life is counted from here. */
  readonly askedAt: number;
  /** How long the server accepts the token, in ms from `askedAt`. */
  readonly lifeMs: number;
  /** Lower bound of the server's time at `askedAt`, in ms since the epoch; undefined without a `Date` header or an `iat` claim. */
  readonly serverTime: number | undefined;
}

/** Lifetime of a token according to the API's documentation, in ms. Assumed where the answer states none. */
const DOCUMENTED_LIFE_MS = 30 * 60_000;
/** Shortest lifetime that is believed at once, in ms. A shorter one usually comes from clocks that disagree, so it is used only if the answer shows no longer one. */
const LEAST_LIFE_MS = 10_000;
/** Shortest lifetime that is believed at all, in ms: a token with less may expire before a request with it arrives. */
const LEAST_USABLE_MS = 2_000;
/** Longest lifetime that is used, in ms: a token is renewed at least once a day. */
const MAX_LIFE_MS = 24 * 60 * 60_000;
/** Units in which servers send `expiresIn`, in ms, in the order of trial: milliseconds as documented, seconds, microseconds. */
const UNITS_MS = [1, 1_000, 0.001] as const;
/** Largest time of a JWT that is read as seconds. A larger one would be after the year 5000, so it is in milliseconds. */
const LARGEST_SECONDS = 1e11;
/** Characters that an `Authorization` header can hold. */
const SENDABLE = /^[\x21-\x7e]+$/;

/**
 * Reads the token from the answer to a login.
 *
 * @param url Address of the login, for errors.
 * @param askedAt When the login was sent, in ms on the scheduler's clock.
 * @param elapsedMs Time from then until the answer was read.
 * @throws CellarstreamError `API_ANSWER` when the answer has no token, or one that a header can't hold.
 */
export function tokenIn(url: URL, answer: HttpAnswer, askedAt: number, elapsedMs: number): Token {
  const body = objectIn(answer.text);
  const text = sendable(url, body?.accessToken);
  const { exp, iat } = claimsOf(text);
  const stamp = answer.date ?? iat;
  const serverTime = stamp === undefined ? undefined : Math.floor(stamp - elapsedMs);
  return { text, askedAt, serverTime, lifeMs: lifeOf(exp, [iat, answer.date], body?.expiresIn) };
}

/** The token as an `Authorization` header holds it: without surrounding white space and without a `Bearer` prefix. */
function sendable(url: URL, accessToken: unknown): string {
  const text = typeof accessToken === 'string' ? accessToken.trim().replace(/^Bearer\s+/i, '') : '';
  const failed = (what: string) =>
    new CellarstreamError('API_ANSWER', `${where(url)} sent ${what}`);
  if (text === '') throw failed('no accessToken');
  if (!SENDABLE.test(text)) {
    throw failed('an accessToken with characters that a header can not hold, such as spaces');
  }
  return text;
}

/** The times in a JWT, in ms since the epoch; undefined where it has none. The signature is not verified: only the server can. */
function claimsOf(token: string): { exp: number | undefined; iat: number | undefined } {
  const claims = objectIn(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'));
  const ms = (claim: unknown) => {
    if (typeof claim !== 'number') return undefined;
    return claim > LARGEST_SECONDS ? claim : claim * 1_000;
  };
  return { exp: ms(claims?.exp), iat: ms(claims?.iat) };
}

/**
 * A token's lifetime in ms. It is the time to its own `exp`, counted from its `iat` or from the `Date` of the answer: the shorter one, as a
 * server may hand out a token that it issued earlier, unless that is implausibly short. Without a usable `exp` it is `expiresIn`, in the
 * first unit that gives a plausible value, or the documented lifetime.
 *
 * @param from `iat` and `Date`, in ms since the epoch.
 */
function lifeOf(
  exp: number | undefined,
  from: readonly (number | undefined)[],
  expiresIn: unknown,
): number {
  const left = from.map((at) => (exp ?? NaN) - (at ?? NaN)).filter((ms) => ms >= LEAST_USABLE_MS);
  const believable = left.filter((ms) => ms >= LEAST_LIFE_MS);
  if (believable.length > 0) return Math.min(...believable, MAX_LIFE_MS);
  if (left.length > 0) return Math.max(...left);
  return expiresInMs(expiresIn) ?? DOCUMENTED_LIFE_MS;
}

function expiresInMs(expiresIn: unknown): number | undefined {
  const value = typeof expiresIn === 'string' ? Number(expiresIn) : expiresIn;
  if (typeof value !== 'number') return undefined;
  return UNITS_MS.map((unit) => value * unit).find(
    (ms) => ms >= LEAST_LIFE_MS && ms <= MAX_LIFE_MS,
  );
}
