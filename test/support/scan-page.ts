import { BEGINNING } from '../../src/streams/anchors.ts';
import type { ScanPage } from '../../src/streams/pages.ts';

/** An empty page of a scan, the last one or not; `serverTime` in ms. */
export function scanPage(last: boolean, serverTime?: number): ScanPage {
  return {
    answer: {
      data: [],
      pagination: { total_records: 0, has_next_page: !last },
      span: { begin: 1, end: 2 },
      serverTime,
    },
    offset: 0,
    next: last ? undefined : BEGINNING,
  };
}
