// Decides which token of an account is sent, when a refused token is renewed, and how often logins may be made.

import type { Token } from './login.ts';
import { FIRST_PAUSE_MS, isTooOld, TokenEvidence } from './token-evidence.ts';
import type { TokenOutcome, TokenUse } from './token-evidence.ts';

export type { RequestTimes, TokenOutcome, TokenUse } from './token-evidence.ts';

/** Decision about a failed request: whether and when it is retried, and whether an early login is made. */
export interface TokenVerdict {
  /** Whether the list or the query, not the token, is the cause of the failure, so that a retry is useless. */
  readonly isFinal: boolean;
  /** Pause before the list's next attempt, in ms. If undefined, the caller's back-off decides. */
  readonly pauseMs: number | undefined;
  readonly logsIn: boolean;
  /**
   * Creates the error for the failed request. `who` is the address of the request as shown in messages, `status` the HTTP status of the
   * response. If this function is undefined, the caller creates the error.
   */
  readonly errorOf?: (who: string, status: number) => Error;
}

/**
 * Margin before the end of a token's lifetime, in ms: from then on, the token counts as expired. The margin is needed because lifetimes are
 * in whole seconds and requests take time. It is smaller for short lifetimes: see {@link MARGIN_PART}.
 */
const MARGIN_MS = 2_000;
/** Largest fraction of a token's lifetime that the margin may take: tokens with a lifetime below 40 s have less than `MARGIN_MS`. */
const MARGIN_PART = 0.05;
/** How long all requests with a token must fail before it is replaced early, in ms. If it is too small, a short outage causes logins. */
const FAILING_MS = 5_000;
/**
 * Number of consecutive tokens that a list must refuse before access to the list counts as forbidden. Fewer suffice if other requests show
 * that the token is valid. If the number is too small, a login server that issues a few invalid tokens stops the list.
 */
const MAX_REFUSED_TOKENS = 3;

type Refusal = Exclude<TokenOutcome, 'worked' | 'failed'>;

export const GO_ON: TokenVerdict = { isFinal: false, pauseMs: undefined, logsIn: false };
export const FINAL: TokenVerdict = { isFinal: true, pauseMs: undefined, logsIn: false };

/**
 * Holds the tokens of one account, and decides from the outcomes of requests which token is sent, when an early login is made, and when the
 * list is the cause of a failure.
 *
 * Two tokens are held: the newest, and the previous one if it worked. The previous token is held until it expires or is refused, or the
 * newest works.
 *
 * - A token that has not worked yet may be refused because some replicas of the server learn of it only a few seconds later. A list that
 *   refuses it tries it again after 1, 2 and 4 s. Only after that is another login made.
 * - A token that worked for a list and is then refused by the same list is dead, unless it has worked for a request that was sent later.
 * - If a list refuses a token that other lists accept, the account has no right to read the list. With status 401 this holds only once a
 *   second token was refused, too.
 * - If a list refuses the token for queries by date or key, but accepts it for other queries, the account has no right to such queries.
 * - Other failures may be due to the token, too: if all requests with it fail for five seconds, or one fails with a status such as 400. A
 *   new login then shows whether the token was the cause.
 */
export class TokenLife {
  readonly #pace: LoginPace;
  #newest: TokenEvidence | undefined;
  #previous: TokenEvidence | undefined;
  #isLoggingIn = false;
  #isLoginWanted = false;
  /** For each list, the number of consecutive tokens that it has refused (`tokens`), and the newest of them (`last`). */
  readonly #refusals = new Map<string, { readonly tokens: number; readonly last: TokenEvidence }>();

  constructor(pace: LoginPace) {
    this.#pace = pace;
  }

  get newest(): Token | undefined {
    return this.#newest?.token;
  }

  /** Whether the newest login returned the same token as the login before. */
  get isRepeated(): boolean {
    return this.#newest?.isRepeated === true;
  }

  /** Whether an early login (a login before the token expires) was decided on and has not succeeded yet. */
  get isLoginWanted(): boolean {
    return this.#isLoginWanted;
  }

  loginBegins(): void {
    this.#isLoggingIn = true;
  }

  loginEnds(): void {
    this.#isLoggingIn = false;
  }

  loggedIn(token: Token, now: number): void {
    this.#isLoginWanted = false;
    this.#isLoggingIn = false;
    const before = this.#newest;
    if (before?.token.text === token.text) return before.renew(token);
    const isGood = before?.state === 'proven' && before.failingSince === undefined;
    if (isGood && !isExpired(before.token, now)) this.#previous = before;
    this.#newest = new TokenEvidence(token);
  }

  current(now: number): Token | undefined {
    const [newest, previous] = [this.#newest, this.#usablePrevious(now)];
    const isUsable =
      newest !== undefined && newest.state !== 'dead' && !isExpired(newest.token, now);
    if (previous && (!isUsable || newest.isResting(now))) return previous.token;
    return isUsable ? newest.token : undefined;
  }

  report(use: TokenUse, outcome: TokenOutcome, now: number): TokenVerdict {
    const newest = this.#newest;
    if (use.token.text !== newest?.token.text) return this.#reportOld(use, outcome, now);
    if (outcome === 'worked') return this.#works(newest, use, now);
    // Final at once only for queries by date or key, because the list can be read without them.
    const mayBeQuery = outcome === 'failed-for-good' && use.isSelective === true;
    if (mayBeQuery && newest.isFineBesideFailures(use, now)) return FINAL;
    newest.recordFailure(use, now);
    if (outcome === 'failed') return this.#fails(newest, use, now);
    const verdict = this.#refuses(newest, use, outcome, now);
    if (mayBeQuery && verdict.isFinal) newest.recordQueryFailure(use, now);
    return verdict;
  }

  #works(newest: TokenEvidence, use: TokenUse, now: number): TokenVerdict {
    newest.recordSuccess(use, now);
    this.#previous = undefined;
    this.#refusals.delete(use.list);
    this.#pace.tokenWorked();
    return GO_ON;
  }

  /**
   * Handles the outcome of a request with an older token than the newest. After a refusal, or a status such as 400, that older token is not
   * used again.
   */
  #reportOld({ token, list }: TokenUse, outcome: TokenOutcome, now: number): TokenVerdict {
    if (outcome === 'failed') return GO_ON;
    if (outcome === 'worked') {
      this.#refusals.delete(list);
      return GO_ON;
    }
    if (token.text === this.#previous?.token.text) this.#previous = undefined;
    return retryAfter(this.#newest?.isResting(now) ? FIRST_PAUSE_MS : 0);
  }

  /**
   * Handles a retryable failure of a request with the newest token. The verdict asks for an early login if all requests with the token have
   * been failing for `FAILING_MS` and another login is allowed. The pause before the retry is left to the caller's back-off.
   */
  #fails(newest: TokenEvidence, use: TokenUse, now: number): TokenVerdict {
    const { failingSince, state } = newest;
    // Recorded as a refusal, so that requests use the previous token for a while: it shows whether the new token is the cause.
    if (state !== 'proven' && this.#usablePrevious(now)) newest.recordRefusal(use, now);
    const isSuspect = failingSince !== undefined && now - failingSince >= FAILING_MS;
    return isSuspect && this.#mayLogIn('failed', now) ? this.#logsIn(GO_ON, now) : GO_ON;
  }

  /**
   * Decides what follows a failed request with the newest token. The server refused the token (with 401 or 403, for example), or responded
   * with a status, such as 400, that a retry with this token would get again. Returns {@link FINAL} if the list or the query is the cause.
   * Otherwise the verdict says when the request is retried, and whether a login is made.
   */
  #refuses(newest: TokenEvidence, use: TokenUse, outcome: Refusal, now: number): TokenVerdict {
    const isRefusal = outcome !== 'failed-for-good';
    const isKnown = newest.hasWorkedFor(use.list);
    const isAlive = newest.hasWorkedElsewhere(use);
    const trouble = newest.recordRefusal(use, now);
    const pauseMs = this.#usablePrevious(now) ? 0 : Math.max(0, trouble.retryAt - now);

    if (newest.state === 'dead') return retryAfter(0);
    const isOwn = use.lastTry !== undefined && newest.wasAcceptedDuring(use.lastTry);
    if (isAlive && !isRefusal) return isOwn ? FINAL : retryAfter(FIRST_PAUSE_MS);
    if (use.isSelective === true && trouble.isListsOwn && isTooOld(trouble)) return FINAL;
    if (isKnown ? isAlive : !isTooOld(trouble)) return retryAfter(pauseMs);

    const refusedTokens = this.#countRefused(use.list, newest);
    const isFineForOthers = trouble.isListsOwn && !isKnown;
    if (isFineForOthers && (outcome === 'forbidden' || refusedTokens > 1)) return FINAL;
    const isDead = isRefusal && !isFineForOthers;
    if (this.#isLoginComing) {
      if (isDead) newest.markDead();
      return retryAfter(isDead ? 0 : Math.max(pauseMs, FIRST_PAUSE_MS));
    }
    if (this.#mayLogIn(isRefusal ? 'refused' : 'failed', now)) {
      if (isDead) newest.markDead();
      return this.#logsIn(retryAfter(isDead ? 0 : FIRST_PAUSE_MS), now);
    }
    // The token may have become invalid since its last success, unless it also succeeded after a refusal.
    const mayBeToken =
      newest.state === 'proven' ? !trouble.isListsOwn : newest.isRefusedElsewhere(use);
    const most = isRefusal || mayBeToken ? MAX_REFUSED_TOKENS : 2;
    const isForbidden = refusedTokens >= most && (isRefusal || !isKnown);
    return isForbidden ? FINAL : retryAfter(pauseMs);
  }

  #countRefused(list: string, newest: TokenEvidence): number {
    const before = this.#refusals.get(list);
    if (before?.last === newest) return before.tokens;
    const tokens = (before?.tokens ?? 0) + 1;
    this.#refusals.set(list, { tokens, last: newest });
    return tokens;
  }

  get #isLoginComing(): boolean {
    return this.#isLoggingIn || this.#isLoginWanted;
  }

  #mayLogIn(doubt: EarlyLoginReason, now: number): boolean {
    return !this.#isLoginComing && this.#pace.allows(doubt, now);
  }

  #logsIn(verdict: TokenVerdict, now: number): TokenVerdict {
    this.#pace.earlyLoginBegins(now);
    this.#isLoginWanted = true;
    return { ...verdict, logsIn: true };
  }

  #usablePrevious(now: number): TokenEvidence | undefined {
    const previous = this.#previous;
    return previous && !isExpired(previous.token, now) ? previous : undefined;
  }
}

function retryAfter(pauseMs: number): TokenVerdict {
  return { isFinal: false, pauseMs, logsIn: false };
}

function isExpired({ askedAt, lifeMs }: Token, now: number): boolean {
  return now >= askedAt + lifeMs - Math.min(MARGIN_MS, lifeMs * MARGIN_PART);
}

/** Why an early login is made: the server refused the token, or requests fail in another way that may be due to the token. */
type EarlyLoginReason = 'refused' | 'failed';

/**
 * Minimum gaps between early logins (logins before the token expires), in ms. The first gap is `first`, and each further one is twice as
 * long. The longest is `helped` if the token of the last early login has worked, otherwise `max`. If the gaps are too small, a server that
 * fails for an hour uses up the login quota. If they are too large, lists wait longer for a new token.
 */
const GAPS = {
  refused: { first: 10_000, helped: 30_000, max: 5 * 60_000 },
  failed: { first: 60_000, helped: 60_000, max: 20 * 60_000 },
} as const;
/** Time since the last early login (a login before the token expires), in ms, after which the gaps in `GAPS` begin again with `first`. */
const RESET_AFTER_MS = 60 * 60_000;

/** Number of logins within {@link RECENT_MS} that may follow each other without a gap. If it is too large, the login quota is used up. */
const BURST = 3;
const RECENT_MS = 60_000;
/**
 * Minimum gap between logins, in ms, after {@link BURST} logins within {@link RECENT_MS}. The two together allow fewer than ten logins per
 * minute.
 */
const LEAST_GAP_MS = 10_000;

/**
 * Limits the rate of logins in addition to their quota, so that very short lifetimes, or a server that refuses every token, do not cause a
 * login loop.
 */
export class LoginPace {
  readonly #logins: number[] = [];
  /** Number of consecutive early logins (before the token expires). A gap of more than {@link RESET_AFTER_MS} restarts the count. */
  #doubts = 0;
  #doubtAt = -Infinity;
  /** Whether a request with the newest token has succeeded since the last early login (a login before the token expires) was begun. */
  #hasHelped = false;

  /** Returns how long the next login must be delayed, in ms. */
  waitMs(now: number): number {
    const recent = this.#logins.filter((at) => now - at < RECENT_MS);
    if (recent.length < BURST) return 0;
    return Math.max(0, recent.at(-1)! + LEAST_GAP_MS - now);
  }

  begin(now: number): void {
    this.#logins.push(now);
    this.#logins.splice(0, this.#logins.length - BURST);
  }

  allows(doubt: EarlyLoginReason, now: number): boolean {
    if (this.#doubts === 0) return true;
    const { first, helped, max } = GAPS[doubt];
    const gap = Math.min(first * 2 ** (this.#doubts - 1), this.#hasHelped ? helped : max);
    return now - this.#doubtAt >= gap;
  }

  earlyLoginBegins(now: number): void {
    this.#doubts = now - this.#doubtAt > RESET_AFTER_MS ? 1 : this.#doubts + 1;
    this.#doubtAt = now;
    this.#hasHelped = false;
  }

  tokenWorked(): void {
    this.#hasHelped = true; // also if the newest token is still the old one, because the early login has not succeeded yet
  }
}
