import { firstValueFrom, of, toArray } from 'rxjs';
import { Agent } from 'undici';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { listNamed } from '../../../src/description/description.ts';
import { WINE } from '../../../src/description/wine/wine.ts';
import { listRequest } from '../../../src/streams/decode/list-request.ts';
import type { Token } from '../../../src/streams/http/login.ts';
import { pages } from '../../../src/streams/paging/pages.ts';
import { keyOfFields } from '../../../src/streams/records/key-of.ts';
import { hurriedTime } from '../../support/hurried-time.ts';
import { serve } from '../../support/http-server.ts';
import type { HttpServer } from '../../support/http-server.ts';

const TOKEN: Token = { text: 't', askedAt: 0, lifeMs: 1e9, serverTime: undefined };
const keyOf = keyOfFields(['id']);

let dispatcher: Agent;
let server: HttpServer | undefined;
beforeEach(() => (dispatcher = new Agent()));
afterEach(async () => {
  await dispatcher.destroy();
  await server?.close();
});

interface Sent {
  readonly status?: number;
  readonly body: string | Buffer;
}

/** The list of a server that gives these answers, the last of them again and again. */
async function listOf(answer: (query: URLSearchParams, nth: number) => Sent) {
  let nth = 0;
  server = await serve((request, response) => {
    const { status = 200, body } = answer(new URL(request.url!, 'http://a').searchParams, nth++);
    response.writeHead(status, { 'content-type': 'application/json' }).end(body);
  });
  const { scheduler, waits } = hurriedTime();
  const list = listRequest({
    baseUrl: server.url,
    list: listNamed(WINE, 'orders'),
    dispatcher,
    tokens: {
      token$: of(TOKEN),
      current: () => TOKEN,
      report: () => ({ isFinal: false, pauseMs: undefined, logsIn: false }),
    },
    scheduler,
    keyOf,
  });
  return { list, waits };
}

const first = async (...sent: readonly Sent[]) => {
  const { list, waits } = await listOf((_, nth) => sent[Math.min(nth, sent.length - 1)]!);
  const answer = await firstValueFrom(list({ offset: 0, pageSize: 50 }, (source) => source));
  return { answer, tries: waits.length + 1 };
};

describe('an empty list is one, however the server writes it', () => {
  it.each<[string | Sent, number | undefined]>([
    ['{"data":[],"pagination":{"total_records":0,"has_next_page":false}}', 0],
    ['{"data":null,"pagination":{"total_records":0,"has_next_page":false}}', 0],
    ['{"data":null,"pagination":{"total_records":null,"has_next_page":0}}', undefined],
    ['{"data":null,"pagination":null}', undefined],
    ['{"data":null}', undefined],
    ['{"data":[],"error":null,"errors":[],"success":true,"message":"0 records"}', undefined],
    ['{"data":[],"message":"0 records","pagination":{"total_records":0}}', 0],
    ['{"data":[],"status":"ok","code":200}', undefined],
    ['{"data":[],"pagination":[]}', undefined],
    ['{"data":[]}', undefined],
    ['{"pagination":{"total_records":"0","has_next_page":"false"}}', 0],
    [{ status: 204, body: '' }, undefined],
    [{ status: 205, body: '' }, undefined],
  ])('%j', async (sent, total) => {
    const { answer, tries } = await first(typeof sent === 'string' ? { body: sent } : sent);
    expect(tries).toBe(1);
    expect(answer.data).toEqual([]);
    expect([answer.total, answer.hasNext]).toEqual([total, false]);
  });
});

describe('what is no page is asked for again', () => {
  it.each([
    '{"error":"Unauthenticated."}',
    '{"data":null,"error":"Unauthenticated."}',
    '{"data":null,"errors":[{"message":"no"}],"pagination":null}',
    '{"data":[],"error":"Unauthenticated","pagination":{"total_records":0,"has_next_page":false}}',
    '{"data":null,"message":"Unauthenticated."}',
    '{"data":[],"message":"Unauthenticated."}',
    '{"data":[],"success":false,"pagination":{"total_records":0}}',
    '{"data":null,"status":401,"pagination":null}',
    '{"data":[],"status":"error"}',
    '{"data":{"0":{"id":1}},"pagination":{}}',
    '{"data":{},"pagination":{}}',
    '{"data":"none","pagination":{}}',
    '{}',
    '[]',
    '',
  ])('%s', async (body) => {
    const { answer, tries } = await first({ body }, { body: '{"data":[{"id":1}]}' });
    expect(tries).toBe(2);
    expect(answer.data).toHaveLength(1);
  });
});

it.each([201, 203, 206])('a page with status %i is a page', async (status) => {
  const { answer, tries } = await first({ status, body: '{"data":[{"id":1}]}' });
  expect([answer.data.length, tries]).toEqual([1, 1]);
});

describe('pagination', () => {
  it.each<[string, number | undefined, boolean]>([
    ['{"total_records":9,"has_next_page":true}', 9, true],
    ['{"total_records":"9","has_next_page":1}', 9, true],
    ['{"total_records":"9","has_next_page":"true"}', 9, true],
    ['{"total_records":9,"has_next_page":"False"}', 9, false],
    ['{"total_records":9,"has_next_page":"0"}', 9, false],
    ['{"total_records":9}', 9, true],
    ['{"total_records":2}', 2, false],
    ['{"total_records":2,"current_offset":0,"has_next_page":null}', 2, false],
    ['{"total_records":9,"has_next_page":"perhaps"}', 9, true],
    ['{"total_records":null}', undefined, true],
    ['{"total_records":-1}', undefined, true],
    ['{"total_records":2.5}', undefined, true],
    ['{"total_records":"NaN"}', undefined, true],
    ['{"total_records":"about 9"}', undefined, true],
    ['{"total_records":12345678901234567890}', undefined, true],
    ['[]', undefined, true],
    ['null', undefined, true],
  ])('%s', async (pagination, total, hasNext) => {
    const { answer } = await first({
      body: `{"data":[{"id":1},{"id":2}],"pagination":${pagination}}`,
    });
    expect([answer.total, answer.hasNext]).toEqual([total, hasNext]);
  });
});

describe('a list that does not say how long it is', () => {
  it.each([
    ['without a pagination', () => ({})],
    ['with empty ones', () => ({ pagination: [] })],
    ['with a total alone', () => ({ pagination: { total_records: '70' } })],
    ['without a total', (isMore: boolean) => ({ pagination: { has_next_page: isMore ? 1 : 0 } })],
  ])('is read to its end: %s', async (_, pagination) => {
    const all = Array.from({ length: 70 }, (__, id) => ({ id }));
    const { list } = await listOf((query) => {
      const offset = Number(query.get('offset'));
      // Pages are shorter than asked for: a short page does not end a list.
      const data = all.slice(offset, offset + Math.min(20, Number(query.get('pageSize'))));
      const isMore = offset + data.length < all.length;
      return { body: JSON.stringify({ data, ...pagination(isMore) }) };
    });
    const scan = pages({
      request: (query) => list(query, (source) => source),
      keyOf,
      pageSize: 50,
    });
    const read = (await firstValueFrom(scan.pipe(toArray()))).flatMap(({ answer }) => answer.data);
    expect(new Set(read.map(({ key }) => key)).size).toBe(70);
  });
});

describe('bytes that are not UTF-8, without a charset', () => {
  const latin1 = (text: string) => Buffer.from(text, 'latin1');
  const page = (...names: readonly string[]) =>
    latin1(
      `{"data":[${names.map((name, id) => `{"id":${id},"name":"${name}"}`).join()}],` +
        `"pagination":{"total_records":${names.length},"has_next_page":false}}`,
    );

  it('make their record unreadable after some tries, and no U+FFFD of it', async () => {
    const { answer, tries } = await first({ body: page('a', 'Ren\xe9', 'c') });
    expect(tries).toBe(5);
    expect(answer.data.map(({ key }) => key)).toEqual(['0', undefined, '2']);
    expect(answer.data[1]).toMatchObject({
      unreadableAt: 1,
      json: '{"id":1,"name":"Ren\xe9"}',
    });
  });

  it('in a page of another layout are no JSON', async () => {
    const odd = latin1('{"d\\u0061ta":[{"id":1,"name":"Ren\xe9"}],"pagination":{}}');
    const { answer, tries } = await first({ body: odd }, { body: '{"data":[{"id":1}]}' });
    expect([answer.data.length, tries]).toEqual([1, 2]);
  });
});
