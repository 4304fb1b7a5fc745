import { ByteWriter } from './byte-writer.ts';
import { paginationOf } from './envelope.ts';
import type { PageFault } from './faults.ts';
import type { ListQuery } from './list-query.ts';
import type { Readings } from './options.ts';
import { patched } from './patch.ts';
import type { Random } from './random.ts';
import type { JsonObject } from './resources.ts';
import { selectPage } from './select-page.ts';
import type { Selection } from './select-page.ts';
import type { Table } from './table.ts';

const COMMA = 44;
/** Bytes of a record, about. */
const RECORD_BYTES = 3_072;

/** How a list is shown, whatever is asked of it. */
export interface ListView extends Pick<Selection, 'sort' | 'shuffle' | 'hidden'> {
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
