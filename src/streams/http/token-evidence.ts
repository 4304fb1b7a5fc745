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

/** A request, and the token with which it was sent. */
export interface TokenUse {
  readonly token: Token;
  /** The list and the kind of query: all records, by date, or by number. The server may refuse a single kind. */
  readonly list: string;
  /** Whether the query is by date or number, whose refusal may be final sooner. Default false. */
  readonly isSelective?: boolean;
  /** When the request was sent, in ms on the scheduler's clock. */
  readonly sentAt: number;
  /** Times of the query's previous attempt, if it failed with the same token and status. */
  readonly lastTry?: RequestTimes | undefined;
}

interface RefusalState {
  /** Number of refusals; those of requests in flight at the same time count as one. */
  readonly count: number;
  readonly newest: RequestTimes;
  /**
   * Whether the list is the cause, and not the token: the server accepted it before and after ({@link TokenEvidence.wasAcceptedDuring}).
   */
  readonly isListsOwn: boolean;
  /** When the list may try again, in ms. */
  readonly retryAt: number;
}

/** Pause after a list's first refusal of a token, in ms; it doubles with each further refusal. */
export const FIRST_PAUSE_MS = 1_000;
/** Longest pause, in ms. Too large: a list notices late that the token is accepted again. */
const MAX_PAUSE_MS = 30_000;
/**
 * How long further failures of a list count as caused by its queries, in ms. Too small: each of many failing queries is repeated. Too
 * large: a token that stops working is noticed later.
 */
const OWN_FAILURE_MS = 60_000;
/**
 * Number of refusals up to which a lagging replica may not know a new token. It is tried again after 1, 2 and 4 s; replicas usually lag
 * about 5 s.
 */
const YOUNG_TRIES = 3;

/** Evidence about one API token, collected from the requests of all lists of an account. */
export class TokenEvidence {
  #token: Token;
  #isDead = false;
  #isRepeated = false;
  /** Send time of the newest successful request, in ms, by list. */
  readonly #worked = new Map<string, number>();
  /** Arrival time of the first successful response, in ms. */
  #firstWorked = Infinity;
  readonly #troubles = new Map<string, RefusalState>();
  /** Time of the newest failure caused by the query, by list; further ones within a minute do not change it. */
  readonly #ownFailures = new Map<string, number>();
  #failingSince: number | undefined;

  constructor(token: Token) {
    this.#token = token;
  }

  get token(): Token {
    return this.#token;
  }

  /** Whether a later login issued the same token again: the server issues another only once this one has expired. */
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

  /** Time of the first failed request since the last success, in ms. */
  get failingSince(): number | undefined {
    return this.#failingSince;
  }

  /** Whether the token is young and a list waits before it tries it again. */
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

  /** Whether another request has succeeded that was sent after this one, or after the response to its previous attempt. */
  hasWorkedElsewhere({ sentAt, lastTry }: TokenUse): boolean {
    return this.#hasWorkedSince(lastTry?.answeredAt ?? sentAt);
  }

  /**
   * Whether the server accepted the token at the time of a refused request: one request succeeded before it was sent, and another was sent
   * after its response and succeeded. A success on one side only proves nothing, as the token may be unknown to a replica before, or
   * revoked after.
   */
  wasAcceptedDuring({ sentAt, answeredAt }: RequestTimes): boolean {
    return this.#firstWorked < sentAt && this.#hasWorkedSince(answeredAt);
  }

  recordQueryFailure({ list }: TokenUse, now: number): void {
    const isKnown = now - (this.#ownFailures.get(list) ?? -Infinity) < OWN_FAILURE_MS;
    if (!isKnown) this.#ownFailures.set(list, now);
  }

  /**
   * Whether a query of the list failed for good within the last minute, and the list has responded with a page since. False while the token
   * itself may be the cause of failures.
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

  /** Ignored if a later request has succeeded. */
  recordFailure(use: TokenUse, now: number): void {
    if (!this.hasWorkedElsewhere(use)) this.#failingSince ??= now;
  }

  /** Records a refusal, and returns those of the list so far. */
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

  /** Starts a new lifetime after a login has issued the same token; the evidence stays. */
  renew(token: Token): void {
    this.#token = token;
    this.#isDead = false;
    this.#isRepeated = true;
  }
}

export function isTooOld({ count }: RefusalState): boolean {
  return count > YOUNG_TRIES;
}
