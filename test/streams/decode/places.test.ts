import fc from 'fast-check';
import { firstValueFrom, of } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { listNamed } from '../../../src/description/description.ts';
import type { ListDescription } from '../../../src/description/description.ts';
import { WINE } from '../../../src/description/wine/wine.ts';
import { parseJson, stringifyJson, withValueAt } from '../../../src/schemas/json/json.ts';
import type { JsonValue } from '../../../src/schemas/json/json.ts';
import { decodedPage } from '../../../src/streams/decode/decoded-page.ts';
import { parsingDecoder } from '../../../src/streams/decode/decoder.ts';
import { ResponseLayout } from '../../../src/streams/decode/response-layout.ts';
import type { DecodedPage } from '../../../src/streams/decode/response.ts';
import { Body } from '../../../src/streams/http/body.ts';
import { keyOfFields } from '../../../src/streams/records/key-of.ts';
import { answering } from '../../support/answering.ts';
import { atOnce } from '../../support/at-once.ts';
import { hurriedTime } from '../../support/hurried-time.ts';
import { jsonValues } from '../../support/json-values.ts';
import { listOf, shownIn } from './text-list.ts';

/** A list whose responses show nothing but their records, unless it is said where. */
const BARE: ListDescription = {
  ...listNamed(WINE, 'orders'),
  ...{ name: 'wines', records: '/data' },
  ...{ total: undefined, more: undefined, next: undefined, reported: undefined, ok: undefined },
};
const keyOf = keyOfFields(['id']);

interface Sent {
  readonly text: string;
  readonly headers?: Record<string, string>;
}

/** The answer of a list to a page or to one record, the messages of what was tried again, and the number of tries. */
async function read(list: Partial<ListDescription>, query: object, ...sent: readonly Sent[]) {
  const { scheduler, waits } = hurriedTime();
  const token = { text: 't', askedAt: 0, lifeMs: 1e9, serverTime: undefined };
  const messages: string[] = [];
  let nth = 0;
  const request = listOf({
    list: { ...BARE, ...list },
    baseUrl: new URL('http://list'),
    dispatcher: answering(() => {
      const { text, headers = {} } = sent[Math.min(nth++, sent.length - 1)]!;
      return Promise.resolve({ status: 200, headers, text });
    }),
    tokens: {
      token$: of(token),
      current: () => token,
      report: () => ({ isFinal: true, pauseMs: undefined, logsIn: false }),
    },
    scheduler,
    decode: parsingDecoder(keyOf),
    hooks: { onRetry: ({ error }) => void messages.push((error as Error).message) },
  });
  const answer = await firstValueFrom(request(query, (source) => source));
  return { answer, messages, tries: waits.length + 1 };
}
const PAGE = { offset: 0, pageSize: 10 };
const page = async (list: Partial<ListDescription>, text: string, headers?: Sent['headers']) => {
  const { answer, tries } = await read(list, PAGE, { text, ...(headers && { headers }) });
  const { total, hasNext, reported } = answer;
  return { keys: answer.data.map(({ key }) => key), total, hasNext, reported, tries };
};

describe('the places of a list', () => {
  it('are members as deep as the description says', async () => {
    const list = {
      records: '/response/items',
      total: '/response/page/total',
      more: '/response/page/more',
      reported: { offset: '/response/page/from', limit: '/response/page/size' },
    };
    const text =
      '{"response":{"page":{"total":"40","more":1,"from":0,"size":2},"items":[{"id":1},{"id":2}]}}';
    expect(await page(list, text)).toEqual({
      keys: ['1', '2'],
      total: 40,
      hasNext: true,
      reported: { offset: 0, pageSize: 2 },
      tries: 1,
    });
  });

  it('are header fields around a body that is the array of records', async () => {
    const list = { records: '', total: { header: 'X-Total-Count' }, more: { link: 'next' } };
    const next = '<http://list/v1/wines?a=1>; rel="first", <http://list/v1/wines?a=2>;rel=next';
    const some = await page(list, '[{"id":1}]', { 'x-total-count': '12', link: next });
    expect(some).toMatchObject({ keys: ['1'], total: 12, hasNext: true });
    const last = '<http://list/v1/wines?a=1>; title="next"; rel="prev last"';
    expect(await page(list, '[{"id":1}]', { link: last })).toMatchObject({
      ...{ keys: ['1'], total: undefined, hasNext: false },
    });
    expect(await page(list, '[]')).toMatchObject({ keys: [], hasNext: false, tries: 1 });
  });

  it.each([
    ['"c2"', true],
    ['17', true],
    ['""', false],
    ['null', false],
  ])('show by %s whether there is a next page', async (next, hasNext) => {
    const list = { paging: 'cursor', next: '/next' } as const;
    expect(await page(list, `{"data":[{"id":1}],"next":${next}}`)).toMatchObject({ hasNext });
  });

  it.each([
    ['"c2"', 'c2'],
    ['17', '17'],
    ['9007199254740993020', '9007199254740993020'],
  ])('show the cursor %s without loss', async (shown, next) => {
    const list = { paging: 'cursor', next: '/next' } as const;
    const { answer } = await read(list, PAGE, { text: `{"data":[{"id":1}],"next":${shown}}` });
    expect(answer.next).toBe(next);
  });

  it('show no next page of a list that is one response', async () => {
    const list = { paging: 'none', records: '' } as const;
    expect(await page(list, '[{"id":1}]')).toMatchObject({ hasNext: false, total: undefined });
  });

  it('leave the end of a list to its total, or to an empty page', async () => {
    const list = { records: '/issues', total: '/total_count' };
    const two = '"issues":[{"id":1},{"id":2}]';
    expect(await page(list, `{${two},"total_count":2}`)).toMatchObject({ hasNext: false });
    expect(await page(list, `{${two},"total_count":3}`)).toMatchObject({ hasNext: true });
    expect(await page(list, `{${two}}`)).toMatchObject({ hasNext: true, total: undefined });
    expect(await page(list, '{"issues":[]}')).toMatchObject({ hasNext: false });
  });

  it('say what the offset and size of a page were, if the API says so', async () => {
    const list = { records: '/issues', reported: { offset: '/offset', limit: '/limit' } };
    const found = await page(list, '{"issues":[{"id":1}],"offset":"40","limit":25}');
    expect(found.reported).toEqual({ pageSize: 25 });
  });
});

describe('a body without records', () => {
  const list = { records: '/a/items', total: '/a/total' };

  it.each([
    [list, '{"a":{"items":null}}'],
    [list, '{"a":{"total":0}}'],
    [list, '{"a":{"total":null,"message":"none"}}'],
    [{ records: '/items', more: '/page/more' }, '{"page":[],"message":"none"}'],
    [{ records: '' }, 'null'],
  ])('is an empty page where the list has a sign of itself: %j, %s', async (own, text) => {
    expect(await page(own, text)).toMatchObject({ keys: [], hasNext: false, tries: 1 });
  });

  it.each<[Partial<ListDescription>, string, string]>([
    [
      {},
      '{"items":[1,2],"count":2}',
      'no array at /data; the response has /items (array of 2) and /count',
    ],
    [
      {},
      '{"data":{"id":1},"b":null}',
      'no array at /data; the response has /data (object) and /b (null)',
    ],
    [
      {},
      '{"data":[],"error":"no"}',
      'the response reports an error and has /data (array of 0) and /error',
    ],
    [{}, '{}', 'no array at /data; the response has no members'],
    [{}, '[1]', 'no array at /data; the response is an array of 1'],
    [{}, '"Jane"', 'no array at /data; the response is a single value'],
    [
      {},
      '{"4711":{},"jane@example.com":1,"a":2}',
      'no array at /data; the response has /a and 2 members more',
    ],
    [
      list,
      '{"a":{"entries":[],"b/c":1}}',
      'no array at /a/items; the response has /a/entries (array of 0) and 1 member more',
    ],
    [list, '{"b":[]}', 'no array at /a/items; the response has /b (array of 0)'],
    [{ records: '' }, '{"message":"Jane"}', 'no array at the root; the response has /message'],
    [
      { ok: '/ok' },
      '{"data":[{"id":3}],"ok":false}',
      'the response reports an error and has /data (array of 0) and /ok',
    ],
  ])(
    'is requested again, and the error has its names and kinds: %j, %s',
    async (own, text, said) => {
      const good =
        own.records === ''
          ? '[{"id":1}]'
          : '{"data":[{"id":1}],"a":{"items":[{"id":1}]},"ok":true}';
      const { answer, messages } = await read(own, PAGE, { text }, { text: good });
      expect(messages).toEqual([`wines: ${said}`]);
      expect(answer.data.map(({ key }) => key)).toEqual(['1']);
    },
  );

  it('is one with an error or not as `ok` says, whatever else looks like one', async () => {
    const text = '{"data":[],"ok":true,"error":"none","status":"failed"}';
    expect(await page({ ok: '/ok' }, text)).toMatchObject({ keys: [], tries: 1 });
  });
});

describe('a record that is no JSON', () => {
  it.each<[string, Partial<ListDescription>, (items: string) => string, Sent['headers']]>([
    ['deep', { records: '/a/b', total: '/a/n' }, (items) => `{"a":{"b":[${items}],"n":3}}`, {}],
    [
      'at the root',
      { records: '', total: { header: 'Total' } },
      (items) => `[${items}]`,
      { total: '3' },
    ],
  ])('is read around in a list whose records are %s', async (_, list, text, headers = {}) => {
    const items = '{"id":1},{"id":2,"price":NaN},{"id":3}';
    const { answer, tries } = await read(list, PAGE, { text: text(items), headers });
    expect(shownIn(answer)).toEqual([{ id: 1 }, '1: {"id":2,"price":NaN}', { id: 3 }]);
    expect([answer.total, tries]).toEqual([3, 5]);
  });
});

describe('a single record', () => {
  const { one } = BARE;
  const at = (record: string) => ({ one: { ...one!, path: '/wines/{key}', record }, total: '/n' });
  const query = { key: '7' };

  it.each([
    ['', '{"id":7,"n":9,"message":"of the record","status":"failed"}'],
    ['/wine', '{"wine":{"id":7}}'],
    ['/wines', '{"wines":[{"id":7}]}'],
    ['/wines/0', '{"wines":[{"id":7}]}'],
  ])('is what is at %j, or in the array there', async (record, text) => {
    const { answer, tries } = await read(at(record), query, { text });
    expect(answer.data.map(({ key }) => key)).toEqual(['7']);
    expect([answer.total, answer.hasNext, tries]).toEqual([undefined, false, 1]);
  });

  it.each(['{"wine":null}', '{"wine":[]}'])(
    'is none where its place is empty: %s',
    async (text) => {
      const { answer, tries } = await read(at('/wine'), query, { text });
      expect([answer.data.length, tries]).toEqual([0, 1]);
    },
  );

  it('is no other thing, and no record in the place of the array', async () => {
    const wine = { text: '{"wine":{"id":7}}' };
    const found = await read(at('/wine'), query, { text: '{"error":"no"}' }, wine);
    expect(found.messages).toEqual(['wines: no array at /wine; the response has /error']);
    const list = { text: '{"data":[{"id":7}]}' };
    const { messages } = await read({}, query, { text: '{"data":{"id":7}}' }, list);
    expect(messages).toEqual(['wines: no array at /data; the response has /data (object)']);
  });

  it('that stays no JSON is an unreadable record', async () => {
    const { answer, tries } = await read(at('/wine'), query, { text: '{"wine":{"id":7,"a":NaN}}' });
    expect(shownIn(answer)).toEqual(['0: {"wine":{"id":7,"a":NaN}}']);
    expect(tries).toBe(5);
  });
});

it('a page says the same whether its records are found in bytes, or it is parsed as a whole', () => {
  const places = fc.constantFrom('', '/data', '/a', '/a/b', '/data/a', '/a/b/id', '/list/0');
  const counts = fc.oneof(fc.nat(3), fc.constantFrom('2', '7', true, 0, 'x', null, []));
  const bodies = fc
    .tuple(jsonValues, fc.array(fc.tuple(places, fc.oneof(counts, jsonValues)), { maxLength: 4 }))
    .map(([body, parts]) => {
      const root = typeof body === 'object' && body !== null ? body : {};
      return parts.reduce<JsonValue>((whole, [place, part]) => {
        const isRoot = place === '' || typeof whole !== 'object' || whole === null;
        return isRoot ? part : withValueAt(whole, place, part);
      }, root);
    });
  const shown = (found: DecodedPage | string) =>
    typeof found === 'string'
      ? found
      : { ...found, records: found.records.all().map(({ json }) => stringifyJson(json)) };
  const decode = parsingDecoder(keyOf);
  const kinds = new Set<string>();
  fc.assert(
    fc.property(
      bodies,
      fc.array(jsonValues, { maxLength: 3 }),
      fc.record({ records: places, total: places, more: places, next: fc.option(places) }),
      (around, records, { records: pointer, total, more, next }) => {
        // No place is within the records: there it would depend on them.
        const outside = (place: string | null) =>
          place === null || `${place}/`.startsWith(`${pointer}/`) ? undefined : place;
        const list = {
          records: pointer,
          ...{ total: outside(total), more: outside(more), next: outside(next) },
        };
        const isObject = typeof around === 'object' && around !== null;
        const whole = isObject ? withValueAt(around, list.records, records) : around;
        const layout = new ResponseLayout({ ...BARE, ...list });
        const text = stringifyJson(whole);
        const body = new Body(Buffer.from(text));
        const inBytes = atOnce(decodedPage({ body, headers: {} }, layout, decode, 1));
        const parsed = parseJson(text);
        const data = layout.recordsIn(parsed);
        const expected =
          !data || layout.isError(parsed, data.length)
            ? layout.misfit(parsed)
            : layout.page(
                parsed,
                {},
                data.flatMap(
                  (each) => decode(new Body(Buffer.from(stringifyJson(each))), 0).values,
                ),
                1,
              );
        expect(shown(inBytes)).toEqual(shown(expected));
        kinds.add(typeof inBytes);
      },
    ),
    { seed: 4, numRuns: 2_000 },
  );
  expect(kinds).toEqual(new Set(['string', 'object']));
});
