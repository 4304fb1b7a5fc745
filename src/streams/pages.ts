import { defer, EMPTY, expand, map, of, switchMap } from 'rxjs';
import type { Observable } from 'rxjs';
import type { JsonValue } from '../schemas/json.ts';
import { BEGINNING, join } from './anchors.ts';
import type { Position } from './anchors.ts';
import type { Answer } from './request.ts';

/** A page of a scan. */
export interface ScanPage {
  readonly answer: Answer;
  readonly offset: number;
  /** Where the scan goes on once this page is dealt with; undefined when it was the last. */
  readonly next: Position | undefined;
}

/** What is wrong with a list while it is paged. None of it loses a record by itself. */
export type ScanTrouble =
  /** No anchor in the page: records were removed before it. The scan steps back. */
  | 'stepped-back'
  /** Too many steps back in a row: the scan begins again. */
  | 'adrift'
  /** Unchanged records have changed places: the list has no total order. The scan is repeated. */
  | 'reordered'
  /** Fewer records than a `total_records` that held still. The scan is repeated. */
  | 'short'
  /** Still reordered or short after the last repetition: records may have been missed. */
  | 'unsettled';

export interface PagesOptions {
  /** Asks for one page; must answer asynchronously (expand over 1,700 synchronous ones overflows the stack). */
  readonly request: (query: {
    readonly offset: number;
    readonly pageSize: number;
  }) => Observable<Answer>;
  /** A record's key; undefined for one that has none. */
  readonly keyOf: (record: JsonValue) => string | undefined;
  /** Records a page. Default 1,000, the most that the API gives. */
  readonly pageSize?: number;
  /** How many records before its end the next page begins. Default 10, at most half a page. */
  readonly overlap?: number;
  /** Where to begin. Default the beginning. A scan that is resumed is not held against the total. */
  readonly from?: Position;
  /** Times a scan that did not add up is repeated, each with five times the overlap. Default 2. */
  readonly repeats?: number;
  /** Waited for before each request: back-pressure. Default no wait. */
  readonly room?: () => Observable<unknown>;
  readonly onTrouble?: (trouble: ScanTrouble, offset: number) => void;
}

/**
 * Reads a list whole, page by page, as a chain that expands while `has_next_page`; completes when
 * the last page has been emitted. Nothing that stands still in the list is missed, whatever is
 * added, changed and removed meanwhile, if the list has a total order: see {@link join}. Records
 * come more than once.
 *
 * A list that betrays itself, by an order that changes from request to request or by fewer records
 * than it counts, is read again with a larger overlap, and reported.
 */
export function pages(options: PagesOptions): Observable<ScanPage> {
  const { request, keyOf, pageSize = 1_000, from = BEGINNING, repeats = 2 } = options;
  const { room = () => of(undefined), onTrouble } = options;
  const mostOverlap = Math.max(1, Math.floor(pageSize / 2));

  return defer(() => {
    let overlap = Math.min(options.overlap ?? 10, mostOverlap);
    let round = 0;
    let tally = from.offset === 0 ? newTally() : undefined;
    let reordered = false;

    const take = (at: Position, answer: Answer): ScanPage => {
      const { data, pagination } = answer;
      tally?.add(data, keyOf, pagination.total_records);
      const joint = join(at, data, { pageSize, overlap, keyOf });
      const page = (next: Position | undefined): ScanPage => ({ answer, offset: at.offset, next });

      if (joint.swapped && !reordered) onTrouble?.('reordered', at.offset);
      reordered ||= joint.swapped;
      if (!joint.anchored) {
        onTrouble?.(joint.adrift ? 'adrift' : 'stepped-back', at.offset);
        return page(joint.next);
      }
      if (pagination.has_next_page && data.length > 0) return page(joint.next);

      const short = tally?.short() ?? false;
      if (short) onTrouble?.('short', at.offset);
      if (!short && !reordered) return page(undefined);
      if (round >= repeats) {
        onTrouble?.('unsettled', at.offset);
        return page(undefined);
      }
      round += 1;
      overlap = Math.min(overlap * 5, mostOverlap);
      tally = newTally();
      reordered = false;
      return page(BEGINNING);
    };
    const read = (at: Position): Observable<ScanPage> =>
      room().pipe(
        switchMap(() => request({ offset: at.offset, pageSize })),
        map((answer) => take(at, answer)),
      );
    return read(from).pipe(expand(({ next }) => (next ? read(next) : EMPTY)));
  });
}

/** Counts distinct records, to hold them against a total that did not change. */
function newTally() {
  const seen = new Set<string>();
  let least = Infinity;
  let most = 0;
  return {
    add: (data: readonly JsonValue[], keyOf: PagesOptions['keyOf'], total: number): void => {
      least = Math.min(least, total);
      most = Math.max(most, total);
      for (const record of data) {
        const key = keyOf(record);
        if (key !== undefined) seen.add(key);
        else least = 0; // it can't be counted, so nothing can be said
      }
    },
    short: (): boolean => least === most && seen.size < most,
  };
}
