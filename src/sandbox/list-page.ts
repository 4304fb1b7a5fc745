import { ByteWriter } from './byte-writer.ts';
import { paginationOf } from './envelope.ts';
import type { PageFault } from './faults.ts';
import type { ListQuery } from './list-query.ts';
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
  /** Most records that a query shows and counts. */
  readonly totalCap: number;
  /** The total is rounded to a multiple of this. */
  readonly totalStep: number;
  /** What goes wrong with this page, and what decides which of its records it befalls. */
  readonly fault?: PageFault & { readonly random: Random };
}

/** The JSON text of a list's answer: `{"data":[...],"pagination":{...}}`. */
export function listPage(table: Table, query: ListQuery, view: ListView): Buffer {
  const { fault, totalCap, totalStep, ...how } = view;
  const { ids, total } =
    query.number === undefined
      ? selectPage(table, {
          offset: query.offset,
          limit: Math.max(0, Math.min(query.pageSize, totalCap - query.offset)),
          ...how,
          ...(query.window && { window: query.window }),
        })
      : selectOne(table, query, query.number, how.hidden);
  const shown = fault?.kind === 'empty' ? [] : ids;
  const told = Math.round(Math.min(total, totalCap) / totalStep) * totalStep;
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
  const pagination = paginationOf(query.offset, query.pageSize, counted);
  out.text(`],"pagination":${JSON.stringify(pagination)}}`);
  return out.finish();
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
