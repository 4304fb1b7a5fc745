// Decides when a query with modification dates is given up, so that the list can be read without dates.

import type { SchedulerLike } from 'rxjs';
import { CellarstreamError, describeError, RETRYABLE_STATUSES } from '../../core/errors.ts';

/** Why a query with modification dates was given up: the server refuses it, or fails or sends no readable response. */
export type GiveUpReason = 'refused' | 'unanswered';

/** Likely cause of a failure: the request itself, the token that it was sent with, or the server. */
type FailureCause = 'request' | 'token' | 'server';

/**
 * When a query with modification dates is given up, by the likely cause of its failures: the minimum number of consecutive failures, and
 * the minimum time from the first to the newest in ms. Too small: each short outage costs a few requests without dates. Too large: changes
 * wait that much longer before sweeps replace polls. A token is given time to become valid.
 */
const PATIENCE: Readonly<Record<FailureCause, { readonly failures: number; readonly ms: number }>> =
  {
    request: { failures: 3, ms: 5_000 },
    token: { failures: 4, ms: 15_000 },
    server: { failures: 2, ms: 60_000 },
  };

/**
 * Counts the failures of one query with modification dates, and decides when to give it up. Other requests are retried for ever, because an
 * outage passes. A list can be read without dates, though, so a query with dates is given up after a while; a request without dates then
 * shows whether the dates are the cause.
 */
export class DatedPatience {
  readonly #scheduler: SchedulerLike;
  readonly #list: string;
  #failures = 0;
  #since: number | undefined;
  #newest: unknown;
  #givenUp: GiveUpReason | undefined;

  /** Creates the counter for one query. @param list The list's URL as it appears in errors. */
  constructor(scheduler: SchedulerLike, list: string) {
    this.#scheduler = scheduler;
    this.#list = list;
  }

  /** Counts a failure; returns whether the query is given up with it. The same error may be reported by several stages; it counts once. */
  recordFailure(error: unknown): boolean {
    if (error === this.#newest) return this.#givenUp !== undefined;
    this.#newest = error;
    this.#failures += 1;
    const now = this.#scheduler.now();
    this.#since ??= now;
    const blamed = likelyCause(error);
    const { failures, ms } = PATIENCE[blamed];
    const isOver = this.#failures >= failures && now - this.#since >= ms;
    if (isOver) this.#givenUp = blamed === 'server' ? 'unanswered' : 'refused';
    return isOver;
  }

  /** Records that a request of the query succeeded, which resets the count of failures. */
  recordSuccess(): void {
    this.#failures = 0;
    this.#since = undefined;
    this.#newest = undefined;
    this.#givenUp = undefined;
  }

  /**
   * Returns the error to report for the failure `cause`: an error that wraps it if the query was given up because of it, otherwise `cause`
   * itself.
   */
  errorOf(cause: unknown): unknown {
    if (this.#givenUp === undefined || cause !== this.#newest) return cause;
    return new CellarstreamError(
      'API_STATUS',
      `requests with modification dates fail: ${this.#list}: ${describeError(cause)}`,
      { cause, context: { givenUp: this.#givenUp } },
    );
  }
}

/** Returns why a query with dates was given up, from its error; undefined for other errors. */
export function giveUpReason(error: unknown): GiveUpReason | undefined {
  if (!(error instanceof CellarstreamError)) return undefined;
  const { givenUp } = error.context;
  return givenUp === 'refused' || givenUp === 'unanswered' ? givenUp : undefined;
}

/** Returns the likely cause of a transient failure. A 404, a redirect and the block page of a firewall count as caused by the request. */
function likelyCause(error: unknown): FailureCause {
  if (!(error instanceof CellarstreamError)) return 'server';
  if (error.code === 'TOKEN_REJECTED') return 'token';
  const status = Number(error.context.status);
  const isOfRequest = status >= 300 && status < 500 && !RETRYABLE_STATUSES.has(status);
  return error.code === 'API_STATUS' && isOfRequest ? 'request' : 'server';
}
