import { ByteWriter } from './byte-writer.ts';
import { paginationOf } from './envelope.ts';
import type { ListQuery } from './list-query.ts';
import type { Sort } from './options.ts';
import { selectPage } from './select-page.ts';
import type { Table } from './table.ts';

const COMMA = 44;
/** Bytes of a record, about. */
const RECORD_BYTES = 3_072;

/** The JSON text of a list's answer: `{"data":[...],"pagination":{...}}`. */
export function listPage(table: Table, query: ListQuery, sort: Sort, shuffle?: number): Buffer {
  const { ids, total } =
    query.number === undefined
      ? selectPage(table, {
          offset: query.offset,
          limit: query.pageSize,
          sort,
          ...(query.window && { window: query.window }),
          ...(shuffle !== undefined && { shuffle }),
        })
      : selectOne(table, query, query.number);
  const out = new ByteWriter(ids.length * RECORD_BYTES + 512);
  out.text('{"data":[');
  ids.forEach((id, k) => {
    if (k > 0) out.byte(COMMA);
    table.write(out, id);
  });
  out.text(`],"pagination":${JSON.stringify(paginationOf(query.offset, query.pageSize, total))}}`);
  return out.finish();
}

function selectOne(table: Table, query: ListQuery, number: number) {
  const id = number - table.rules.firstNumber;
  const found = table.has(id) ? [id] : [];
  return { ids: found.slice(query.offset), total: found.length };
}
