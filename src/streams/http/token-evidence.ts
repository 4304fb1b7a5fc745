import type { Token } from './login.ts';

/** How the server took one request that was sent with a token. */
export type TokenOutcome =
  /** A page that was decoded: the only proof that the server accepts the token. */
  | 'worked'
  /** 401: the server says that the token is not valid. */
  | 'refused'
  /** 403 with JSON: the token is dead at some APIs, or valid but not allowed to read this list. */
  | 'forbidden'
  /** Any other failure that is worth a retry: 5xx, a redirect, HTML, a 200 without a page. */
  | 'failed'
  /** A status that is final for a request unless the token was to blame: 400, 419, 498. */
  | 'failed-for-good';

/** Times of a request and of its answer, in ms on the scheduler's clock. The server judged the token at some moment between them. */
export interface RequestTimes {
  readonly sentAt: number;
  readonly answeredAt: number;
}

/** A request that was sent with a token. */
export interface TokenUse {
  readonly token: Token;
  /** Names the list that was asked and the kind of query: the whole list, by dates, or by number. The server may refuse one kind alone. */
  readonly list: string;
  /**
   * Whether the query selects records by date or number. Its refusal may be final sooner, since the list can be read without such queries.
   * Default false.
   */
  readonly isSelective?: boolean;
  /** When the request was sent, in ms on the scheduler's clock. */
  readonly sentAt: number;
  /** The query's previous try, if it failed with the same token and status; undefined for a first try. */
  readonly lastTry?: RequestTimes | undefined;
}

/** Refusals of a token by one list since its last success there. */
interface Trouble {
  /** Refusals, counting requests that were in flight together as one. */
  readonly count: number;
  /** The newest of them. */
  readonly newest: RequestTimes;
  /**
   * Whether the server accepted the token elsewhere both before and after one of them, as {@link TokenEvidence.wasAcceptedDuring} defines
   * it, so that the list itself refuses.
   */
  readonly isOwn: boolean;
  /** When the list may try the token again, in ms on the scheduler's clock. */
  readonly retryAt: number;
}

/** Pause after the first refusal of a token, in ms; it doubles with each further one. */
export const FIRST_PAUSE_MS = 1_000;
/** Longest pause between two tries of a refused token, in ms. */
const MAX_PAUSE_MS = 30_000;
/**
 * How long after a failure that was the query's own fault further failures of the list are taken for the same, in ms. Too small: when many
 * queries fail for good, each of them is repeated several times. Too large: a token that dies is noticed later.
 */
const OWN_FAILURE_MS = 60_000;
/** Tries after 1, 2 and 4 s; a token refused once more is not merely young. Replicas lag for up to about 5 s. */
const YOUNG_TRIES = 3;

/** Everything that the requests of an account's lists have shown about one token. */
export class TokenEvidence {
  #token: Token;
  #isDead = false;
  #isRepeated = false;
  /** Send time of the newest request that succeeded, by list. */
  readonly #worked = new Map<string, number>();
  /** Time of the first answer that was a success. */
  #firstWorked = Infinity;
  readonly #troubles = new Map<string, Trouble>();
  /** Time of the first failure in a minute that was found to be the query's own fault, by list. */
  readonly #ownFailures = new Map<string, number>();
  #failingSince: number | undefined;

  constructor(token: Token) {
    this.#token = token;
  }

  /** The token, with the life that the newest login gave it. */
  get token(): Token {
    return this.#token;
  }

  /** Whether a later login issued the same token again. Such a server issues a new token only once this one has expired. */
  get isRepeated(): boolean {
    return this.#isRepeated;
  }

  /**
   * - `new`: no request has been answered with a success or a refusal yet;
   * - `young`: refused so far, perhaps because the server's replicas do not know it yet;
   * - `proven`: a list has answered with a page;
   * - `dead`: refused for good.
   */
  get state(): 'new' | 'young' | 'proven' | 'dead' {
    if (this.#isDead) return 'dead';
    if (this.#worked.size > 0) return 'proven';
    return this.#troubles.size > 0 ? 'young' : 'new';
  }

  /** When failures began, if nothing but failures came since the last success; in ms on the scheduler's clock. */
  get failingSince(): number | undefined {
    return this.#failingSince;
  }

  /** Whether a young token waits for its next try. */
  isResting(now: number): boolean {
    if (this.state !== 'young') return false;
    return [...this.#troubles.values()].some(({ retryAt }) => retryAt > now);
  }

  /** Whether other lists refuse the token, too. */
  isRefusedBeside({ list }: TokenUse): boolean {
    return [...this.#troubles.keys()].some((other) => other !== list);
  }

  /** Whether this list has ever answered with a page to this token. */
  hasWorkedFor(list: string): boolean {
    return this.#worked.has(list);
  }

  /** Whether a request has succeeded that was sent after this one, or after the answer to the query's previous try. */
  hasWorkedBeside({ sentAt, lastTry }: TokenUse): boolean {
    return this.#hasWorkedSince(lastTry?.answeredAt ?? sentAt);
  }

  /**
   * Whether the server accepted the token during a request: another one was answered with success before it began, and a third was sent
   * after it ended and succeeded. A success on one side proves nothing, as a token may be young before and dead after. A request that was
   * under way at the same time proves nothing either, as the server may have judged it earlier.
   */
  wasAcceptedDuring({ sentAt, answeredAt }: RequestTimes): boolean {
    return this.#firstWorked < sentAt && this.#hasWorkedSince(answeredAt);
  }

  /** Records that a failure for good was the query's own fault, and not the token's. */
  failsByQuery({ list }: TokenUse, now: number): void {
    const isKnown = now - (this.#ownFailures.get(list) ?? -Infinity) < OWN_FAILURE_MS;
    if (!isKnown) this.#ownFailures.set(list, now);
  }

  /**
   * Whether a failure of the list was found to be the query's own fault within the last minute, and the list has answered with a page
   * since. False while the token itself is in doubt.
   */
  isFineBesideFailures({ list }: TokenUse, now: number): boolean {
    if (this.#failingSince !== undefined) return false;
    const worked = this.#worked.get(list) ?? -Infinity;
    const failed = this.#ownFailures.get(list) ?? -Infinity;
    return worked >= failed && now - failed < OWN_FAILURE_MS;
  }

  /** Records a success. */
  works({ list, sentAt }: TokenUse, now: number): void {
    this.#worked.set(list, Math.max(sentAt, this.#worked.get(list) ?? -Infinity));
    this.#firstWorked = Math.min(now, this.#firstWorked);
    this.#troubles.delete(list);
    this.#failingSince = undefined;
    this.#isDead = false;
  }

  /** Records a failure of any kind. */
  fails(use: TokenUse, now: number): void {
    if (!this.hasWorkedBeside(use)) this.#failingSince ??= now;
  }

  /** Records a refusal, and gives the pause before the list's next try. */
  refuses({ list, sentAt }: TokenUse, now: number): Trouble {
    const before = this.#troubles.get(list);
    if (before && sentAt < before.retryAt) return before;
    const count = (before?.count ?? 0) + 1;
    const isOwn = before !== undefined && (before.isOwn || this.wasAcceptedDuring(before.newest));
    const retryAt = now + Math.min(FIRST_PAUSE_MS * 2 ** (count - 1), MAX_PAUSE_MS);
    const trouble = { count, newest: { sentAt, answeredAt: now }, isOwn, retryAt };
    this.#troubles.set(list, trouble);
    return trouble;
  }

  #hasWorkedSince(time: number): boolean {
    return [...this.#worked.values()].some((at) => at > time);
  }

  /** Marks the token as refused for good. */
  dies(): void {
    this.#isDead = true;
  }

  /** Starts a new life of the token, which a login has issued again. The evidence stays. */
  renews(token: Token): void {
    this.#token = token;
    this.#isDead = false;
    this.#isRepeated = true;
  }
}

/** Whether a token was refused too often to be merely young. */
export function isTooOld({ count }: Trouble): boolean {
  return count > YOUNG_TRIES;
}
