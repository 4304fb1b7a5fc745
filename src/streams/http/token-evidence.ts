import type { Token } from './login.ts';

/** Outcome of a request that was sent with an API token, as far as it concerns the token. */
export type TokenOutcome =
  /** A page that was decoded: the only proof that the server accepts the token. */
  | 'worked'
  /** 401: the server states that the token is not valid. */
  | 'refused'
  /** 403 with JSON: the token has no right to read this list, or, at some APIs, is not valid. */
  | 'forbidden'
  /** Any other retryable failure: 5xx, a redirect, HTML, a 200 without a page. */
  | 'failed'
  /**
   * A status that repeating the request does not change, such as 400, 419 or 498. If the token is the cause, a repetition with a new token
   * may succeed.
   */
  | 'failed-for-good';

/** Times of a request and of its response, in ms on the scheduler's clock. The server checked the token at some moment between them. */
export interface RequestTimes {
  readonly sentAt: number;
  readonly answeredAt: number;
}

/** A request to the API, and the API token with which it was sent. */
export interface TokenUse {
  readonly token: Token;
  /** Name of the requested list and of the kind of query: all records, by date, or by number. The server may refuse a single kind. */
  readonly list: string;
  /**
   * Whether the query selects records by date or number. The refusal of such a query may be final sooner, since the list can be read
   * without such queries. Default false.
   */
  readonly isSelective?: boolean;
  /** When the request was sent, in ms on the scheduler's clock. */
  readonly sentAt: number;
  /** Times of the query's previous attempt, if it failed with the same token and status; undefined for a first attempt. */
  readonly lastTry?: RequestTimes | undefined;
}

/** Refusals of a token by one list since the list last accepted it. */
interface RefusalState {
  /** Number of the list's refusals of the token; refusals of requests that were in flight at the same time count as one. */
  readonly count: number;
  /** Times of the request with the newest counted refusal, and of its response. */
  readonly newest: RequestTimes;
  /**
   * Whether the list itself is the cause of its refusals, and not the token: the server accepted the token for other requests both before
   * and after one of them ({@link TokenEvidence.wasAcceptedDuring}).
   */
  readonly isListsOwn: boolean;
  /** When the list may try the token again, in ms on the scheduler's clock. */
  readonly retryAt: number;
}

/** Pause after a list's first refusal of a token, in ms; it doubles with each further refusal. */
export const FIRST_PAUSE_MS = 1_000;
/** Longest pause between two attempts with a refused token, in ms. Too large: a list notices late that the token is accepted again. */
const MAX_PAUSE_MS = 30_000;
/**
 * How long, in ms, after a request failed because of its query and not because of the token, further such failures of the same list count
 * as caused by their queries, too. Too small: when many queries fail for good, each of them is repeated several times. Too large: a token
 * that stops working is noticed later.
 */
const OWN_FAILURE_MS = 60_000;
/**
 * Number of refusals by one list up to which a new token may still be valid, because a lagging replica may not know it yet. The token is
 * tried again after 1, 2 and 4 s, longer than replicas usually lag (about 5 s).
 */
const YOUNG_TRIES = 3;

/** Evidence about one API token, collected from the requests of all lists of an account. */
export class TokenEvidence {
  #token: Token;
  #isDead = false;
  #isRepeated = false;
  /** Send time, in ms, of the newest successful request with the token, by the name of the list. */
  readonly #worked = new Map<string, number>();
  /** Arrival time, in ms, of the first successful response to a request with the token; Infinity before it. */
  #firstWorked = Infinity;
  /** Refusals of the token, by the name of the list. */
  readonly #troubles = new Map<string, RefusalState>();
  /**
   * Time of the newest failure that was caused by the query and not by the token, by the name of the list; failures within a minute after
   * it do not change it.
   */
  readonly #ownFailures = new Map<string, number>();
  #failingSince: number | undefined;

  constructor(token: Token) {
    this.#token = token;
  }

  /** The token, with the lifetime that the newest login gave it. */
  get token(): Token {
    return this.#token;
  }

  /** Whether a later login issued the same token again. Such a server issues a new token only once this one has expired. */
  get isRepeated(): boolean {
    return this.#isRepeated;
  }

  /**
   * State of the token:
   *
   * - `new`: no request with it has succeeded or been refused yet;
   * - `young`: only refused so far, perhaps because the server's replicas do not know it yet;
   * - `proven`: a list has responded with a page;
   * - `dead`: given up, as the server refuses it.
   */
  get state(): 'new' | 'young' | 'proven' | 'dead' {
    if (this.#isDead) return 'dead';
    if (this.#worked.size > 0) return 'proven';
    return this.#troubles.size > 0 ? 'young' : 'new';
  }

  /**
   * Time of the first failed request with the token since the last successful one, in ms on the scheduler's clock; undefined if there was
   * none.
   */
  get failingSince(): number | undefined {
    return this.#failingSince;
  }

  /** Whether the token is young (only refused so far) and a list waits before it tries the token again. */
  isResting(now: number): boolean {
    if (this.state !== 'young') return false;
    return [...this.#troubles.values()].some(({ retryAt }) => retryAt > now);
  }

  /** Whether lists other than the one of this request refuse the token, too. */
  isRefusedElsewhere({ list }: TokenUse): boolean {
    return [...this.#troubles.keys()].some((other) => other !== list);
  }

  /** Whether this list has ever responded with a page to a request with this token. */
  hasWorkedFor(list: string): boolean {
    return this.#worked.has(list);
  }

  /**
   * Whether another request with the token has succeeded that was sent after this request, or, if this one repeats a failed query, after
   * the response to the query's previous attempt.
   */
  hasWorkedElsewhere({ sentAt, lastTry }: TokenUse): boolean {
    return this.#hasWorkedSince(lastTry?.answeredAt ?? sentAt);
  }

  /**
   * Whether the server accepted the token at the time of a request that it refused: another request succeeded before this one was sent, and
   * a third one was sent after this one's response and succeeded. A success on one side only proves nothing, as the token may be unknown to
   * a replica before, or revoked after. A request that was in flight at the same time proves nothing either, as the server may have checked
   * its token earlier.
   */
  wasAcceptedDuring({ sentAt, answeredAt }: RequestTimes): boolean {
    return this.#firstWorked < sentAt && this.#hasWorkedSince(answeredAt);
  }

  /** Records that the final failure of a request was caused by its query and not by the token. */
  recordQueryFailure({ list }: TokenUse, now: number): void {
    const isKnown = now - (this.#ownFailures.get(list) ?? -Infinity) < OWN_FAILURE_MS;
    if (!isKnown) this.#ownFailures.set(list, now);
  }

  /**
   * Whether a request of the list failed within the last minute because of its query and not of the token, and the list has responded with
   * a page since. False while the token itself may be the cause of failures.
   */
  isFineBesideFailures({ list }: TokenUse, now: number): boolean {
    if (this.#failingSince !== undefined) return false;
    const worked = this.#worked.get(list) ?? -Infinity;
    const failed = this.#ownFailures.get(list) ?? -Infinity;
    return worked >= failed && now - failed < OWN_FAILURE_MS;
  }

  /** Records that a request with the token has succeeded. */
  recordSuccess({ list, sentAt }: TokenUse, now: number): void {
    this.#worked.set(list, Math.max(sentAt, this.#worked.get(list) ?? -Infinity));
    this.#firstWorked = Math.min(now, this.#firstWorked);
    this.#troubles.delete(list);
    this.#failingSince = undefined;
    this.#isDead = false;
  }

  /** Records that a request with the token has failed; it is ignored if a later request has succeeded. */
  recordFailure(use: TokenUse, now: number): void {
    if (!this.hasWorkedElsewhere(use)) this.#failingSince ??= now;
  }

  /** Records that a list refused the token, and returns the list's refusals so far with the time of its next attempt. */
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

  /** Marks the token as refused for good. */
  markDead(): void {
    this.#isDead = true;
  }

  /** Starts a new lifetime of the token, after a login has issued the same token again. The evidence is retained. */
  renew(token: Token): void {
    this.#token = token;
    this.#isDead = false;
    this.#isRepeated = true;
  }
}

/** Whether a list has refused a token too often for a lagging replica to be the cause. */
export function isTooOld({ count }: RefusalState): boolean {
  return count > YOUNG_TRIES;
}
