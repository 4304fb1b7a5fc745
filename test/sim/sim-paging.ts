import type { JsonObject } from '../../src/schemas/json/json.ts';

/** How the API reads `offset` and `pageSize`, and what it says of its pages. */
export interface Paging {
  /** Where a page begins whose `offset` is no multiple of its size. `multiples`: such a page is answered with 400. */
  readonly offsets: 'exact' | 'rounded' | 'nearest' | 'multiples';
  /** Which `current_offset` and `page_size` a page states: those used, those asked, or none. */
  readonly echo: 'used' | 'asked' | 'missing';
  /** Most records of a page. */
  readonly most: number;
  /** Whether an offset behind the end is answered with the first page, and each page claims a next one. */
  readonly wraps: boolean;
  readonly total: 'number' | 'text' | 'missing';
  /** Pages of more records, at this offset or behind it, are answered with 504. */
  readonly large: { readonly offset: number; readonly pageSize: number } | undefined;
  /** Offset from which on nothing is served. `offset`: such an offset is answered with 400; `end`: so is a page that reaches behind it. */
  readonly limit: { readonly at: number; readonly of: 'offset' | 'end' } | undefined;
  /** Most records that a query shows and counts. */
  readonly cap: number;
}

/** A record by which each page that holds it fails with 500, for a while. Times are in ms since the epoch. */
export interface Poison {
  readonly key: number;
  readonly from: number;
  readonly to: number;
}

/** Paging as the API's description has it. */
export const PAGING_AS_WRITTEN: Paging = {
  offsets: 'exact',
  echo: 'missing',
  most: Infinity,
  wraps: false,
  total: 'number',
  large: undefined,
  limit: undefined,
  cap: Infinity,
};

/** Divisor of the seed: a prime that no other fault is drawn by. */
const DIVISOR = 11;
/** Remainders of the seeds in whose runs the API pages in another way than is written. */
const REMAINDERS = [3, 6];

/** All ways other than what is written, for a page size. */
function ways(pageSize: number): readonly (Partial<Paging> | 'poison')[] {
  const part = Math.ceil(pageSize / 3);
  return [
    { offsets: 'rounded', echo: 'used' },
    { offsets: 'rounded', echo: 'asked' },
    { offsets: 'rounded' },
    { offsets: 'nearest' },
    { offsets: 'multiples' },
    { most: part, echo: 'used' },
    { most: part },
    { wraps: true, echo: 'used' },
    { wraps: true },
    'poison',
    { large: { offset: pageSize, pageSize: part } },
    { total: 'missing' },
    { total: 'text' },
    'poison',
    { limit: { at: Math.ceil(1.5 * pageSize), of: 'offset' } },
    { limit: { at: Math.ceil(1.5 * pageSize), of: 'end' } },
    { cap: Math.ceil(pageSize / 10) * 10 },
  ];
}

/** How the API pages in a run, by its seed; `poison`: as is written, and one record makes its pages fail for a while. */
export function pagingOf(seed: number, pageSize: number): Paging | 'poison' {
  const place = REMAINDERS.indexOf(seed % DIVISOR);
  if (place < 0) return PAGING_AS_WRITTEN;
  const all = ways(pageSize);
  const nth = Math.floor(seed / DIVISOR) * REMAINDERS.length + place;
  const way = all[nth % all.length]!;
  return way === 'poison' ? way : { ...PAGING_AS_WRITTEN, ...way };
}

/** The `offset` and `pageSize` of a page. */
export interface Place {
  readonly offset: number;
  readonly pageSize: number;
}

/** The place that is used for the one that is asked for, or the status of a refusal. */
export function placeOf(asked: Place, { offsets, most, large, limit }: Paging): Place | 400 | 504 {
  const { offset } = asked;
  const pageSize = Math.min(asked.pageSize, most);
  if (large && offset >= large.offset && pageSize > large.pageSize) return 504;
  if (limit && (limit.of === 'end' ? offset + pageSize > limit.at : offset >= limit.at)) return 400;
  if (offsets === 'exact') return { offset, pageSize };
  if (offsets === 'multiples') return offset % pageSize === 0 ? { offset, pageSize } : 400;
  const round = offsets === 'rounded' ? Math.floor : Math.round;
  return { offset: round(offset / pageSize) * pageSize, pageSize };
}

/** The pagination of a page. */
export function paginationOf(
  { asked, used }: { readonly asked: Place; readonly used: Place },
  total: number,
  { echo, wraps, total: form }: Paging,
): JsonObject {
  const { offset, pageSize } = echo === 'asked' ? asked : used;
  return {
    ...(form !== 'missing' && { total_records: form === 'text' ? String(total) : total }),
    has_next_page: wraps || used.offset + used.pageSize < total,
    ...(echo !== 'missing' && { current_offset: offset, page_size: pageSize }),
  };
}
