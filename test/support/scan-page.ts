import type { JsonValue } from '../../src/schemas/json/json.ts';
import { records } from './records.ts';
import { BEGINNING } from '../../src/streams/paging/anchors.ts';
import type { ScanPage } from '../../src/streams/paging/pages.ts';

/** A page of a scan, the last one or not; `serverTime` in ms. */
export function scanPage(
  last: boolean,
  serverTime?: number,
  data: readonly JsonValue[] = [],
): ScanPage {
  return {
    answer: {
      data: records(data),
      total: data.length,
      hasNext: !last,
      span: { begin: 1, end: 2 },
      serverTime,
    },
    offset: 0,
    next: last ? undefined : BEGINNING,
  };
}
