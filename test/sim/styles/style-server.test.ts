import { describe, expect, it } from 'vitest';
import { parseDescription } from '../../../src/description/read-description.ts';
import { isJsonObject, pointerNames, valueAt } from '../../../src/schemas/json/json.ts';
import type { JsonObject, JsonValue } from '../../../src/schemas/json/json.ts';
import type { Given } from '../../support/answering.ts';
import { Chance } from '../../support/chance.ts';
import { SimTime } from '../sim-time.ts';
import { StyleList } from './style-list.ts';
import { ORIGIN, StyleServer } from './style-server.ts';
import { descriptionText, drawStyle, PAGINGS, timeOf, timeText } from './style.ts';
import type { Style } from './style.ts';

const QUOTAS = { perMinute: 100, loginsPerMinute: 10 };
const SEEDS = Array.from({ length: 300 }, (_, seed) => seed);
const MAX_PAGES = 200;

interface Model {
  readonly style: Style;
  readonly list: StyleList;
  readonly server: StyleServer;
}

function modelOf(seed: number, more: Partial<Style> = {}): Model {
  const chance = new Chance(seed);
  // The usual page loop ends at an empty page.
  const usual = { isTrailing: false, hasEmptyPages: false };
  const style = { ...drawStyle(new Chance(seed, 'style')), ...usual, ...more };
  const list = new StyleList(style, chance, new SimTime(Date.UTC(2026, 0, 1)), 100);
  return { style, list, server: new StyleServer(style, list, chance) };
}

const PLACES: Readonly<Record<Style['paging'], keyof Style['names'] | undefined>> = {
  ...{ offset: 'offset', page: 'page', numbered: 'page', after: 'after', cursor: 'cursor' },
  ...{ link: undefined, none: undefined },
};

/** Asks for a page. @param at What moves; a link is an address. */
function ask({ style, server }: Model, at: string | number | undefined): Given {
  const { names, method, limit, paging } = style;
  if (paging === 'link' && at !== undefined) {
    const { pathname, search } = new URL(String(at), ORIGIN);
    return server.answer({ method, target: pathname + search, body: undefined });
  }
  const place = PLACES[paging];
  const sent = {
    ...(paging !== 'numbered' && paging !== 'none' && { [names.limit]: limit }),
    ...(place && at !== undefined && { [names[place] as string]: at }),
  };
  const path = `/api/${names.list}`;
  if (method === 'POST') {
    const body = names.variables === undefined ? sent : { [names.variables]: sent };
    return server.answer({ method, target: path, body: JSON.stringify(body) });
  }
  const query = new URLSearchParams(
    Object.entries(sent).map(([name, value]): [string, string] => [name, String(value)]),
  );
  return server.answer({ method, target: `${path}?${query.toString()}`, body: undefined });
}

function rowsOf({ style }: Model, { text }: Given): readonly JsonObject[] {
  return valueAt(JSON.parse(text) as JsonValue, style.names.records) as JsonObject[];
}

/** The usual page loop. Returns the versions of the records by key, and the number of pages. */
function readAll(model: Model, between: (page: number) => void = () => undefined) {
  const { style, list } = model;
  const { paging, names, first, keyFields } = style;
  const read = new Map<string, unknown>();
  let at: string | number | undefined =
    paging === 'page' || paging === 'numbered' ? first : undefined;
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const answer = ask(model, at);
    expect(answer.status).toBe(200);
    const rows = rowsOf(model, answer);
    const ids = rows.map((row) => row[keyFields.at(-1)!] as number);
    rows.forEach((row, k) => read.set(list.keyOf(ids[k]!), row.version));
    if (rows.length === 0 || paging === 'none') return read;
    if (paging === 'offset') at = Number(at ?? 0) + rows.length;
    else if (paging === 'page' || paging === 'numbered') at = Number(at) + 1;
    else if (paging === 'after') at = ids.at(-1);
    else {
      const body = JSON.parse(answer.text) as JsonValue;
      const shown = {
        body: () => (isJsonObject(body) ? body[names.next] : undefined),
        header: () => answer.headers[names.next.toLowerCase()],
        Link: () => /^<(.*)>; rel="next"$/.exec(answer.headers.link ?? '')?.[1],
      }[style.next]();
      if (typeof shown !== 'string') return read;
      at = shown;
    }
    between(page);
  }
  throw new Error('the list does not end');
}

describe('descriptions', () => {
  it('are valid', () => {
    for (const seed of SEEDS) {
      const text = descriptionText(modelOf(seed).style, QUOTAS);
      const description = parseDescription(text, 'style.json');
      const [list] = description.lists;
      expect(pointerNames(list!.records)).toEqual(modelOf(seed).style.names.records);
    }
  });

  it('are drawn with each kind of paging', () => {
    const drawn = new Set(SEEDS.map((seed) => modelOf(seed).style.paging));
    expect(drawn).toEqual(new Set(PAGINGS));
  });
});

describe.each(PAGINGS)('a list paged by %s', (paging) => {
  const seeds = SEEDS.filter((seed) => modelOf(seed).style.paging === paging);

  it('is read as a whole by a page loop while it stands still', () => {
    for (const seed of seeds) {
      const model = modelOf(seed, { isUnstable: false });
      const truth = [...model.list.truth()].map(([key, { version }]) => [key, version]);
      expect(readAll(model), `seed ${seed}`).toEqual(new Map(truth as [string, unknown][]));
    }
  });

  it('states its total and whether it continues', () => {
    for (const seed of seeds) {
      const model = modelOf(seed, { total: 'header', more: 'header' });
      const { headers } = ask(model, paging === 'numbered' || paging === 'page' ? 1 : undefined);
      expect(headers[model.style.names.total.toLowerCase()]).toBe('100');
      const isWhole = paging === 'none';
      expect(headers[model.style.names.more.toLowerCase()]).toBe(String(!isWhole));
    }
  });
});

it('loses records of a page loop by deletions where cursors are offsets, and none where they are keys', () => {
  const lost = (cursor: Style['cursor']) =>
    SEEDS.filter((seed) => modelOf(seed).style.paging === 'cursor').reduce((sum, seed) => {
      const model = modelOf(seed, { cursor, isUnstable: false, sort: 'key-asc' });
      const { list } = model;
      const ids = list.rows().map(({ id }) => id);
      const read = readAll(model, (page) => list.remove(ids[page]!));
      return sum + [...list.truth().keys()].filter((key) => !read.has(key)).length;
    }, 0);
  expect(lost('keyset')).toBe(0);
  expect(lost('offset')).toBeGreaterThan(0);
});

it.each([
  ['compares', 200],
  ['front', 200],
  [400, 400],
  [404, 404],
] as const)('after a deleted key: %s', (toDeleted, status) => {
  const seed = SEEDS.find((each) => modelOf(each).style.paging === 'after')!;
  const model = modelOf(seed, { toDeleted, sort: 'key-asc' });
  const ids = model.list.rows().map(({ id }) => id);
  model.list.remove(ids[4]!);
  const answer = ask(model, ids[4]);
  expect(answer.status).toBe(status);
  if (status !== 200) return;
  const [first] = rowsOf(model, answer);
  expect(first![model.style.keyFields[0]]).toBe(toDeleted === 'front' ? ids[0] : ids[5]);
});

it('serves windows of dates, single records, and 404 for one that is gone', () => {
  const seed = SEEDS.find((each) => {
    const { one, dates, method, total, hasTombstones } = modelOf(each).style;
    return one && dates && method === 'GET' && total === 'header' && !hasTombstones;
  })!;
  const { server, style, list } = modelOf(seed);
  const { names, times } = style;
  const stamps = list.rows().map(({ stamp }) => stamp);
  const [from] = stamps.toSorted((a, b) => b - a).slice(9);
  const query = new URLSearchParams({ [names.from]: String(timeText(times, from!)) });
  const target = `/api/${names.list}?${query.toString()}`;
  const { headers } = server.answer({ method: 'GET', target, body: undefined });
  expect(headers[names.total.toLowerCase()]).toBe(
    String(stamps.filter((stamp) => stamp >= from!).length),
  );
  const { id, json } = list.rows()[0]!;
  const key = encodeURIComponent(list.keyOf(id));
  const path = `/api/${names.list}/${style.one === 'query' ? `find?id=${key}` : key}`;
  const single = () => server.answer({ method: 'GET', target: path, body: undefined });
  const body = JSON.parse(single().text) as JsonObject;
  expect(style.one === 'query' ? body.found : body).toEqual(json);
  list.remove(id);
  expect(single().status).toBe(404);
});

it.each(['iso', 'epoch-s', 'epoch-ms', 'http-date', 'pattern'] as const)(
  'reads the times that it writes: %s',
  (times) => {
    const ms = Date.UTC(2026, 4, 3, 2, 1, 0);
    expect(timeOf(times, String(timeText(times, ms)))).toBe(ms);
  },
);
