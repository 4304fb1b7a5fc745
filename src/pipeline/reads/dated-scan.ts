import { catchError, concat, map, throwError } from 'rxjs';
import type { MonoTypeOperatorFunction, Observable } from 'rxjs';
import type { PageLane } from '../../account/page-lane.ts';
import { CellarstreamError, isRetryableAtApi } from '../../core/errors.ts';
import { whyGivenUp } from '../../streams/decode/dated-patience.ts';
import type { GivenUp } from '../../streams/decode/dated-patience.ts';
import { BEGINNING } from '../../streams/paging/anchors.ts';
import type { ListDates } from '../../streams/paging/list-dates.ts';
import type { ScanPage } from '../../streams/paging/pages.ts';
import type { Window } from '../../streams/paging/poll.ts';

/** Reads a window whole: in parts one after the other where the list refuses one as long as it is. */
export function datedScan(
  lane: Pick<PageLane, 'scan'>,
  dates: ListDates,
  window: Window,
  now: number,
): Observable<ScanPage> {
  const from = Date.parse(window.modifiedFromDate);
  const to = window.modifiedToDate === undefined ? now : Date.parse(window.modifiedToDate);
  const { longestMs } = dates;
  const starts: number[] = [];
  for (let at = from; at === from || at + longestMs < to + longestMs; at += longestMs)
    starts.push(at);
  const part = (start: number, nth: number): Observable<ScanPage> => {
    if (nth === starts.length - 1)
      return lane.scan(nth === 0 ? window : { ...window, ...dates.from(start) });
    // Only the last page of the last part ends the scan.
    return lane
      .scan(dates.closed(start, start + longestMs))
      .pipe(map((page) => (page.next ? page : { ...page, next: BEGINNING })));
  };
  return concat(...starts.map(part));
}

/** Reads the list with `whole`, and leaves no permit behind, where it refuses the dates of a scan. */
export function orWhole(
  { permits }: Pick<PageLane, 'permits'>,
  whole: () => Observable<ScanPage>,
): MonoTypeOperatorFunction<ScanPage> {
  return catchError((error: unknown) => {
    if (whyRefused(error) === undefined) return throwError(() => error);
    permits.release(); // the request that failed had taken it
    return whole();
  });
}

/**
 * Why a request with dates failed for good: `refused` by a status that does not pass, or given up (`dated-patience.ts`). Undefined for other
 * errors. Only a request without dates shows whether the dates are to blame, or the API, the key, or the token.
 */
export function whyRefused(error: unknown): GivenUp | undefined {
  if (!(error instanceof CellarstreamError) || error.code !== 'API_STATUS') return undefined;
  return whyGivenUp(error) ?? (isRetryableAtApi(error) ? undefined : 'refused');
}
