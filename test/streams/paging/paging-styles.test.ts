import { defer, delay, map, of } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { CellarstreamError } from '../../../src/core/errors.ts';
import { parseDescription } from '../../../src/description/read-description.ts';
import type { ListDescription } from '../../../src/description/description.ts';
import { RequestPlan } from '../../../src/streams/http/request-plan.ts';
import type { PagePlace } from '../../../src/streams/http/page-plan.ts';
import { BEGINNING } from '../../../src/streams/paging/anchors.ts';
import type { Position } from '../../../src/streams/paging/anchors.ts';
import { pages } from '../../../src/streams/paging/pages.ts';
import type { ScanPage } from '../../../src/streams/paging/pages.ts';
import type { ScanTrouble } from '../../../src/streams/paging/scan-trouble.ts';
import type { Answer } from '../../../src/streams/decode/response.ts';
import { Chance } from '../../support/chance.ts';
import { virtualTime } from '../../support/virtual-time.ts';
import { answer, keyOfId, throughJson } from './moving-list.ts';

function listOf(keys: object): ListDescription {
  const list = { path: '/things', records: '/things', key: 'id', ...keys };
  const file = { format: 1, api: 'shop', auth: 'none', quota: '5/s', lists: { things: list } };
  return parseDescription(JSON.stringify(file), 'shop.json').lists[0]!;
}

const SIZED = { limit: 30, query: { page: '{page}', per: '{limit}' } };
/** A list of each kind of paging, as its description says it. */
const LISTS = {
  page: listOf({ paging: 'page', first: 1, more: '/more', ...SIZED }),
  'page of a fixed size': listOf({
    ...{ paging: 'page', first: 0, more: '/more', query: { p: '{page}' } },
  }),
  after: listOf({ paging: 'after', more: '/more', limit: 30, query: { after: '{after}' } }),
  'after, with a total alone': listOf({
    ...{ paging: 'after', total: '/total', limit: 30, query: { after: '{after}' } },
  }),
  cursor: listOf({ paging: 'cursor', next: '/next', query: { cursor: '{cursor}' } }),
  link: listOf({ paging: 'link', next: { link: 'next' } }),
  none: listOf({ paging: 'none' }),
};
type Style = keyof typeof LISTS;

/** Responses of servers to the key of a record that was deleted. */
const TO_DELETED = ['compares it', 'refuses it', 'does not find it', 'begins anew'] as const;

/** A server of one list, sorted by its keys. Rows come, go and change between two requests, most near the place that is read. */
class Server {
  readonly #style: Style;
  readonly #toDeleted: (typeof TO_DELETED)[number];
  readonly #chance: Chance;
  readonly #size: number;
  readonly #churn: number;
  readonly touched = new Set<number>();
  readonly initial: readonly number[];
  requests = 0;
  rows: { id: number; version: number }[];
  #near = 0;

  constructor(style: Style, seed: number, churn: number, toDeleted = TO_DELETED[seed % 4]!) {
    this.#style = style;
    this.#toDeleted = toDeleted;
    this.#chance = new Chance(seed, style);
    this.#size = this.#chance.below(2) === 0 ? 30 : 21; // some cap the size silently
    this.#churn = churn;
    const count = this.#chance.below(200);
    this.rows = Array.from({ length: count }, (_, k) => ({ id: 1_000 + k * 10, version: 0 }));
    this.initial = this.rows.map(({ id }) => id);
  }

  answer(place: PagePlace): Answer {
    if (this.requests > 500) throw new Error('the scan does not end');
    if (this.requests++ > 0) this.#move();
    const [from, size] = this.#range(place);
    this.#near = from + size;
    const data = this.rows.slice(from, from + size);
    const hasNext = this.#style !== 'none' && from + size < this.rows.length;
    const next = hasNext ? this.#nextOf(data.at(-1)!.id) : undefined;
    return {
      ...answer(structuredClone(data), { total: undefined, hasNext }),
      ...(this.#style === 'after, with a total alone' && {
        total: this.rows.length,
        hasNext: place.offset + data.length < this.rows.length,
      }),
      ...(next !== undefined && { next }),
    };
  }

  #nextOf(id: number): string | undefined {
    if (this.#style === 'cursor') return `c${id}`;
    return this.#style === 'link' ? `https://api.example/things?after=${id}` : undefined;
  }

  #range({ offset, pageSize, cursor }: PagePlace): [from: number, size: number] {
    const size = Math.min(pageSize, this.#size);
    switch (this.#style) {
      case 'none':
        return [0, this.rows.length];
      case 'page': {
        const number = offset / pageSize;
        expect(Number.isInteger(number)).toBe(true);
        return [number * size, size];
      }
      case 'page of a fixed size':
        return [Number(cursor ?? 0) * this.#size, this.#size];
      default:
        return [cursor === undefined ? 0 : this.#after(Number(/\d+$/.exec(cursor)![0])), size];
    }
  }

  #after(id: number): number {
    const isKey = this.#style.startsWith('after');
    if (isKey && !this.rows.some((row) => row.id === id)) {
      if (this.#toDeleted === 'begins anew') return 0;
      if (this.#toDeleted !== 'compares it') {
        const status = this.#toDeleted === 'refuses it' ? 400 : 404;
        throw new CellarstreamError('API_STATUS', 'no such record', { context: { status } });
      }
    }
    return this.rows.filter((row) => row.id <= id).length;
  }

  #move(): void {
    for (let n = this.#chance.below(this.#churn + 1); n > 0; n -= 1) {
      const near = Math.max(0, this.#near - this.#chance.below(40));
      const place = Math.min(near, this.rows.length);
      const kind = this.#chance.below(4);
      const row = this.rows[place];
      if (kind === 0) {
        const id = (row?.id ?? 5_000) - 1 - this.#chance.below(8);
        if (this.rows.some((each) => each.id === id) || this.initial.includes(id)) continue;
        this.touched.add(id);
        this.rows.push({ id, version: 0 });
        this.rows.sort((a, b) => a.id - b.id);
      } else if (kind === 1 && row) {
        this.touched.add(row.id);
        this.rows[place] = { ...row, version: row.version + 1 };
      } else {
        const gone = this.rows.splice(place, 1 + this.#chance.below(15));
        gone.forEach(({ id }) => this.touched.add(id));
      }
    }
  }
}

interface Reading {
  readonly read: Set<unknown>;
  readonly troubles: ScanTrouble[];
  readonly pages: ScanPage[];
  readonly error: unknown;
}

function readingOf(
  style: Style,
  request: (place: PagePlace) => Answer,
  from?: Position | null,
): Reading {
  const read = new Set<unknown>();
  const troubles: ScanTrouble[] = [];
  const seen: ScanPage[] = [];
  let error: unknown;
  virtualTime().run(() => {
    pages({
      request: (place) => defer(() => of(place).pipe(delay(1), map(request))),
      keyOf: keyOfId,
      list: LISTS[style],
      from,
      onTrouble: (trouble) => troubles.push(trouble),
    }).subscribe({
      next: (page) => {
        seen.push(page);
        for (const { json } of page.answer.data) read.add((json as { id: number }).id);
      },
      error: (failure: unknown) => void (error = failure),
    });
  });
  return { read, troubles, pages: seen, error };
}

const SEEDS = Array.from({ length: 60 }, (_, seed) => seed);
const STYLES = Object.keys(LISTS) as Style[];
/** Without an overlap, an insertion or deletion in front of a page moves its records to another page: those styles prove nothing. */
const PROVING = STYLES.filter((style) => style !== 'page of a fixed size');

describe('a list that does not move', () => {
  it.each(STYLES)('is read as a whole: %s', (style) => {
    for (const seed of SEEDS) {
      const server = new Server(style, seed, 0);
      const { read, troubles, error } = readingOf(style, (place) => server.answer(place));
      expect(error).toBeUndefined();
      expect([...read].sort(), `seed ${seed}`).toEqual([...server.initial].sort());
      expect(troubles.filter((trouble) => trouble !== 'blind')).toEqual([]);
    }
  });
});

describe('a list that moves while it is read', () => {
  it.each(PROVING)('gives all records that stood still: %s', (style) => {
    for (const seed of SEEDS) {
      const server = new Server(style, seed, 3);
      const { read, error } = readingOf(style, (place) => server.answer(place));
      expect(error, `seed ${seed}`).toBeUndefined();
      const still = server.initial.filter((id) => !server.touched.has(id));
      expect(
        still.filter((id) => !read.has(id)),
        `seed ${seed}`,
      ).toEqual([]);
    }
  });

  it.each(PROVING)('is read on from a stored position: %s', (style) => {
    for (const seed of SEEDS) {
      const server = new Server(style, seed, 0);
      const whole = readingOf(style, (place) => server.answer(place));
      const middle = whole.pages[Math.floor((whole.pages.length - 1) / 2)]?.next;
      const stored = middle ? throughJson(middle) : null;
      const rest = readingOf(style, (place) => server.answer(place), stored);
      const before = whole.pages.slice(0, whole.pages.findIndex(({ next }) => next === middle) + 1);
      const ids = before.flatMap(({ answer: { data } }) => data.map(({ json }) => json));
      const read = new Set([...rest.read, ...ids.map((json) => (json as { id: number }).id)]);
      expect([...read].sort(), `seed ${seed}`).toEqual([...server.initial].sort());
    }
  });
});

describe('a refused cursor', () => {
  const gone = new CellarstreamError('API_STATUS', 'gone', { context: { status: 410 } });

  it('of an opaque list makes the scan begin again, and is told', () => {
    const server = new Server('cursor', 7, 0);
    let refusals = 0;
    const { read, troubles } = readingOf('cursor', (place) => {
      if (place.cursor !== undefined && refusals++ === 1) throw gone;
      return server.answer(place);
    });
    expect(troubles).toEqual(['expired']);
    expect([...read].sort()).toEqual([...server.initial].sort());
  });

  it('each time makes the scan fail, to be tried again later', () => {
    const server = new Server('cursor', 7, 0);
    const { troubles, error } = readingOf('cursor', (place) => {
      if (place.cursor !== undefined) throw gone;
      return server.answer(place);
    });
    expect(troubles).toEqual(Array(5).fill('expired'));
    expect(error).toMatchObject({ code: 'API_STATUS', context: { status: 410, canPass: true } });
  });

  it('of a key steps back to the page before', () => {
    const server = new Server('after', 3, 0, 'refuses it');
    const asked: (string | undefined)[] = [];
    const { troubles, read } = readingOf('after', (place) => {
      asked.push(place.cursor);
      if (asked.length === 3) {
        server.rows = server.rows.filter(({ id }) => String(id) !== place.cursor);
      }
      return server.answer(place);
    });
    expect(troubles).toEqual(['stepped-back']);
    expect(asked[3]).toBe(asked[1]);
    expect(read.size).toBe(server.initial.length);
  });
});

describe('an address of another origin as the next page', () => {
  const foreign = 'https://evil.example/things?x=1';
  const refusing = (server: Server, place: PagePlace) => {
    const list = LISTS.link;
    new RequestPlan({ baseUrl: new URL('https://api.example'), list }).requestOf(place);
    return server.answer(place);
  };

  it('makes the scan begin again, like a refused cursor', () => {
    const server = new Server('link', 7, 0);
    let answers = 0;
    const { troubles, read } = readingOf('link', (place) => {
      const page = refusing(server, place);
      return answers++ === 1 ? { ...page, hasNext: true, next: foreign } : page;
    });
    expect(troubles).toEqual(['expired']);
    expect([...read].sort()).toEqual([...server.initial].sort());
  });

  it('at a stored position does so too', () => {
    const server = new Server('link', 7, 0);
    const stored = { ...BEGINNING, offset: 30, cursor: foreign };
    const { troubles, read } = readingOf('link', (place) => refusing(server, place), stored);
    expect(troubles).toEqual(['expired']);
    expect([...read].sort()).toEqual([...server.initial].sort());
  });
});

describe('an empty page', () => {
  it('is not the last one if it shows another cursor: servers filter pages', () => {
    const server = new Server('cursor', 7, 0);
    let answers = 0;
    const { troubles, read } = readingOf('cursor', (place) => {
      if (answers++ === 1)
        return { ...answer([], { total: undefined, hasNext: true }), next: 'c1190' };
      return server.answer(place);
    });
    expect(troubles).toEqual([]);
    expect(read).toContain(server.initial.at(-1));
  });

  it('is the last one if it shows the cursor that was asked for', () => {
    const server = new Server('cursor', 7, 0);
    const { troubles, read } = readingOf('cursor', (place) => {
      const page = server.answer(place);
      const next = page.next ?? place.cursor ?? 'c1000';
      const last = String(server.initial.at(-1));
      return page.hasNext
        ? page
        : { ...page, hasNext: true, next: page.data.length > 0 ? `c${last}` : next };
    });
    expect(troubles).toEqual([]);
    expect([...read].sort()).toEqual([...server.initial].sort());
  });
});

describe('a list without an end', () => {
  it('ends where the server shows the same cursor again', () => {
    const server = new Server('cursor', 7, 0);
    const { troubles } = readingOf('cursor', (place) => ({
      ...server.answer({ ...place, offset: 0 }),
      ...{ hasNext: true, next: 'c1000' },
    }));
    expect(troubles).toContain('endless');
  });
});

describe('requests', () => {
  const baseUrl = new URL('https://api.example');
  const addressIn = (style: Style, query: PagePlace) =>
    new RequestPlan({ baseUrl, list: LISTS[style] }).requestOf(query).url.href;

  it.each([
    ['page', { offset: 60, pageSize: 30 }, '/things?page=3&per=30'],
    ['page of a fixed size', { offset: 0, pageSize: 30 }, '/things?p=0'],
    ['page of a fixed size', { offset: 40, pageSize: 30, cursor: '2' }, '/things?p=2'],
    ['after', { offset: 0, pageSize: 30 }, '/things'],
    ['after', { offset: 20, pageSize: 30, cursor: 'a&b' }, '/things?after=a%26b'],
    ['cursor', { offset: 20, pageSize: 30, cursor: 'c1' }, '/things?cursor=c1'],
    ['link', { offset: 0, pageSize: 30 }, '/things'],
    ['link', { offset: 20, pageSize: 30, cursor: '?x=1' }, '/things?x=1'],
    ['link', { offset: 20, pageSize: 30, cursor: 'https://api.example/b?x=1' }, '/b?x=1'],
  ] as const)('of %s at %j go to %s', (style, place, path) => {
    expect(addressIn(style, place)).toBe(`https://api.example${path}`);
  });

  it('never go to another origin', () => {
    const place = { ...BEGINNING, pageSize: 30, cursor: 'https://evil.example/things?x=1' };
    expect(() => addressIn('link', place)).toThrow(
      'things: the address of the next page has the origin https://evil.example, but the token is sent to https://api.example only: correct API_BASE_URL, or `next` of this list in the description',
    );
  });
});
