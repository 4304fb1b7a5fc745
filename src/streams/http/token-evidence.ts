import type { Token } from './login.ts';

/** Outcome of a request, as far as it says something about the token with which the request was sent. */
export type TokenOutcome =
  /** A page that was decoded: the only proof that the server accepts the token. */
  | 'worked'
  /** 401: the server states that the token is not valid. */
  | 'refused'
  /** 403 with JSON: the token has no right to read this list, or, at some APIs, is not valid. */
  | 'forbidden'
  /** A retryable failure that does not show whether the token is valid: a 5xx, a redirect, HTML, or a 200 without a page. */
  | 'failed'
  /** A status, such as 400, 419 or 498, that a retry with the same token would bring again. A retry with a new token may succeed. */
  | 'failed-for-good';

/**
 * Times of a request and of its response, in ms on the scheduler's clock. The server checked the token at some moment between these times.
 */
export interface RequestTimes {
  readonly sentAt: number;
  readonly answeredAt: number;
}

/** A request, and the token with which it was sent. */
export interface TokenUse {
  readonly token: Token;
  /**
   * Name of the list, followed by the kind of query unless it is for all records: `orders`, `orders by date`, `orders by key` or
   * `orders total`. A server may refuse the token for one kind and accept it for others.
   */
  readonly list: string;
  /**
   * Whether the query requests less than all records: a window of dates, a single record, or only the total. Such a query is given up after
   * fewer failures. Default false.
   */
  readonly isSelective?: boolean;
  /** When the request was sent, in ms on the scheduler's clock. */
  readonly sentAt: number;
  /**
   * Times of the previous attempt of the same query, if it failed with the same token and the same status as this one; otherwise undefined.
   */
  readonly lastTry?: RequestTimes | undefined;
}

interface RefusalState {
  /**
   * Number of failures counted since the list last accepted the token. A failed request that was sent before `retryAt` is not counted, so
   * that failures of requests that were in flight together count once.
   */
  readonly count: number;
  readonly newest: RequestTimes;
  /**
   * Whether the list, and not the token, causes the refusals: the server accepted the token before and after one of them (see
   * `wasAcceptedDuring`).
   */
  readonly isListsOwn: boolean;
  /** Earliest time at which the token may be tried again for the list, in ms on the scheduler's clock. */
  readonly retryAt: number;
}

/** Pause before a token is tried again after its first refusal by a list, in ms. Doubles with each further refusal, up to 30 s. */
export const FIRST_PAUSE_MS = 1_000;
/** Longest pause before a refused token is tried again for a list, in ms. If it is too large, a token that is valid again is used late. */
const MAX_PAUSE_MS = 30_000;
/**
 * Length, in ms, of the period that begins when a query fails although the token is valid. In this period, failing queries of the same kind
 * (such as by key) are not retried if another one has worked with the token since the period began. If it is too short, each of many
 * failing queries is retried. If it is too long, a token that stops working is noticed later.
 */
const OWN_FAILURE_MS = 60_000;
/**
 * Maximum number of refusals of a new token by one list that are attributed to a lagging replica, which does not know the token yet. The
 * token is tried again after 1, 2 and 4 s; replicas usually lag about 5 s.
 */
const YOUNG_TRIES = 3;

/** Evidence about one API token, collected from the requests of all lists of an account. */
export class TokenEvidence {
  #token: Token;
  #isDead = false;
  #isRepeated = false;
  /**
   * When the newest successful request with the token was sent, in ms on the scheduler's clock, by name of list and kind of query
   * ({@link TokenUse.list}).
   */
  readonly #worked = new Map<string, number>();
  /** When the first successful response to a request with the token arrived, in ms on the scheduler's clock; Infinity if none has. */
  #firstWorked = Infinity;
  readonly #troubles = new Map<string, RefusalState>();
  /**
   * When a query failed for good although the token was valid, in ms on the scheduler's clock, by name of list and kind of query
   * ({@link TokenUse.list}). Another such failure replaces this time only after a minute.
   */
  readonly #ownFailures = new Map<string, number>();
  #failingSince: number | undefined;

  constructor(token: Token) {
    this.#token = token;
  }

  get token(): Token {
    return this.#token;
  }

  /** Whether a later login returned this token again. Such a server issues a new token only once this one has expired. */
  get isRepeated(): boolean {
    return this.#isRepeated;
  }

  /**
   * State of the token:
   *
   * - `new`: no success and no refusal was recorded for it;
   * - `young`: a refusal, or a failure treated as one, was recorded for it, but no success. Perhaps the server's replicas do not know it
   *   yet;
   * - `proven`: a list has responded with a page;
   * - `dead`: given up, because the server refuses it. A later success, or a login that returns the same token, ends this state.
   */
  get state(): 'new' | 'young' | 'proven' | 'dead' {
    if (this.#isDead) return 'dead';
    if (this.#worked.size > 0) return 'proven';
    return this.#troubles.size > 0 ? 'young' : 'new';
  }

  /**
   * Time of the first failure since the token last worked, in ms on the scheduler's clock; undefined if there was none. Only failures that
   * the token may have caused count.
   */
  get failingSince(): number | undefined {
    return this.#failingSince;
  }

  /**
   * Whether the token is to be avoided at the time `now` (ms on the scheduler's clock): it has never worked, and the pause after its
   * refusal by a list is not over.
   */
  isResting(now: number): boolean {
    if (this.state !== 'young') return false;
    return [...this.#troubles.values()].some(({ retryAt }) => retryAt > now);
  }

  isRefusedElsewhere({ list }: TokenUse): boolean {
    return [...this.#troubles.keys()].some((other) => other !== list);
  }

  hasWorkedFor(list: string): boolean {
    return this.#worked.has(list);
  }

  /**
   * Whether the token has worked for another request that was sent after the given failed request. If the failed request is a retry
   * (`lastTry`), requests sent after the response to the previous attempt count, too.
   */
  hasWorkedElsewhere({ sentAt, lastTry }: TokenUse): boolean {
    return this.#hasWorkedSince(lastTry?.answeredAt ?? sentAt);
  }

  /**
   * Whether the server accepted the token at the time of a refused request. Two successful requests together prove that:
   *
   * - The response to one of them arrived before the refused request was sent. Alone, it proves nothing: the token may have been revoked
   *   since.
   * - The other one was sent after the refusal arrived. Alone, it proves nothing: a replica may not have known the token before.
   */
  wasAcceptedDuring({ sentAt, answeredAt }: RequestTimes): boolean {
    return this.#firstWorked < sentAt && this.#hasWorkedSince(answeredAt);
  }

  recordQueryFailure({ list }: TokenUse, now: number): void {
    const isKnown = now - (this.#ownFailures.get(list) ?? -Infinity) < OWN_FAILURE_MS;
    if (!isKnown) this.#ownFailures.set(list, now);
  }

  /**
   * Whether the token is probably not the cause of a failure of this query ({@link TokenUse.list}), because the query fails now and then.
   * True if all of these hold:
   *
   * - less than a minute ago, the same kind of query failed for good although the token was valid;
   * - a later query of this kind has returned a page with this token;
   * - no failure that may be due to the token was recorded since the token last worked.
   */
  isFineBesideFailures({ list }: TokenUse, now: number): boolean {
    if (this.#failingSince !== undefined) return false;
    const worked = this.#worked.get(list) ?? -Infinity;
    const failed = this.#ownFailures.get(list) ?? -Infinity;
    return worked >= failed && now - failed < OWN_FAILURE_MS;
  }

  recordSuccess({ list, sentAt }: TokenUse, now: number): void {
    this.#worked.set(list, Math.max(sentAt, this.#worked.get(list) ?? -Infinity));
    this.#firstWorked = Math.min(now, this.#firstWorked);
    this.#troubles.delete(list);
    this.#failingSince = undefined;
    this.#isDead = false;
  }

  /**
   * Registers that a request failed, perhaps because of the token: sets {@link failingSince} unless it is set already. Ignored if
   * {@link hasWorkedElsewhere} returns true for the request.
   */
  recordFailure(use: TokenUse, now: number): void {
    if (!this.hasWorkedElsewhere(use)) this.#failingSince ??= now;
  }

  /**
   * Records a refusal, or another failure that may be due to the token. Returns the state of the failures recorded for the list since it
   * last accepted the token. A request that was sent before the `retryAt` of that state is not recorded.
   */
  recordRefusal({ list, sentAt }: TokenUse, now: number): RefusalState {
    const before = this.#troubles.get(list);
    if (before && sentAt < before.retryAt) return before;
    const count = (before?.count ?? 0) + 1;
    const isListsOwn =
      before !== undefined && (before.isListsOwn || this.wasAcceptedDuring(before.newest));
    const retryAt = now + Math.min(FIRST_PAUSE_MS * 2 ** (count - 1), MAX_PAUSE_MS);
    const trouble = { count, newest: { sentAt, answeredAt: now }, isListsOwn, retryAt };
    this.#troubles.set(list, trouble);
    return trouble;
  }

  #hasWorkedSince(time: number): boolean {
    return [...this.#worked.values()].some((at) => at > time);
  }

  markDead(): void {
    this.#isDead = true;
  }

  /**
   * Starts a new lifetime of the token after a login has returned the same token again. The token does not count as dead any more. The
   * successes, failures and refusals recorded for it are retained.
   */
  renew(token: Token): void {
    this.#token = token;
    this.#isDead = false;
    this.#isRepeated = true;
  }
}

export function isTooOld({ count }: RefusalState): boolean {
  return count > YOUNG_TRIES;
}
