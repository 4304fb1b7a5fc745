import type { Window } from './list-query.ts';
import type { Sort } from './options.ts';
import { mix } from './random.ts';
import type { Table } from './table.ts';

/** What of a list is asked for. */
export interface Selection {
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
