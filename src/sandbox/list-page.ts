// Builds a page of a list: selects and orders its records, and computes the pagination.

import { ByteWriter } from './template.ts';
import type { PageFault } from './faults.ts';
import type { ParsedListQuery, DateWindow } from './list-query.ts';
import type { SandboxSettings, Sort } from './options.ts';
import { patched, type JsonObject } from './resources.ts';
import { mix, type Random } from './random.ts';
import type { RecordTable } from './table.ts';

const COMMA = Buffer.from(',');
/** Approximate size of a record in bytes, from which the initial capacity of the response buffer is computed. */
const RECORD_BYTES = 3_072;

/**
 * Settings of a list's pages that do not come from the request: order, hidden records, deviations from the API's description, and faults.
 */
interface ListView
  extends
    Pick<SandboxSettings, 'readings' | 'totalCap'>,
    Pick<Selection, 'sort' | 'shuffle' | 'hidden'> {
  /** Maps the true number of records to the reported `total_records`. */
  readonly estimate: (total: number) => number;
  /** Fault to apply to this page, and the random numbers that choose the affected records. */
  readonly fault?: (PageFault & { readonly random: Random }) | undefined;
}

export function listPage(table: RecordTable, query: ParsedListQuery, view: ListView): Buffer {
  const { fault, readings, totalCap, estimate } = view;
  const selected = selectIds(table, query, view);
  const { total } = selected;
  const isWrapped =
    readings.behindEnd === 'first-page' && query.offset >= total && query.offset > 0;
  const begin = isWrapped ? 0 : query.offset;
  const { ids } = isWrapped ? selectIds(table, { ...query, offset: 0 }, view) : selected;
  const shown = fault?.kind === 'empty' ? [] : ids;
  const reportedTotal = Math.min(estimate(total), totalCap);
  const hasNext = query.offset + query.pageSize < Math.min(total, totalCap);
  const counted = fault?.kind === 'empty' && fault.pagination === 'empty' ? 0 : reportedTotal;
  const repeated =
    fault?.kind === 'repeat' ? someOf(ids, fault.records ?? 1, fault.random) : NO_IDS;
  const out = new ByteWriter(ids.length * RECORD_BYTES + 512);
  out.text('{"data":[');
  shown.forEach((id, k) => {
    if (k > 0) out.bytes(COMMA);
    table.write(out, id);
    if (!repeated.has(id)) return;
    out.bytes(COMMA);
    if (fault?.kind !== 'repeat' || fault.patch === undefined) return table.write(out, id);
    const record = JSON.parse(table.text(id)!) as JsonObject;
    out.text(JSON.stringify(patched(record, fault.patch)));
  });
  const used = { offset: begin, pageSize: query.pageSize };
  const shownAs = readings.echo === 'asked' ? (query.requested ?? used) : used;
  const pagination = {
    ...paginationOf(begin, query.pageSize, counted),
    current_offset: readings.echo === 'missing' ? undefined : shownAs.offset,
    page_size: readings.echo === 'missing' ? undefined : shownAs.pageSize,
    has_next_page: isWrapped || readings.hasNextPage === 'always' || (counted > 0 && hasNext),
  };
  out.text(`],"pagination":${JSON.stringify(pagination)}}`);
  return out.finish();
}

/** Returns the ids of the records on the requested page, and the number of records that match the query and are not hidden. */
export function selectIds(
  table: RecordTable,
  query: ParsedListQuery,
  view: Pick<ListView, 'sort' | 'shuffle' | 'hidden'> & { readonly totalCap?: number },
): { readonly ids: readonly number[]; readonly total: number } {
  const { sort, shuffle, hidden, totalCap = Infinity } = view;
  if (query.number !== undefined) return selectOne(table, query, query.number, hidden);
  return selectPage(table, {
    offset: query.offset,
    limit: Math.max(0, Math.min(query.pageSize, totalCap - query.offset)),
    sort,
    shuffle,
    hidden,
    window: query.window,
  });
}

const NO_IDS: ReadonlySet<number> = new Set();

function someOf(ids: readonly number[], count: number, random: Random): ReadonlySet<number> {
  const chosen = new Set<number>();
  for (const id of random.shuffled(ids)) {
    if (chosen.size >= count) break;
    chosen.add(id);
  }
  return chosen;
}

function selectOne(
  table: RecordTable,
  query: ParsedListQuery,
  number: number,
  hidden: ((id: number) => boolean) | undefined,
) {
  const id = number - table.rules.firstNumber;
  const found = table.has(id) && !hidden?.(id) ? [id] : [];
  return { ids: found.slice(query.offset), total: found.length };
}

interface Selection {
  readonly offset: number;
  readonly limit: number;
  readonly sort: Sort;
  readonly window?: DateWindow | undefined;
  /**
   * Seed of a random order of records with the same `updated_at`. If it is undefined, they are ordered by key: ascending in `updated-asc`,
   * descending in `updated-desc`.
   */
  readonly shuffle?: number | undefined;
  readonly hidden?: ((id: number) => boolean) | undefined;
}

/** Largest date window, in records, that is sorted to select a page in key order. For a larger one, scanning the whole list is faster. */
const SORTABLE = 16_384;

/** Returns the ids of the records on a page, and the number of records that match the date window and are not hidden. */
export function selectPage(
  table: RecordTable,
  { hidden, ...selection }: Selection,
): { ids: number[]; total: number } {
  const { sort, offset, limit } = selection;
  if (hidden) return selectShown(table, selection, hidden);
  const [low, high] = rangeOf(table, selection);
  const total = high - low;
  const end = Math.min(offset + limit, total);
  if (offset >= end) return { ids: [], total };
  const falling = sort === 'key-desc' || sort === 'updated-desc';
  // A descending list is an ascending one read backwards.
  const [first, last] = falling ? [total - end, total - offset] : [offset, end];
  const ids = sort.startsWith('updated')
    ? byUpdated(table, low, high, low + first, low + last, selection.shuffle)
    : byKey(table, selection, low, high, first, last);
  return { ids: falling ? ids.reverse() : ids, total };
}

/** Selects a page and omits hidden records, by examining every record that matches the date window. */
function selectShown(table: RecordTable, selection: Selection, hidden: (id: number) => boolean) {
  const { offset, limit } = selection;
  const all = selectPage(table, { ...selection, offset: 0, limit: table.size });
  const ids = all.ids.filter((id) => !hidden(id));
  return { ids: ids.slice(offset, offset + limit), total: ids.length };
}

/** Returns the begin and the end (exclusive) of a date window, as indexes in the order of `updated_at`; the whole list without a window. */
function rangeOf(table: RecordTable, { window }: Selection): [number, number] {
  if (!window) return [0, table.size];
  const { from, to, inclusive } = window;
  const low = table.byUpdated.rank((id) =>
    inclusive ? table.updatedAt(id) < from : table.updatedAt(id) <= from,
  );
  const high = table.byUpdated.rank((id) =>
    inclusive ? table.updatedAt(id) <= to : table.updatedAt(id) < to,
  );
  return [low, Math.max(low, high)];
}

function byKey(
  table: RecordTable,
  { window }: Selection,
  low: number,
  high: number,
  first: number,
  last: number,
): number[] {
  if (!window) return table.byKey.slice(first, last);
  if (high - low <= SORTABLE) {
    return Array.from(
      Uint32Array.from(table.byUpdated.slice(low, high)).sort().subarray(first, last),
    );
  }
  return walk(table, window, first, last);
}

/**
 * Returns the ids of the records in a date window in key order, from index `first` to index `last` (excluded) within the window. May scan
 * the whole list, which takes some 2 ms per million records.
 */
function walk(table: RecordTable, window: DateWindow, first: number, last: number): number[] {
  const updated = table.updated;
  // Times are whole ms, so an exclusive bound equals an inclusive one at the next ms.
  const from = window.inclusive ? window.from : Math.floor(window.from) + 1;
  const to = window.inclusive ? window.to : Math.ceil(window.to) - 1;
  const ids: number[] = [];
  let seen = 0;
  for (const chunk of table.byKey.chunks()) {
    for (const id of chunk) {
      const at = updated[id]!;
      if (at < from || at > to || seen++ < first) continue;
      ids.push(id);
      if (ids.length === last - first) return ids;
    }
  }
  return ids;
}

function byUpdated(
  table: RecordTable,
  low: number,
  high: number,
  first: number,
  last: number,
  shuffle: number | undefined,
): number[] {
  if (shuffle === undefined) return table.byUpdated.slice(first, last);
  // Shuffling needs complete groups of ties.
  const [earliest] = table.byUpdated.slice(first, first + 1);
  const [latest] = table.byUpdated.slice(last - 1, last);
  const begin = Math.max(
    low,
    table.byUpdated.rank((id) => table.updatedAt(id) < table.updatedAt(earliest!)),
  );
  const end = Math.min(
    high,
    table.byUpdated.rank((id) => table.updatedAt(id) <= table.updatedAt(latest!)),
  );
  return table.byUpdated
    .slice(begin, end)
    .sort((a, b) => table.updatedAt(a) - table.updatedAt(b) || mix(shuffle, a) - mix(shuffle, b))
    .slice(first - begin, last - begin);
}

/** The pagination object of a list response. */
export interface Pagination {
  readonly current_offset: number;
  readonly page_size: number;
  readonly total_records: number;
  readonly total_pages: number;
  readonly current_page: number;
  readonly pages_remaining: number;
  readonly has_next_page: boolean;
  readonly has_previous_page: boolean;
}

/**
 * Computes the pagination. `page_size` is `pageSize`, even if the page has fewer records. `current_page` counts from 1, and is rounded down
 * for a list offset within a page.
 */
export function paginationOf(offset: number, pageSize: number, total: number): Pagination {
  const pagesRemaining = Math.max(0, Math.ceil((total - offset - pageSize) / pageSize));
  return {
    current_offset: offset,
    page_size: pageSize,
    total_records: total,
    total_pages: Math.ceil(total / pageSize),
    current_page: Math.floor(offset / pageSize) + 1,
    pages_remaining: pagesRemaining,
    has_next_page: pagesRemaining > 0,
    has_previous_page: offset > 0,
  };
}
