// The tokens of one account: which of them is sent, when a refused one is renewed, and how often logins may follow one another.

import type { Token } from './login.ts';
import { FIRST_PAUSE_MS, isTooOld, TokenEvidence } from './token-evidence.ts';
import type { TokenOutcome, TokenUse } from './token-evidence.ts';

export type { RequestTimes, TokenOutcome, TokenUse } from './token-evidence.ts';

/** How a list goes on after a request. */
export interface TokenVerdict {
  /** The token is not to blame: the failure is the list's own. */
  readonly isFinal: boolean;
  /** Pause before the list's next try, in ms; undefined leaves it to the caller's back-off. */
  readonly pauseMs: number | undefined;
  /** A login begins because of this request. */
  readonly logsIn: boolean;
}

/**
 * A token is over this long before its end, in ms, or this part of a short life: its times are in whole seconds, and a request
 * arrives later than it is sent.
 */
const MARGIN_MS = 2_000;
const MARGIN_PART = 0.05;
/** A token that brought nothing but failures for this long is worth a login, in ms. */
const FAILING_MS = 5_000;
/** Tokens in a row that a list refuses, each after all its tries, before the list itself counts as forbidden. */
const MAX_REFUSED_TOKENS = 3;

type Refusal = Exclude<TokenOutcome, 'worked' | 'failed'>;

const GO_ON: TokenVerdict = { isFinal: false, pauseMs: undefined, logsIn: false };
const FINAL: TokenVerdict = { isFinal: true, pauseMs: undefined, logsIn: false };

/**
 * The tokens of one account: the newest, and its predecessor for as long as that is good and the newest has not worked. Decides from the
 * outcomes of requests which token is used, when an early login is made, and when a failure is the list's own.
 *
 * - A token that never worked is *young*: a server with several replicas may know it a few seconds later. A list that refuses it tries it
 *   again after 1, 2 and 4 s; only then is there another login.
 * - A token that worked for a list and is refused by it is dead.
 * - A list that refuses a token which other lists accept is forbidden. So are queries by date or number that the list refuses while it
 *   accepts the token without them. The proof is one success before the refused request was sent, and one of a request sent after the
 *   refusal arrived.
 * - Once a failure of a query by date or number that would be final was found to be the query's own, and the list has answered another such
 *   query since, further ones are final at once for a minute: the search for dates that a list accepts asks a dozen such queries.
 * - A token that brought nothing but failures for five seconds, or a failure that would be final, may be a dead token that is reported in
 *   another way. One login shows it; {@link LoginPace} makes the gaps between such logins grow.
 */
export class TokenLife {
  readonly #pace: LoginPace;
  #newest: TokenEvidence | undefined;
  #previous: TokenEvidence | undefined;
  #isLoggingIn = false;
  #isLoginWanted = false;
  /** Number of tokens in a row that a list refused, each after all its tries, by the name of the list. */
  readonly #refusals = new Map<string, { readonly tokens: number; readonly last: TokenEvidence }>();

  constructor(pace: LoginPace) {
    this.#pace = pace;
  }

  get newest(): Token | undefined {
    return this.#newest?.token;
  }

  /** Whether the newest login gave the same token as the one before: only its end brings another. */
  get isRepeated(): boolean {
    return this.#newest?.isRepeated === true;
  }

  /** Whether the newest token is in doubt, or dead, and no login has been made since. */
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
    if (before?.token.text === token.text) return before.renews(token);
    const isGood = before?.state === 'proven' && before.failingSince === undefined;
    if (isGood && !isOver(before.token, now)) this.#previous = before;
    this.#newest = new TokenEvidence(token);
  }

  current(now: number): Token | undefined {
    const [newest, previous] = [this.#newest, this.#usablePrevious(now)];
    const isUsable = newest !== undefined && newest.state !== 'dead' && !isOver(newest.token, now);
    if (previous && (!isUsable || newest.isResting(now))) return previous.token;
    return isUsable ? newest.token : undefined;
  }

  report(use: TokenUse, outcome: TokenOutcome, now: number): TokenVerdict {
    const newest = this.#newest;
    if (use.token.text !== newest?.token.text) return this.#reportOld(use, outcome, now);
    if (outcome === 'worked') return this.#works(newest, use, now);
    // The shortcut is limited to queries by date or number, because the list can be read without them.
    const mayBeQuery = outcome === 'failed-for-good' && use.isSelective === true;
    if (mayBeQuery && newest.isFineBesideFailures(use, now)) return FINAL;
    newest.fails(use, now);
    if (outcome === 'failed') return this.#fails(newest, use, now);
    const verdict = this.#refuses(newest, use, outcome, now);
    if (mayBeQuery && verdict.isFinal) newest.failsByQuery(use, now);
    return verdict;
  }

  #works(newest: TokenEvidence, use: TokenUse, now: number): TokenVerdict {
    newest.works(use, now);
    this.#previous = undefined;
    this.#refusals.delete(use.list);
    this.#pace.helped();
    return GO_ON;
  }

  /** A request with another token than the newest: it says something about the predecessor at most, and is made again at once. */
  #reportOld({ token, list }: TokenUse, outcome: TokenOutcome, now: number): TokenVerdict {
    if (outcome === 'failed') return GO_ON;
    if (outcome === 'worked') {
      this.#refusals.delete(list);
      return GO_ON;
    }
    if (token.text === this.#previous?.token.text) this.#previous = undefined;
    return again(this.#newest?.isResting(now) ? FIRST_PAUSE_MS : 0);
  }

  /** A failure that the caller's back-off deals with: many of them, and no success, make the token suspect. */
  #fails(newest: TokenEvidence, use: TokenUse, now: number): TokenVerdict {
    const { failingSince, state } = newest;
    // The predecessor shows whether a token that has not worked yet is to blame.
    if (state !== 'proven' && this.#usablePrevious(now)) newest.refuses(use, now);
    const isSuspect = failingSince !== undefined && now - failingSince >= FAILING_MS;
    return isSuspect && this.#mayLogIn('failed', now) ? this.#logsIn(GO_ON, now) : GO_ON;
  }

  /** A refusal, or a failure that is final unless the token is to blame. */
  #refuses(newest: TokenEvidence, use: TokenUse, outcome: Refusal, now: number): TokenVerdict {
    const isRefusal = outcome !== 'failed-for-good';
    const isKnown = newest.hasWorkedFor(use.list);
    const isAlive = newest.hasWorkedBeside(use);
    const trouble = newest.refuses(use, now);
    const pauseMs = this.#usablePrevious(now) ? 0 : Math.max(0, trouble.retryAt - now);

    if (newest.state === 'dead') return again(0);
    const isOwn = use.lastTry !== undefined && newest.wasAcceptedDuring(use.lastTry);
    if (isAlive && !isRefusal) return isOwn ? FINAL : again(FIRST_PAUSE_MS);
    if (use.isSelective === true && trouble.isOwn && isTooOld(trouble)) return FINAL;
    if (isKnown ? isAlive : !isTooOld(trouble)) return again(pauseMs);

    const refusedTokens = this.#countRefused(use.list, newest);
    const isFineForOthers = trouble.isOwn && !isKnown;
    if (isFineForOthers && (outcome === 'forbidden' || refusedTokens > 1)) return FINAL;
    const isDead = isRefusal && !isFineForOthers;
    if (this.#isLoginComing) {
      if (isDead) newest.dies();
      return again(isDead ? 0 : Math.max(pauseMs, FIRST_PAUSE_MS));
    }
    if (this.#mayLogIn(isRefusal ? 'refused' : 'failed', now)) {
      if (isDead) newest.dies();
      return this.#logsIn(again(isDead ? 0 : FIRST_PAUSE_MS), now);
    }
    // The token may have died since its last success, unless it also succeeded after a refusal.
    const mayBeToken = newest.state === 'proven' ? !trouble.isOwn : newest.isRefusedBeside(use);
    const most = isRefusal || mayBeToken ? MAX_REFUSED_TOKENS : 2;
    const isForbidden = refusedTokens >= most && (isRefusal || !isKnown);
    return isForbidden ? FINAL : again(pauseMs);
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

  #mayLogIn(doubt: Doubt, now: number): boolean {
    return !this.#isLoginComing && this.#pace.allows(doubt, now);
  }

  #logsIn(verdict: TokenVerdict, now: number): TokenVerdict {
    this.#pace.doubted(now);
    this.#isLoginWanted = true;
    return { ...verdict, logsIn: true };
  }

  #usablePrevious(now: number): TokenEvidence | undefined {
    const previous = this.#previous;
    return previous && !isOver(previous.token, now) ? previous : undefined;
  }
}

function again(pauseMs: number): TokenVerdict {
  return { isFinal: false, pauseMs, logsIn: false };
}

function isOver({ askedAt, lifeMs }: Token, now: number): boolean {
  return now >= askedAt + lifeMs - Math.min(MARGIN_MS, lifeMs * MARGIN_PART);
}

/** Reason for a login before the token expires: the server refused the token, or requests with it only failed. */
type Doubt = 'refused' | 'failed';

/**
 * Minimum time between early logins, in ms. `first` doubles with each further early login, up to `max`; if the last one gave a token
 * that worked, the minimum is `helped` at most. Too small: a server that fails for an hour uses up the login quota. Too large: lists wait
 * longer for a new token after the server has lost the old one.
 */
const GAPS = {
  refused: { first: 10_000, helped: 30_000, max: 5 * 60_000 },
  failed: { first: 60_000, helped: 60_000, max: 20 * 60_000 },
} as const;
/** Time without an early login after which the gaps begin with `first` again, in ms. */
const FORGOTTEN_AFTER_MS = 60 * 60_000;

/** Number of logins within {@link RECENT_MS} that need no gap between them. */
const BURST = 3;
const RECENT_MS = 60_000;
/** Minimum time between further logins within {@link RECENT_MS}, in ms. With the burst this stays below ten logins a minute. */
const LEAST_GAP_MS = 10_000;

/**
 * Limits how often an account logs in, in addition to the login quota, so that tokens with very short lives or a server that refuses
 * every token cause no login loop.
 */
export class LoginPace {
  /** Times of the newest logins, in ms. */
  readonly #logins: number[] = [];
  /** Number of early logins, each less than {@link FORGOTTEN_AFTER_MS} after the one before. */
  #doubts = 0;
  #doubtAt = -Infinity;
  /** Whether the token of the last early login has worked. */
  #hasHelped = false;

  /** How long the next login has to wait, in ms; 0 unless logins came in quick succession. */
  waitMs(now: number): number {
    const recent = this.#logins.filter((at) => now - at < RECENT_MS);
    if (recent.length < BURST) return 0;
    return Math.max(0, recent.at(-1)! + LEAST_GAP_MS - now);
  }

  /** Records the start of a login. */
  begin(now: number): void {
    this.#logins.push(now);
    this.#logins.splice(0, this.#logins.length - BURST);
  }

  /** Whether an early login may be made now. */
  allows(doubt: Doubt, now: number): boolean {
    if (this.#doubts === 0) return true;
    const { first, helped, max } = GAPS[doubt];
    const gap = Math.min(first * 2 ** (this.#doubts - 1), this.#hasHelped ? helped : max);
    return now - this.#doubtAt >= gap;
  }

  /** Records that an early login is about to be made. */
  doubted(now: number): void {
    this.#doubts = now - this.#doubtAt > FORGOTTEN_AFTER_MS ? 1 : this.#doubts + 1;
    this.#doubtAt = now;
    this.#hasHelped = false;
  }

  /** Records that the newest token works. */
  helped(): void {
    this.#hasHelped = true;
  }
}
