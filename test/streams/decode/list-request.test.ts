import { inspect } from 'node:util';
import { asyncScheduler, firstValueFrom, map, NEVER, of, tap } from 'rxjs';
import type { SchedulerLike } from 'rxjs';
import { Agent } from 'undici';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { WINE } from '../../../src/description/wine/wine.ts';
import { startSandbox } from '../../../src/sandbox/index.ts';
import type { FaultSpec, Sandbox, SandboxOptions } from '../../../src/sandbox/index.ts';
import { JsonNumber, parseJson } from '../../../src/schemas/json/json.ts';
import type { JsonObject } from '../../../src/schemas/json/json.ts';
import { describeError } from '../../../src/core/errors.ts';
import type { Retry } from '../../../src/streams/flow/backoff.ts';
import { login } from '../../../src/streams/http/login.ts';
import type { Token } from '../../../src/streams/http/login.ts';
import { digestDecoder, parsingDecoder } from '../../../src/streams/decode/decoder.ts';
import type { Decoder } from '../../../src/streams/decode/decoder.ts';
import type { PageRecord, PayloadDigest } from '../../../src/streams/records/page-record.ts';
import { jsonsOf, WINE_STAMPS } from '../../support/records.ts';
import { LogicalClock } from '../../../src/streams/http/logical-clock.ts';
import { keyOfFields } from '../../../src/streams/records/key-of.ts';
import { listRequest } from '../../../src/streams/decode/list-request.ts';
import type { AnswerSeen } from '../../../src/streams/http/http.ts';
import type { Answer } from '../../../src/streams/decode/response.ts';
import type { ListRequestOptions } from '../../../src/streams/decode/list-request.ts';
import { tokenSource } from '../../../src/streams/http/token.ts';
import type { TokenSource } from '../../../src/streams/http/token.ts';
import { tokenBucket } from '../../../src/streams/quota/token-bucket.ts';
import type { Limit } from '../../../src/streams/quota/token-bucket.ts';
import { failureOf } from '../../support/failure.ts';
import { hurriedTime } from '../../support/hurried-time.ts';
import { listOf, ORDERS } from './text-list.ts';
import type { ListOptions } from './text-list.ts';

const NOW = Date.UTC(2026, 2, 5, 12);
const NO_RECORDS = { customers: 0, inventory: 0, 'wine-clubs': 0, 'wine-club-members': 0 };

let sandbox: Sandbox;
let dispatcher: Agent;
/** What happened, in order: `quota`, `token`, `sent`. */
let steps: string[];
let retried: unknown[];
let seen: AnswerSeen[];

beforeEach(() => {
  dispatcher = new Agent();
  [steps, retried, seen] = [[], [], []];
});
afterEach(async () => {
  await dispatcher.destroy();
  await sandbox.close();
});

/** Counts its starts, and lets them pass at once. */
const limit: Limit = (source) => source.pipe(tap(() => steps.push('quota')));
const starts = () => steps.filter((step) => step === 'quota').length;

async function start(
  sandboxOptions: SandboxOptions = {},
  { decode, ...options }: Partial<ListRequestOptions & Pick<ListOptions, 'decode'>> = {},
  asLoggedIn = (token: Token) => token,
) {
  sandbox = await startSandbox({
    records: { ...NO_RECORDS, orders: 30, products: 0 },
    now: () => NOW + 123,
    ...sandboxOptions,
  });
  const { scheduler } = hurriedTime();
  const login$ = login({
    baseUrl: new URL(sandbox.url),
    description: WINE,
    apiKey: () => sandbox.apiKey,
    dispatcher,
    limit: (source) => source,
    scheduler,
  });
  const tokens = tokenSource({
    login: login$.pipe(map(asLoggedIn)),
    scheduler: {
      now: () => scheduler.now(),
      schedule: asyncScheduler.schedule.bind(asyncScheduler),
    },
  });
  const reads = new LogicalClock();
  const all: ListRequestOptions = {
    baseUrl: new URL(sandbox.url),
    list: ORDERS,
    dispatcher: dispatcher.compose((dispatch) => (request, handler) => {
      if (request.method === 'GET') steps.push('sent');
      return dispatch(request, handler);
    }),
    tokens: {
      ...tokens,
      current: () => {
        steps.push('token');
        return tokens.current();
      },
    },
    stamps: WINE_STAMPS,
    logicalClock: reads,
    random: () => 0,
    hooks: {
      onAnswer: (answer) => seen.push(answer),
      onRetry: ({ error }) => void retried.push(error),
    },
    ...options,
  };
  return { list: decode ? listOf({ ...all, decode }) : listRequest(all), tokens, reads };
}

const statuses = () => sandbox.truth.requests('orders').map(({ status }) => status);
const numbers = (data: readonly PageRecord[]) =>
  data.map(({ json }) => (json as JsonObject).order_number);

describe('listRequest', () => {
  it('gives the page that was asked for', async () => {
    const { list } = await start();
    const query = {
      offset: 28,
      pageSize: 5,
      from: '2020-01-01T00:00:00.000Z',
      to: '2027-01-01T00:00:00.000Z',
    };
    const answer = await firstValueFrom(list(query, limit));
    expect(numbers(answer.data)).toEqual([...sandbox.truth.keys('orders')].slice(28));
    expect([answer.total, answer.hasNext]).toEqual([30, false]);
    expect(sandbox.truth.requests('orders')[0]!.query).toBe(
      'modifiedFromDate=2020-01-01T00%3A00%3A00.000Z' +
        '&modifiedToDate=2027-01-01T00%3A00%3A00.000Z&offset=28&pageSize=5',
    );
    expect(seen).toMatchObject([{ status: 200 }]);
  });

  it('needs to be told no more than what the list is like, where it is, and where tokens come from', async () => {
    const { tokens } = await start();
    const list = listRequest({ baseUrl: new URL(sandbox.url), list: ORDERS, tokens });
    const { data } = await firstValueFrom(list({ offset: 29 }, limit));
    expect(numbers(data)).toEqual([100_030]);
  });

  it('remembers no read of a program that has given it no clock', async () => {
    const begin = vi.spyOn(LogicalClock.prototype, 'begin');
    onTestFinished(() => begin.mockRestore());
    const { tokens } = await start();
    const list = listRequest({ baseUrl: new URL(sandbox.url), list: ORDERS, tokens });
    await firstValueFrom(list({ offset: 29 }, limit));
    expect(begin.mock.contexts.map((clock) => (clock as LogicalClock).oldest())).toEqual([
      Infinity,
    ]);
  });

  it('sends no more than it was given', async () => {
    const { list } = await start();
    await firstValueFrom(list({}, limit));
    await firstValueFrom(list({ key: '100001' }, limit));
    const queries = sandbox.truth.requests('orders').map(({ query }) => query);
    expect(queries).toEqual(['', 'orderNumber=100001']);
  });

  it('keeps numbers that a double cannot hold', async () => {
    const { list } = await start();
    sandbox.replaceText('orders', 100_001, '{"order_number":12345678901234567890}');
    const { data } = await firstValueFrom(list({ pageSize: 1 }, limit));
    expect(jsonsOf(data)).toEqual([{ order_number: new JsonNumber('12345678901234567890') }]);
  });

  it('waits for the quota, then takes the token, then sends', async () => {
    const { list } = await start();
    await firstValueFrom(list({}, limit));
    expect(steps).toEqual(['quota', 'token', 'sent']);
  });

  it('asks when subscribed, and for each subscription', async () => {
    const { list } = await start();
    const page$ = list({ pageSize: 1 }, limit);
    expect(steps).toEqual([]);
    await firstValueFrom(page$);
    await firstValueFrom(page$);
    expect(statuses()).toEqual([200, 200]);
    expect(sandbox.truth.requests('login')).toHaveLength(1);
  });
});

describe('the token', () => {
  /** A list that it has worked for refuses it: it is dead. */
  const refuse = (tokens: TokenSource) => {
    const use = { token: tokens.current()!, list: 'customers', sentAt: 0 };
    tokens.report(use, 'worked');
    tokens.report({ ...use, sentAt: Infinity }, 'refused');
  };

  it('is renewed once when it is refused, and the request made once more', async () => {
    const { list } = await start();
    await firstValueFrom(list({ pageSize: 1 }, limit));
    sandbox.revokeTokens();
    const pages = await Promise.all(
      [0, 1, 2].map((offset) => firstValueFrom(list({ offset, pageSize: 1 }, limit))),
    );
    expect(pages.flatMap(({ data }) => numbers(data))).toEqual([100_001, 100_002, 100_003]);
    expect(statuses()).toEqual([200, 401, 401, 401, 200, 200, 200]);
    expect(sandbox.truth.requests('login')).toHaveLength(2);
    expect(starts()).toBe(7); // each try has waited for the quota
    const refusal = {
      code: 'TOKEN_REJECTED',
      message: `${sandbox.url}/v1/orders refused the token (401): the request is repeated`,
      context: { status: 401 },
    };
    expect(retried).toMatchObject([refusal, refusal, refusal]);
  });

  it('is renewed when 403 refuses it', async () => {
    const { list } = await start({ readings: { unauthorized: 403 } });
    await firstValueFrom(list({ pageSize: 1 }, limit));
    sandbox.revokeTokens();
    await firstValueFrom(list({ pageSize: 1 }, limit));
    expect(statuses()).toEqual([200, 403, 200]);
  });

  it('that is lost during the wait for the quota gives the start up for another', async () => {
    const { list, tokens } = await start();
    await firstValueFrom(list({ pageSize: 1 }, limit));
    steps = [];
    let once = true;
    const slow: Limit = (source) =>
      limit(source).pipe(
        tap(() => {
          if (once) refuse(tokens);
          once = false;
        }),
      );
    await firstValueFrom(list({ pageSize: 1 }, slow));
    expect(steps).toEqual(['quota', 'token', 'quota', 'token', 'sent']);
    expect(statuses()).toEqual([200, 200]);
  });

  it('that is lost during the wait does not hold up a quota of a single start', async () => {
    const { list, tokens } = await start();
    const single = tokenBucket({ capacity: 1, windowMs: 50 });
    await firstValueFrom(list({ pageSize: 1 }, single));
    const waiting = firstValueFrom(list({ pageSize: 1 }, single));
    refuse(tokens);
    expect((await waiting).data).toHaveLength(1);
  });

  it('is waited for before a start is spent', async () => {
    const none: TokenSource = {
      token$: NEVER,
      current: () => undefined,
      report: () => ({ isFinal: true, pauseMs: undefined, logsIn: false }),
    };
    const { list } = await start({}, { tokens: none });
    const subscription = list({}, limit).subscribe();
    expect(steps).toEqual([]);
    subscription.unsubscribe();
  });

  it('that is past its end is not sent while the next login fails, and no start is spent on it', async () => {
    let now = 0;
    const schedule = asyncScheduler.schedule.bind(asyncScheduler);
    const token: Token = { text: 'over', askedAt: 0, lifeMs: 60_000, serverTime: undefined };
    const tokens = tokenSource({ login: of(token), scheduler: { now: () => now, schedule } });
    const { list } = await start({}, { tokens });
    const renewing = tokens.token$.subscribe();
    expect(tokens.current()).toBe(token);
    now = 59_000;
    expect(tokens.current()).toBeUndefined();
    const asking = list({}, limit).subscribe();
    expect([steps, statuses()]).toEqual([[], []]);
    for (const one of [asking, renewing]) one.unsubscribe();
  });

  it('costs one start a try, however often the login fails', async () => {
    const { list, tokens } = await start();
    await firstValueFrom(list({ pageSize: 1 }, limit));
    sandbox.revokeTokens();
    sandbox.fault({ endpoint: 'login', kind: 'drop', times: 3 });
    await firstValueFrom(list({ pageSize: 1 }, limit));
    expect(starts()).toBe(3);
    expect(tokens.current()).toBeDefined();
  });
});

describe('what is told of each request', () => {
  it('is its status, or that there was none, how long it took and how long it had waited', async () => {
    const { list } = await start({}, { scheduler: asyncScheduler });
    sandbox.fault({ endpoint: 'orders', kind: 'drop', times: 1 });
    sandbox.fault({ endpoint: 'orders', kind: 'status', status: 503, times: 1 });
    const bucket = tokenBucket({ capacity: 1, windowMs: 300 });
    await firstValueFrom(list({ pageSize: 1 }, bucket));
    expect(seen.map(({ status }) => status).sort()).toEqual([200, 503, undefined]);
    expect(seen[0]!.waitedMs).toBeLessThan(150);
    // The others waited until the one before had been answered for as long as a window.
    expect(seen[1]!.waitedMs).toBeGreaterThan(150);
    expect(seen[2]!.waitedMs).toBeGreaterThan(150);
    for (const { elapsedMs } of seen) expect(elapsedMs).toBeGreaterThanOrEqual(0);
  });
});

describe('what can pass', () => {
  it.each<[string, FaultSpec, object]>([
    ['500', { kind: 'status', status: 500 }, { code: 'API_STATUS', context: { status: 500 } }],
    ['503', { kind: 'status', status: 503 }, { code: 'API_STATUS', context: { status: 503 } }],
    ['404', { kind: 'status', status: 404 }, { code: 'API_STATUS', context: { status: 404 } }],
    ['429', { kind: 'status', status: 429 }, { code: 'QUOTA_EXCEEDED' }],
    ['a dropped connection', { kind: 'drop' }, { code: 'API_UNREACHABLE' }],
    ['an answer cut off', { kind: 'truncate' }, { code: 'API_ANSWER' }],
    ['a page of HTML', { kind: 'garbage' }, { code: 'API_ANSWER' }],
    ['no envelope', { kind: 'status', status: 200, body: {} }, { code: 'API_ANSWER' }],
    ['null', { kind: 'status', status: 200, body: 'null' }, { code: 'API_ANSWER' }],
    ['an array', { kind: 'status', status: 200, body: [] }, { code: 'API_ANSWER' }],
    [
      'data that is no array',
      {
        kind: 'status',
        status: 200,
        body: { data: {}, pagination: { total_records: 0, has_next_page: false } },
      },
      { code: 'API_ANSWER' },
    ],
  ])('is tried again through the quota: %s', async (_, fault, error) => {
    const { list } = await start();
    sandbox.fault({ ...fault, endpoint: 'orders', times: 2 });
    const { data } = await firstValueFrom(list({ offset: 29 }, limit));
    expect(numbers(data)).toEqual([100_030]);
    expect(starts()).toBe(3);
    expect(retried).toMatchObject([error, error]);
  });

  it('waits as long as the server says', async () => {
    const clock = hurriedTime();
    const { list } = await start({}, { scheduler: clock.scheduler, random: () => 0.5 });
    const headers = { 'retry-after': '7' };
    sandbox.fault({ endpoint: 'orders', kind: 'status', status: 429, headers, times: 1 });
    await firstValueFrom(list({}, limit));
    expect(clock.waits).toEqual([7_000]);
  });

  it.each([
    ['no JSON', '<html>', /^http:.*\/v1\/orders sent a response that is not JSON$/],
    ['no page', '{"error":"no"}', 'orders: no array at /data; the response has /error'],
  ])('says what was answered, and where: %s', async (_, body, words) => {
    const { list } = await start();
    sandbox.fault({ endpoint: 'orders', kind: 'status', status: 200, body, times: 1 });
    await firstValueFrom(list({ offset: 29 }, limit));
    const message = expect.stringMatching(words) as string;
    expect(retried).toMatchObject([{ code: 'API_ANSWER', message, context: { offset: 29 } }]);
  });

  it('waits for a part of the pause that chance decides', async () => {
    const clock = hurriedTime();
    const { list } = await start({}, { scheduler: clock.scheduler, random: () => 0.5 });
    sandbox.fault({ endpoint: 'orders', kind: 'status', status: 500, times: 2 });
    await firstValueFrom(list({}, limit));
    expect(clock.waits).toEqual([125, 250]);
  });

  it('is an answer larger than allowed', async () => {
    const enough = new Error('seen enough');
    const onRetry = ({ error }: Retry) => {
      retried.push(error);
      throw enough;
    };
    const { list } = await start({}, { maxPageBytes: 3_000, hooks: { onRetry } });
    await expect(firstValueFrom(list({}, limit))).rejects.toBe(enough);
    expect(retried).toMatchObject([{ code: 'API_ANSWER' }]);
  });
});

describe('with a decoder that knows digests', () => {
  /** A decoder that keeps the digests of what it has parsed. */
  function recognising() {
    const kept = new Map<string, PayloadDigest>();
    const keyFields = ['order_number'];
    const keyOf = keyOfFields(keyFields);
    const known = (key: string) => kept.get(key);
    const decode = digestDecoder(
      { keyFields, keyOf, stamps: WINE_STAMPS, payloadDigestOf: known },
      parsingDecoder(keyOf, WINE_STAMPS),
    );
    const keep = ({ key, digest }: PageRecord) => key !== undefined && kept.set(key, digest!);
    return { decode, keep };
  }
  const page = (data: string, rest = '') =>
    `{"pagination":{"total_records":2,"has_next_page":false}${rest},"data":[${data}]}`;
  const orders = ['{"order_number":1,"a":[{"b":"}"}]}', '{"order_number":2,"data":[1]}'];

  it.each<[string, string, string[]]>([
    ['as it was', page(orders.join()), ['1', '2']],
    [
      'the other way round, with one between',
      page(`${orders[1]},{"order_number":3},${orders[0]}`),
      ['2', '1'],
    ],
    [
      'in another layout',
      `\n${page(` ${orders.join(' ,\r\n\t')} `, ' , "more" : {"data":[2]} ')} `,
      ['1', '2'],
    ],
    [
      'with what is no record',
      page(`${orders[0]},null,[],7,"order_number",12345678901234567890,{}`),
      ['1'],
    ],
    ['with an escape in a name', page(orders.join(), ',"a\\u0062":1'), ['1', '2']],
    ['with data twice', page(orders.join(), ',"data":[{"order_number":4}]'), ['1', '2']],
    ['empty', page(''), []],
  ])('gives the same page as without: %s', async (_, body, known) => {
    const { decode, keep } = recognising();
    const { tokens } = await start();
    const baseUrl = new URL(sandbox.url);
    const list = listOf({ baseUrl, list: ORDERS, tokens, dispatcher, decode });
    const answered = async (by: typeof list, text: string) => {
      sandbox.fault({ endpoint: 'orders', kind: 'status', status: 200, body: text, times: 1 });
      const { data, total, hasNext } = await firstValueFrom(by({}, limit));
      return { data, total, hasNext };
    };
    const { data } = await answered(list, page(orders.join()));
    data.forEach(keep);
    const again = await answered(list, body);
    const { data: all } = parseJson(body) as JsonObject; // by another way
    expect({ ...again, data: jsonsOf(again.data) }).toEqual({
      data: all,
      total: 2,
      hasNext: false,
    });
    const keys = again.data.flatMap(({ key, image }) => (image ? [key] : []));
    expect(keys).toEqual(known);
  });

  it('gives a page of many steps whole, and nothing of one that is given up between them', async () => {
    const many = Array.from(
      { length: 2_000 },
      (_, n) => `{"order_number":${n},"a":"${'x'.repeat(990)}"}`,
    );
    const body = page(many.join());
    const reads = new LogicalClock();
    let elements = 0;
    let onFirst: (() => void) | undefined;
    const decode: Decoder = (bytes, at) => {
      elements += 1;
      if (elements === 1) onFirst?.();
      return parsingDecoder()(bytes, at);
    };
    const { list } = await start({}, { decode, logicalClock: reads });
    const faulty = { endpoint: 'orders', kind: 'status', status: 200, body, times: 1 } as const;
    sandbox.fault(faulty);
    const given: Answer[] = [];
    const asked = list({}, limit).subscribe((answer) => given.push(answer));
    await new Promise<void>((resolve) => {
      onFirst = () => setImmediate(resolve); // when the first step is done
    });
    asked.unsubscribe();
    onFirst = undefined;
    expect(elements).toBeLessThan(many.length);
    expect(reads.oldest()).toBe(Infinity);

    elements = 0;
    sandbox.fault(faulty);
    const { data } = await firstValueFrom(list({}, limit));
    expect(jsonsOf(data)).toEqual((parseJson(body) as JsonObject).data);
    expect([elements, given]).toEqual([many.length, []]); // none of the one that was given up
  });

  it.each([
    ['in a record that is not known', page(`${orders[0]},{"order_number":3,}`)],
    ['behind a record that is known', page(`${orders[0]}x`)],
    ['between them', page(orders.join('\0,'))],
    ['a comma at the end', page(`${orders[0]},`)],
    ['around them', page(orders.join(), ',"a":01')],
    ['behind the page', `${page(orders.join())}}`],
    ['the page is cut off', page(orders.join()).slice(0, -40)],
  ])('tries again what is not JSON: %s', async (_, body) => {
    const { decode, keep } = recognising();
    const { list } = await start({}, { decode });
    for (const each of [page(orders.join()), body]) {
      sandbox.fault({ endpoint: 'orders', kind: 'status', status: 200, body: each, times: 1 });
      const { data } = await firstValueFrom(list({ offset: 29 }, limit));
      if (each !== body) data.forEach(keep);
      else expect(numbers(data)).toEqual([100_030]);
    }
    const message = `${sandbox.url}/v1/orders sent a response that is not JSON`;
    expect(retried).toMatchObject([{ code: 'API_ANSWER', message, context: { offset: 29 } }]);
  });

  it('tries again what is no page, though its records are known', async () => {
    const { decode, keep } = recognising();
    const { list } = await start({}, { decode });
    for (const body of [page(orders.join()), `{"date":[${orders.join()}]}`]) {
      sandbox.fault({ endpoint: 'orders', kind: 'status', status: 200, body, times: 1 });
      const { data } = await firstValueFrom(list({ pageSize: 1 }, limit));
      data.forEach(keep);
    }
    expect(retried).toMatchObject([{ code: 'API_ANSWER' }]);
  });
});

describe('a 404 to a query for one order', () => {
  const query = { key: '4711' };
  const page = '<html><body>404 Not Found</body></html>';

  it.each([
    ['an object', { message: 'Order not found' }],
    ['an object after a line', '\n {"error":"not found"}'],
  ])('in JSON says that there is none: %s', async (_, body) => {
    const { list, reads } = await start();
    sandbox.fault({ endpoint: 'orders', kind: 'status', status: 404, body, times: 1 });
    const answer = await firstValueFrom(list(query, limit));
    expect(answer.data).toEqual([]);
    expect([answer.total, answer.hasNext]).toEqual([0, false]);
    expect(answer.serverTime).toBeDefined();
    expect(statuses()).toEqual([404]);
    expect(reads.oldest()).toBe(answer.span.begin); // as of any answer: settled by who deals with it
  });

  it.each([
    ['a page of HTML', page],
    ['nothing', ''],
  ])("that is a gateway's is tried again: %s", async (_, body) => {
    const { list } = await start();
    sandbox.fault({ endpoint: 'orders', kind: 'status', status: 404, body, times: 2 });
    await firstValueFrom(list({ key: '100001' }, limit));
    expect(statuses()).toEqual([404, 404, 200]);
    expect(retried).toMatchObject([{ code: 'API_STATUS' }, { code: 'API_STATUS' }]);
  });

  it('is what the description says: other statuses need no JSON, and a 404 that it does not name is none', async () => {
    const { list } = await start({}, { list: { ...ORDERS, one: { ...ORDERS.one!, gone: [410] } } });
    sandbox.fault({ endpoint: 'orders', kind: 'status', status: 410, body: '', times: 1 });
    expect(await firstValueFrom(list(query, limit))).toMatchObject({ data: [], notFound: true });
    const body = { message: 'not found' };
    sandbox.fault({ endpoint: 'orders', kind: 'status', status: 404, body, times: 1 });
    await firstValueFrom(list({ key: '100001' }, limit));
    expect(statuses()).toEqual([410, 404, 200]);
  });

  it('is nothing of the kind to a query for a page', async () => {
    const { list } = await start();
    const body = { message: 'not found' };
    sandbox.fault({ endpoint: 'orders', kind: 'status', status: 404, body, times: 1 });
    const { data } = await firstValueFrom(list({ offset: 29 }, limit));
    expect(numbers(data)).toEqual([100_030]);
    expect(statuses()).toEqual([404, 200]);
  });
});

describe('what cannot pass', () => {
  it('is a bug in what reads its records, which goes on as it is', async () => {
    const bug = new TypeError('a bug');
    const decode = () => {
      throw bug;
    };
    const { list } = await start({}, { decode });
    await expect(firstValueFrom(list({}, limit))).rejects.toBe(bug);
    expect(retried).toEqual([]);
  });

  it.each([
    ['400', { kind: 'status', status: 400 }, 400],
    ['422', { kind: 'status', status: 422 }, 422],
  ] as const)('goes through at once where it names a parameter: %s', async (_, fault, status) => {
    const { list } = await start();
    const body = { message: 'OFFSET must be a multiple of 10' };
    sandbox.fault({ ...fault, body, endpoint: 'orders' });
    const error = await failureOf(list({ offset: 3, key: '4711' }, limit));
    expect(error).toMatchObject({ code: 'API_STATUS', context: { status, offset: 3 } });
    expect(error.message).toBe(`${sandbox.url}/v1/orders answered ${status}`);
    expect(statuses()).toEqual([status]);
  });
});

it('does not follow a redirect with the token, but asks again', async () => {
  const { list } = await start();
  const headers = { location: '/v1/products' };
  sandbox.fault({ endpoint: 'orders', kind: 'status', status: 302, headers, times: 1 });
  await firstValueFrom(list({}, limit));
  expect(statuses()).toEqual([302, 200]);
  expect(sandbox.truth.requests('products')).toHaveLength(0);
});

it('quotes neither an answer nor the token in an error', async () => {
  const { list, tokens } = await start();
  const bodies = ['{"email":"ada@example.com', 'ada@example.com', '{"data":"ada@example.com"}'];
  for (const body of bodies) {
    sandbox.fault({ endpoint: 'orders', kind: 'status', status: 200, body, times: 1 });
  }
  await firstValueFrom(list({ key: '100001' }, limit));
  expect(retried).toHaveLength(3);
  const shown = inspect(retried, { depth: 10 }) + retried.map(describeError).join();
  expect(shown).not.toContain('ada@');
  expect(shown).not.toContain(tokens.current()!.text);
  expect(shown).not.toContain('100001');
});

describe('serverTime', () => {
  /** Moves on by 40 ms whenever it is looked at. */
  const ticking = (): SchedulerLike => {
    let now = 0;
    return { ...hurriedTime().scheduler, now: () => (now += 40) };
  };

  it('is the Date of the answer, less what may have passed since it was sent', async () => {
    const { list } = await start({ clockSkewMs: -3_600_000 }, { scheduler: ticking() });
    const { serverTime } = await firstValueFrom(list({}, limit));
    expect(serverTime).toBe(NOW - 3_600_000 - 40);
    expect(seen).toEqual([{ status: 200, elapsedMs: 40, waitedMs: 40 }]);
  });

  it('is counted on from the login when no Date is sent', async () => {
    const { scheduler } = hurriedTime(1_000);
    const at400 = (token: Token): Token => ({ ...token, askedAt: 400 }); // on the same clock
    const { list } = await start({ readings: { dateHeader: false } }, { scheduler }, at400);
    const { serverTime } = await firstValueFrom(list({}, limit));
    expect(serverTime).toBe(NOW + 600);
  });

  it('is unknown when neither has told it', async () => {
    const silent = (token: Token): Token => ({ ...token, serverTime: undefined });
    const { list } = await start({ readings: { dateHeader: false } }, {}, silent);
    expect((await firstValueFrom(list({}, limit))).serverTime).toBeUndefined();
  });
});

describe('the span', () => {
  it('is open from the request until the page has been dealt with', async () => {
    const { list, reads } = await start();
    const [first, second] = await Promise.all([
      firstValueFrom(list({ pageSize: 1 }, limit)),
      firstValueFrom(list({ pageSize: 1 }, limit)),
    ]);
    expect(first.span.begin).toBeLessThan(second.span.begin);
    expect(second.span.begin).toBeLessThan(first.span.end); // they overlapped
    expect(reads.oldest()).toBe(first.span.begin);
    reads.settle(first.span.begin);
    expect(reads.oldest()).toBe(second.span.begin);
    const third = await firstValueFrom(list({ pageSize: 1 }, limit));
    expect(third.span.begin).toBeGreaterThan(second.span.end);
  });

  it('of a try that failed is settled', async () => {
    const { list, reads } = await start();
    sandbox.fault({ endpoint: 'orders', kind: 'drop', times: 1 });
    sandbox.fault({ endpoint: 'orders', kind: 'garbage', times: 1 });
    const { span } = await firstValueFrom(list({}, limit));
    expect(retried).toHaveLength(2);
    expect(reads.oldest()).toBe(span.begin);
  });

  it('of a request that is given up is settled, and the request closed', async () => {
    const { list, reads } = await start();
    await firstValueFrom(list({}, limit)).then(({ span }) => reads.settle(span.begin));
    sandbox.fault({ endpoint: 'orders', kind: 'stall' });
    const subscription = list({}, limit).subscribe();
    while (sandbox.truth.requests('orders').length < 2) await new Promise(setImmediate);
    expect(reads.oldest()).toBeLessThan(Infinity);
    subscription.unsubscribe();
    expect(reads.oldest()).toBe(Infinity);
  });
});
