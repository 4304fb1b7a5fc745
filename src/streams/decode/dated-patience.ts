import type { SchedulerLike } from 'rxjs';
import { CellarstreamError, describeError, PASSING_STATUSES } from '../../core/errors.ts';

/** Why a request with modification dates was given up: the server refuses it, or fails and answers nothing that could be read. */
export type GivenUp = 'refused' | 'unanswered';

/** The likely cause of a failure: the request, the token that it was sent with, or the server. */
type Blamed = 'request' | 'token' | 'server';

/**
 * Failures in a row, and time from the first to the newest in ms, before a query is given up. Too small: each short outage costs a few
 * requests without dates. Too large: changes wait that much longer before sweeps take over from polls. A token has time to become valid.
 */
const PATIENCE: Readonly<Record<Blamed, { readonly failures: number; readonly ms: number }>> = {
  request: { failures: 3, ms: 5_000 },
  token: { failures: 4, ms: 15_000 },
  server: { failures: 2, ms: 60_000 },
};

/**
 * Counts the failures of one query with modification dates. Requests are tried for ever as a rule, because an outage passes. A list can
 * be read without dates, though, so a query with dates is given up after a while; a request without dates then shows whether the dates
 * are to blame.
 */
export class DatedPatience {
  readonly #scheduler: SchedulerLike;
  readonly #list: string;
  #failures = 0;
  #since: number | undefined;
  #newest: unknown;
  #givenUp: GivenUp | undefined;

  /** @param list The list's address, for the error. */
  constructor(scheduler: SchedulerLike, list: string) {
    this.#scheduler = scheduler;
    this.#list = list;
  }

  /** Whether the query is given up with this failure. The same error may be reported by several stages; it counts once. */
  fails(error: unknown): boolean {
    if (error === this.#newest) return this.#givenUp !== undefined;
    this.#newest = error;
    this.#failures += 1;
    const now = this.#scheduler.now();
    this.#since ??= now;
    const blamed = blamedBy(error);
    const { failures, ms } = PATIENCE[blamed];
    const isOver = this.#failures >= failures && now - this.#since >= ms;
    if (isOver) this.#givenUp = blamed === 'server' ? 'unanswered' : 'refused';
    return isOver;
  }

  /** A request of the query was answered: failures count from zero again. */
  works(): void {
    this.#failures = 0;
    this.#since = undefined;
    this.#newest = undefined;
    this.#givenUp = undefined;
  }

  /** The error of a query that was given up with `cause`; the cause itself if it was not. */
  errorOf(cause: unknown): unknown {
    if (this.#givenUp === undefined || cause !== this.#newest) return cause;
    return new CellarstreamError(
      'API_STATUS',
      `requests with modification dates fail: ${this.#list}: ${describeError(cause)}`,
      { cause, context: { givenUp: this.#givenUp } },
    );
  }
}

/** Why a query with dates failed for good; undefined for other errors. */
export function whyGivenUp(error: unknown): GivenUp | undefined {
  if (!(error instanceof CellarstreamError)) return undefined;
  const { givenUp } = error.context;
  return givenUp === 'refused' || givenUp === 'unanswered' ? givenUp : undefined;
}

/** The likely cause of a failure that may pass. A 404, a redirect and the page of a firewall count as caused by the request. */
function blamedBy(error: unknown): Blamed {
  if (!(error instanceof CellarstreamError)) return 'server';
  if (error.code === 'TOKEN_REJECTED') return 'token';
  const status = Number(error.context.status);
  const isOfRequest = status >= 300 && status < 500 && !PASSING_STATUSES.has(status);
  return error.code === 'API_STATUS' && isOfRequest ? 'request' : 'server';
}
