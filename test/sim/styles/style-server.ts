import type { JsonObject } from '../../../src/schemas/json/json.ts';
import type { Given } from '../../support/answering.ts';
import type { Chance } from '../../support/chance.ts';
import { timeOf } from './style.ts';
import type { Style } from './style.ts';
import type { Row, StyleList } from './style-list.ts';

export const ORIGIN = 'http://sim';

/** A request as it arrives. */
export interface Asked {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  readonly body: string | undefined;
}

/** A page of rows, and where it is. */
interface Page {
  readonly from: number;
  readonly size: number;
  /** Cursor of the same place, of a page that is empty although the list continues. */
  readonly again?: string;
  /** Cursor that was asked for, where the page shows it as that of the next page. */
  readonly repeated?: string;
}

/** Answers the requests for one list as a style has it: no faults, no quota, no token. */
export class StyleServer {
  readonly #style: Style;
  readonly #list: StyleList;
  readonly #chance: Chance;
  /** Answer to a cursor that has expired: a status, or `errors`, a page of errors with status 200. */
  expired: number | 'errors' = 410;
  /** Whether each page behind a cursor shows this cursor as that of the next page. */
  isStuck = false;
  /** Number of times that all cursors have expired. */
  #expiries = 0;
  /** Called with the records of each page, after the page was made. `isOfAll`: it is a page of the whole list, not of a window of dates. */
  onPage: (ids: readonly number[], isOfAll: boolean) => void = () => undefined;

  constructor(style: Style, list: StyleList, chance: Chance) {
    this.#style = style;
    this.#list = list;
    this.#chance = chance;
  }

  /** Lets all cursors expire that were shown so far. */
  expireCursors(): void {
    this.#expiries += 1;
  }

  answer({ method, target, body }: Asked): Given {
    const { names, total, one } = this.#style;
    const url = new URL(target, ORIGIN);
    const [, , list, ...rest] = url.pathname.split('/').map(decodeURIComponent);
    if (list !== names.list) return given(404, { error: 'no such path' });
    const [name] = rest;
    if (name === 'count' && total === 'request')
      return given(200, { n: this.#matching(url.searchParams).length });
    if (name !== undefined) {
      const key = one === 'query' ? url.searchParams.get('id') : name;
      return one ? this.#one(String(key)) : given(404, { error: 'no such path' });
    }
    if (method !== this.#style.method) return given(405, { error: 'no such method' });
    return this.#page(url, method === 'POST' ? (JSON.parse(body ?? '{}') as JsonObject) : {});
  }

  #one(key: string): Given {
    const row = this.#list.rows().find(({ id }) => this.#list.keyOf(id) === key);
    if (!row) return given(404, { error: 'no such record' });
    return given(200, this.#style.one === 'query' ? { found: row.json } : row.json);
  }

  #page(url: URL, body: JsonObject): Given {
    const { names, paging, limit, method, more, total, next } = this.#style;
    const rows = this.#sorted(this.#matching(url.searchParams));
    const sent = names.variables === undefined ? body : (body[names.variables] as JsonObject);
    const parameter = (name: string): string | undefined => {
      const value = method === 'GET' ? url.searchParams.get(name) : sent[name];
      return typeof value === 'string' || typeof value === 'number' ? String(value) : undefined;
    };
    const asked = Number(parameter(names.limit) ?? limit);
    if (!(asked >= 1)) return given(400, { error: 'a page has a record at least' });
    const page = this.#placeOf(rows, parameter, url, Math.min(asked, this.#style.most));
    if (page === 'errors') return given(200, { errors: ['no such cursor'] });
    if (typeof page === 'number') return given(page, { error: 'no such cursor' });
    const { from, size } = page;
    const isEmptied = page.again !== undefined;
    const shown = isEmptied ? [] : rows.slice(from, from + size);
    const end = from + shown.length;
    const hasMore = paging !== 'none' && shown.length > 0 && end < rows.length;
    const headers: Record<string, string> = {};
    const members: JsonObject = {};
    const put = (at: 'body' | 'header', name: string, value: string | number | boolean | null) => {
      if (at === 'body') members[name] = value;
      else if (value !== null) headers[name.toLowerCase()] = String(value);
    };
    if (total && total !== 'request') put(total, names.total, rows.length);
    if (more) put(more, names.more, hasMore);
    if (paging === 'cursor' || paging === 'link') {
      const isTrailing = this.#style.isTrailing && shown.length > 0;
      const after = hasMore || isTrailing ? this.#cursorAt(end, shown.at(-1)!) : null;
      const cursor = page.repeated ?? page.again ?? after;
      const address = cursor !== null && paging === 'link' ? this.#link(url, cursor) : cursor;
      if (next !== 'Link') put(next, names.next, address);
      else if (address !== null) headers.link = `<${address}>; rel="next"`;
    }
    const answer = given(
      200,
      inPlace(
        names.records,
        shown.map(({ json }) => json),
        members,
      ),
      headers,
    );
    this.onPage(
      shown.map(({ id }) => id),
      !url.searchParams.has(names.from),
    );
    return answer;
  }

  /** The rows of a window of dates, or all. */
  #matching(query: URLSearchParams): Row[] {
    const { names, times, dates } = this.#style;
    const [from, to] = [query.get(names.from), query.get(names.to)];
    const rows = [...this.#list.rows()];
    if (!dates || from === null) return rows;
    const [low, high] = [timeOf(times, from), to === null ? Infinity : timeOf(times, to)];
    return rows.filter(({ stamp }) => stamp >= low && stamp <= high);
  }

  #sorted(rows: readonly Row[]): readonly Row[] {
    const { sort, isUnstable } = this.#style;
    const shown = isUnstable ? this.#chance.shuffled(rows) : rows;
    const sign = sort.endsWith('asc') ? 1 : -1;
    const tie = (a: Row, b: Row) => (isUnstable ? 0 : a.id - b.id);
    return shown.toSorted((a, b) =>
      sort.startsWith('key') ? sign * (a.id - b.id) : sign * (a.stamp - b.stamp || tie(a, b)),
    );
  }

  #placeOf(
    rows: readonly Row[],
    parameter: (name: string) => string | undefined,
    url: URL,
    size: number,
  ): Page | number | 'errors' {
    const { paging, names, first } = this.#style;
    switch (paging) {
      case 'none':
        return { from: 0, size: rows.length };
      case 'offset':
        return { from: Number(parameter(names.offset) ?? 0), size };
      case 'page':
      case 'numbered': {
        const number = Number(parameter(names.page) ?? first) - first;
        return number >= 0 ? { from: number * size, size } : 400;
      }
      case 'after':
        return this.#after(rows, parameter(names.after), size);
      case 'cursor':
      case 'link': {
        const cursor =
          paging === 'link' ? url.searchParams.get(names.cursor) : parameter(names.cursor);
        if (cursor && Number.parseInt(cursor) !== this.#expiries) return this.expired;
        const from = cursor ? this.#behind(rows, cursor) : 0;
        const isEmptied =
          this.#style.hasEmptyPages && cursor && !cursor.endsWith('~') && this.#chance.is(0.1);
        const repeated = this.isStuck && cursor ? { repeated: cursor } : {};
        return { from, size, ...(isEmptied && { again: `${cursor}~` }), ...repeated };
      }
    }
  }

  #after(rows: readonly Row[], after: string | undefined, size: number): Page | number {
    const { toDeleted, sort } = this.#style;
    if (after === undefined) return { from: 0, size };
    const id = Number(after);
    const isKnown = rows.some((row) => row.id === id);
    if (!isKnown && typeof toDeleted === 'number') return toDeleted;
    if (!isKnown && toDeleted === 'front') return { from: 0, size };
    const isBehind = (row: Row) => (sort === 'key-asc' ? row.id > id : row.id < id);
    const from = rows.findIndex(isBehind);
    return { from: from < 0 ? rows.length : from, size };
  }

  #cursorAt(end: number, { id, stamp }: Row): string {
    const place = this.#style.cursor === 'offset' ? { end } : { id, stamp };
    return `${this.#expiries}!${Buffer.from(JSON.stringify(place)).toString('base64url')}`;
  }

  /** Index of the first row behind a cursor. */
  #behind(rows: readonly Row[], cursor: string): number {
    const text = Buffer.from(cursor.replace(/^\d+!|~/g, ''), 'base64url').toString();
    const place = JSON.parse(text) as { end: number } | { id: number; stamp: number };
    if ('end' in place) return place.end;
    const { sort } = this.#style;
    const sign = sort.endsWith('asc') ? 1 : -1;
    const order = (row: Row) =>
      sort.startsWith('key') ? row.id - place.id : row.stamp - place.stamp || row.id - place.id;
    const from = rows.findIndex((row) => sign * order(row) > 0);
    return from < 0 ? rows.length : from;
  }

  /** Address of the page at a cursor, with all parameters of the request. */
  #link(url: URL, cursor: string): string {
    const { names, isRelative } = this.#style;
    const next = new URL(url);
    next.searchParams.set(names.cursor, cursor);
    return isRelative ? next.pathname + next.search : next.href;
  }
}

function given(status: number, body: unknown, headers: Record<string, string> = {}): Given {
  return {
    status,
    headers: { ...headers, 'content-type': 'application/json' },
    text: JSON.stringify(body),
  };
}

/** A body with the records at their place, and the other members beside it. */
function inPlace(path: readonly string[], records: JsonObject[], members: JsonObject): unknown {
  if (path.length === 0) return records;
  const [name, ...rest] = path;
  const inner = inPlace(rest, records, {});
  return { ...members, [name!]: inner };
}
