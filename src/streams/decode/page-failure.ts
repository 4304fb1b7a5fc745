import type { SchedulerLike } from 'rxjs';
import { CellarstreamError } from '../../core/errors.ts';
import type { PagePatience } from '../http/page-request.ts';

/** A page's request failed in a way that may depend on what it asked for; `error` says how. */
export class PageFailure extends Error {
  readonly error: unknown;

  constructor(error: unknown) {
    super('the page failed');
    this.error = error;
  }
}

/** Statuses other than 5xx with which servers answer to pages that are too large, misplaced, or beyond the end. */
const STATUSES: ReadonlySet<number> = new Set([400, 404, 408, 413, 414, 416, 422]);
/** Those that say that a repetition is pointless. */
const REFUSALS: ReadonlySet<number> = new Set([400, 413, 414, 416, 422]);

/** Whether an error may depend on which page was asked for. An outage causes the same errors: only another page tells them apart. */
export function mayBeOfPage(error: unknown): boolean {
  if (!(error instanceof CellarstreamError)) return false;
  if (error.code === 'API_UNREACHABLE' || error.code === 'API_ANSWER') return true;
  const status = Number(error.context.status);
  return error.code === 'API_STATUS' && (status >= 500 || STATUSES.has(status));
}

/** Whether the server refused the page, so that asking for it again is pointless; of the error itself, not of its {@link PageFailure}. */
export function isPageRefused(error: unknown): boolean {
  return error instanceof CellarstreamError && REFUSALS.has(Number(error.context.status));
}

/** Failures in a row, and ms from the first to the newest, before a page is suspected. Too small: a short outage is taken for a bad page. */
const LEAST_FAILURES = 3;
const LEAST_MS = 5_000;

/**
 * How a page is asked for. `some`: a few times. `one`: once. `probe`: once too, as a page that other lanes read as well, so that a refusal says
 * something about the token.
 */
export type PageTries = 'some' | 'one' | 'probe';

/** Counts the failures of one page, and says after each whether the page is given up, to be read in another way. */
export function pagePatience(scheduler: SchedulerLike, tries: PageTries): PagePatience {
  let failures = 0;
  let since: number | undefined;
  return {
    isOfPage: (error) => tries !== 'probe' && isPageRefused(error),
    isGivenUp: (error) => {
      if (!mayBeOfPage(error)) return false;
      failures += 1;
      since ??= scheduler.now();
      if (tries !== 'some') return tries === 'one' || !isPageRefused(error);
      return failures >= LEAST_FAILURES && scheduler.now() - since >= LEAST_MS;
    },
  };
}
