// Decides when a query with modification dates is given up, so that the list can be read without dates.

import type { SchedulerLike } from 'rxjs';
import { CellarstreamError, describeError, RETRYABLE_STATUSES } from '../../core/errors.ts';

/**
 * Why a query with modification dates is given up. `refused`: the server, or a gateway in front of it, refuses the query or its token.
 * `unanswered`: the server fails, or sends no readable response.
 */
export type GiveUpReason = 'refused' | 'unanswered';

type FailureCause = 'request' | 'token' | 'server';

/**
 * Limits after which a query with dates is given up, by the likely cause of its newest failure. Both have to be reached: `failures` is a
 * number of failures in a row, `ms` the time from the first to the newest of them. If they are too small, a short outage stops the polls.
 * If they are too large, sweeps replace the failing polls later.
 */
const PATIENCE: Readonly<Record<FailureCause, { readonly failures: number; readonly ms: number }>> =
  {
    request: { failures: 3, ms: 5_000 },
    token: { failures: 4, ms: 15_000 },
    server: { failures: 2, ms: 60_000 },
  };

/**
 * Decides when to give up one query with modification dates. Such a query can be given up, because the list can also be read without dates.
 * Other queries are retried for ever.
 */
export class DatedPatience {
  readonly #scheduler: SchedulerLike;
  readonly #list: string;
  #failures = 0;
  #since: number | undefined;
  #newest: unknown;
  #givenUp: GiveUpReason | undefined;

  constructor(scheduler: SchedulerLike, list: string) {
    this.#scheduler = scheduler;
    this.#list = list;
  }

  /** Counts a failure, and returns whether the query is now given up. The same error is not counted again when another stage reports it. */
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

  recordSuccess(): void {
    this.#failures = 0;
    this.#since = undefined;
    this.#newest = undefined;
    this.#givenUp = undefined;
  }

  /**
   * Returns the error to report for `cause`, an error of a query by modification date: an `API_STATUS` error with a {@link giveUpReason} if
   * the query is given up because of `cause`, otherwise `cause` itself.
   */
  errorOf(cause: unknown): unknown {
    if (this.#givenUp === undefined || cause !== this.#newest) return cause;
    return new CellarstreamError(
      'API_STATUS',
      `requests for ${this.#list} that filter by modification date failed several times and are given up for now. The last error: ${describeError(cause)}`,
      { cause, context: { givenUp: this.#givenUp } },
    );
  }
}

export function giveUpReason(error: unknown): GiveUpReason | undefined {
  if (!(error instanceof CellarstreamError)) return undefined;
  const { givenUp } = error.context;
  return givenUp === 'refused' || givenUp === 'unanswered' ? givenUp : undefined;
}

/**
 * Returns the likely cause of a failure:
 *
 * - `token`: the API refused the token or the API key;
 * - `request`: the status is from 300 to 499 and not usually temporary, as with a 404, a redirect or the block page of a firewall;
 * - `server`: any other failure.
 */
function likelyCause(error: unknown): FailureCause {
  if (!(error instanceof CellarstreamError)) return 'server';
  if (error.code === 'TOKEN_REJECTED' || error.code === 'API_KEY_REJECTED') return 'token';
  const status = Number(error.context.status);
  const isOfRequest = status >= 300 && status < 500 && !RETRYABLE_STATUSES.has(status);
  return error.code === 'API_STATUS' && isOfRequest ? 'request' : 'server';
}
