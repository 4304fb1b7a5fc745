import { catchError, concat, map, throwError } from 'rxjs';
import type { MonoTypeOperatorFunction, Observable } from 'rxjs';
import type { PageLane } from '../../account/page-lane.ts';
import { CellarstreamError, isRetryableAtApi } from '../../core/errors.ts';
import { giveUpReason } from '../../streams/decode/dated-patience.ts';
import type { GiveUpReason } from '../../streams/decode/dated-patience.ts';
import { BEGINNING } from '../../streams/paging/anchors.ts';
import type { ListDates } from '../../streams/paging/list-dates.ts';
import type { ScanPage } from '../../streams/paging/pages.ts';
import type { Window } from '../../streams/paging/poll.ts';

/**
 * Scans the records modified in a window of dates. A window longer than the list accepts (`dates.longestMs`) is scanned in consecutive
 * parts.
 */
export function datedScan(
  lane: Pick<PageLane, 'scan'>,
  dates: ListDates,
  window: Window,
  now: number,
): Observable<ScanPage> {
  const from = dates.timeOf(window.from);
  const to = window.to === undefined ? now : dates.timeOf(window.to);
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

/** Operator for a scan of windows of dates: continues with `fullScan` if a request with dates is refused, or still fails after retries. */
export function orFullScan(
  { pageSlots }: Pick<PageLane, 'pageSlots'>,
  fullScan: () => Observable<ScanPage>,
): MonoTypeOperatorFunction<ScanPage> {
  return catchError((error: unknown) => {
    if (dateRefusal(error) === undefined) return throwError(() => error);
    pageSlots.release(); // acquired for the refused request
    return fullScan();
  });
}

/**
 * Returns why a request with dates has finally failed: the API refused it, or retries were given up. Undefined for any other error. Only a
 * request without dates shows whether the dates are the cause.
 */
export function dateRefusal(error: unknown): GiveUpReason | undefined {
  if (!(error instanceof CellarstreamError) || error.code !== 'API_STATUS') return undefined;
  return giveUpReason(error) ?? (isRetryableAtApi(error) ? undefined : 'refused');
}
