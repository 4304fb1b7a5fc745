import { CellarstreamError } from '../../core/errors.ts';
import { objectIn } from '../../core/json-object.ts';
import { where } from './http.ts';
import type { HttpAnswer } from './http.ts';

/** A token, and how long it is good for. */
export interface Token {
  /** The JWT, as it is sent. */
  readonly text: string;
  /** When it was asked for: ms, on the scheduler's clock. Its life is counted from here. */
  readonly askedAt: number;
  /** Milliseconds from `askedAt` for which the server takes it. */
  readonly lifeMs: number;
  /** The server's clock at `askedAt`, never later: ms since the epoch; undefined if it did not tell. */
  readonly serverTime: number | undefined;
}

/** Life of a token by the API's documentation, in ms. Assumed where the answer states none. */
const DOCUMENTED_LIFE_MS = 30 * 60_000;
/** A shorter life is believed only if nothing else in the answer says more: clocks that disagree look like this. */
const LEAST_LIFE_MS = 10_000;
/** A life that is shorter than a request may take can't be used, so it is not believed. */
const LEAST_USABLE_MS = 2_000;
/** Longest life that is believed: a token is renewed at least once a day, whatever it claims. */
const MAX_LIFE_MS = 24 * 60 * 60_000;
/** Milliseconds in the units in which `expiresIn` is sent: the documented one first, then s and us. */
const UNITS_MS = [1, 1_000, 0.001] as const;
/** A JWT's times are in seconds; a larger number, which would be beyond the year 5000, is in milliseconds. */
const LARGEST_SECONDS = 1e11;
/** Characters that an `Authorization` header can hold. */
const SENDABLE = /^[\x21-\x7e]+$/;

/**
 * The token in a login's answer.
 *
 * @param askedAt when the login was sent, in ms on the scheduler's clock.
 * @param elapsedMs from then until the answer was read.
 * @throws CellarstreamError `API_ANSWER` without a token that can be sent.
 */
export function tokenIn(url: URL, answer: HttpAnswer, askedAt: number, elapsedMs: number): Token {
  const body = objectIn(answer.text);
  const text = sendable(url, body?.accessToken);
  const { exp, iat } = claimsOf(text);
  const stamp = answer.date ?? iat;
  const serverTime = stamp === undefined ? undefined : Math.floor(stamp - elapsedMs);
  return { text, askedAt, serverTime, lifeMs: lifeOf(exp, [iat, answer.date], body?.expiresIn) };
}

/** The token as a header holds it: without white space around it, and without a scheme of its own. */
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

/** The times in a JWT, in ms since the epoch. Its signature is the server's business. */
function claimsOf(token: string): { exp: number | undefined; iat: number | undefined } {
  const claims = objectIn(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'));
  const ms = (claim: unknown) => {
    if (typeof claim !== 'number') return undefined;
    return claim > LARGEST_SECONDS ? claim : claim * 1_000;
  };
  return { exp: ms(claims?.exp), iat: ms(claims?.iat) };
}

/**
 * How long a token lives, in ms: by its own `exp`, from its `iat` or from the `Date` of the answer, whichever leaves less (a server
 * may give out a token that it issued earlier) unless that is too little to be true. Else `expiresIn`, in the first unit that
 * makes sense, and last what is documented.
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
