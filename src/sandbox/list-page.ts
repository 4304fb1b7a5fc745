// A page of a list as JSON: which records are on it, in which order, and its pagination.

import { ByteWriter } from './template.ts';
import type { PageFault } from './faults.ts';
import type { ListQuery, Window } from './list-query.ts';
import type { Readings, Sort } from './options.ts';
import { patched } from './resources.ts';
import type { Random } from './random.ts';
import type { JsonObject } from './resources.ts';
import type { Table } from './table.ts';
import { mix } from './random.ts';

const COMMA = 44;
/** Bytes of a record, about. */
const RECORD_BYTES = 3_072;

/** How a list is shown, whatever is asked of it. */
interface ListView extends Pick<Selection, 'sort' | 'shuffle' | 'hidden'> {
  /** Default: the page that was asked for, honestly. */
  readonly readings?: Pick<Readings, 'echo' | 'behindEnd' | 'hasNextPage'>;
  /** Most records that a query shows and counts. Default: all. */
  readonly totalCap?: number;
  /** `total_records` for the true number of records. Default the same. */
  readonly estimate?: (total: number) => number;
  /** What goes wrong with this page, and what decides which of its records it befalls. */
  readonly fault?: PageFault & { readonly random: Random };
}

/** The JSON text of a list's answer: `{"data":[...],"pagination":{...}}`. */
export function listPage(table: Table, query: ListQuery, view: ListView): Buffer {
  const { fault, readings, totalCap = Infinity, estimate = (total) => total } = view;
  const selected = selectIds(table, query, view);
  const { total } = selected;
  const isWrapped =
    readings?.behindEnd === 'first-page' && query.offset >= total && query.offset > 0;
  const begin = isWrapped ? 0 : query.offset;
  const { ids } = isWrapped ? selectIds(table, { ...query, offset: 0 }, view) : selected;
  const shown = fault?.kind === 'empty' ? [] : ids;
  const told = Math.min(estimate(total), totalCap);
  const hasNext = query.offset + query.pageSize < Math.min(total, totalCap);
  const counted = fault?.kind === 'empty' && fault.pagination === 'empty' ? 0 : told;
  const repeated = fault?.kind === 'repeat' ? someOf(ids, fault.records ?? 1, fault.random) : NONE;
  const out = new ByteWriter(ids.length * RECORD_BYTES + 512);
  out.text('{"data":[');
  shown.forEach((id, k) => {
    if (k > 0) out.byte(COMMA);
    table.write(out, id);
    if (!repeated.has(id)) return;
    out.byte(COMMA);
    if (fault?.kind !== 'repeat' || fault.patch === undefined) return table.write(out, id);
    const record = JSON.parse(table.text(id)!) as JsonObject;
    out.text(JSON.stringify(patched(record, fault.patch)));
  });
  const used = { offset: begin, pageSize: query.pageSize };
  const shownAs = readings?.echo === 'asked' ? (query.asked ?? used) : used;
  const pagination = {
    ...paginationOf(begin, query.pageSize, counted),
    current_offset: readings?.echo === 'missing' ? undefined : shownAs.offset,
    page_size: readings?.echo === 'missing' ? undefined : shownAs.pageSize,
    ...(counted > 0 && { has_next_page: hasNext }),
    ...((isWrapped || readings?.hasNextPage === 'always') && { has_next_page: true }),
  };
  out.text(`],"pagination":${JSON.stringify(pagination)}}`);
  return out.finish();
}

/** The ids of the page that a request asks for, and how many records match in all. */
export function selectIds(
  table: Table,
  query: ListQuery,
  view: Pick<ListView, 'sort' | 'shuffle' | 'hidden' | 'totalCap'>,
): { readonly ids: readonly number[]; readonly total: number } {
  const { sort, shuffle, hidden, totalCap = Infinity } = view;
  if (query.number !== undefined) return selectOne(table, query, query.number, hidden);
  return selectPage(table, {
    offset: query.offset,
    limit: Math.max(0, Math.min(query.pageSize, totalCap - query.offset)),
    sort,
    ...(shuffle !== undefined && { shuffle }),
    ...(hidden && { hidden }),
    ...(query.window && { window: query.window }),
  });
}

const NONE: ReadonlySet<number> = new Set();

function someOf(ids: readonly number[], count: number, random: Random): ReadonlySet<number> {
  const chosen = new Set<number>();
  for (const id of random.shuffled(ids)) {
    if (chosen.size >= count) break;
    chosen.add(id);
  }
  return chosen;
}

function selectOne(
  table: Table,
  query: ListQuery,
  number: number,
  hidden: ((id: number) => boolean) | undefined,
) {
  const id = number - table.rules.firstNumber;
  const found = table.has(id) && !hidden?.(id) ? [id] : [];
  return { ids: found.slice(query.offset), total: found.length };
}

/** What of a list is asked for. */
interface Selection {
  readonly offset: number;
  readonly limit: number;
  readonly sort: Sort;
  readonly window?: Window;
  /** Orders ties by chance, another for each number; undefined leaves them by key. */
  readonly shuffle?: number;
  /** Records that are passed over as if they were not there. */
  readonly hidden?: (id: number) => boolean;
}

/** Up to this many matches are sorted by key; of more, the list is walked in key order instead. */
const SORTABLE = 16_384;

/** The ids of a page, and how many records match in all. */
export function selectPage(
  table: Table,
  { hidden, ...selection }: Selection,
): { ids: number[]; total: number } {
  const { sort, offset, limit } = selection;
  if (hidden) return selectShown(table, selection, hidden);
  const [low, high] = rangeOf(table, selection);
  const total = high - low;
  const end = Math.min(offset + limit, total);
  if (offset >= end) return { ids: [], total };
  const falling = sort === 'key-desc' || sort === 'updated-desc';
  // A falling list is a rising one read from its end.
  const [first, last] = falling ? [total - end, total - offset] : [offset, end];
  const ids = sort.startsWith('updated')
    ? byUpdated(table, low, high, low + first, low + last, selection.shuffle)
    : byKey(table, selection, low, high, first, last);
  return { ids: falling ? ids.reverse() : ids, total };
}

/** Looks at every match, to leave out those that are hidden. */
function selectShown(table: Table, selection: Selection, hidden: (id: number) => boolean) {
  const { offset, limit } = selection;
  const all = selectPage(table, { ...selection, offset: 0, limit: table.size });
  const ids = all.ids.filter((id) => !hidden(id));
  return { ids: ids.slice(offset, offset + limit), total: ids.length };
}

/** Places in `byUpdated` between which the window lies; all of them without one. */
function rangeOf(table: Table, { window }: Selection): [number, number] {
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
  table: Table,
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

/** The matches from the `first` up to the `last`, looking at every record: about 2 ms a million. */
function walk(table: Table, window: Window, first: number, last: number): number[] {
  const updated = table.updated;
  // Times are whole ms, so bounds that are left out are those between the next ones.
  const from = window.inclusive ? window.from : Math.floor(window.from) + 1;
  const to = window.inclusive ? window.to : Math.ceil(window.to) - 1;
  const ids: number[] = [];
  let seen = 0;
  for (const stretch of table.byKey.stretches()) {
    for (const id of stretch) {
      const at = updated[id]!;
      if (at < from || at > to || seen++ < first) continue;
      ids.push(id);
      if (ids.length === last - first) return ids;
    }
  }
  return ids;
}

function byUpdated(
  table: Table,
  low: number,
  high: number,
  first: number,
  last: number,
  shuffle: number | undefined,
): number[] {
  if (shuffle === undefined) return table.byUpdated.slice(first, last);
  // Whole groups of ties are needed to shuffle them: from the first of the first to the last of the last.
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

/** The pagination object of a list's answer. */
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
 * Works out the eight fields. `page_size` is what was asked for, not what came; pages are counted
 * from 1; an offset between pages belongs to the page it falls in.
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
