import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { lastValueFrom, of, toArray } from 'rxjs';
import { afterEach, describe, expect, it } from 'vitest';
import type { ListDescription } from '../../../src/description/description.ts';
import { parseDescription } from '../../../src/description/read-description.ts';
import { listRequest } from '../../../src/streams/decode/list-request.ts';
import { LogicalClock } from '../../../src/streams/http/logical-clock.ts';
import type { Token } from '../../../src/streams/http/login.ts';
import type { TokenOutcome } from '../../../src/streams/http/token-life.ts';
import type { TokenSource } from '../../../src/streams/http/token.ts';
import { pages } from '../../../src/streams/paging/pages.ts';
import type { ScanTrouble } from '../../../src/streams/paging/scan-trouble.ts';
import { keyOfFields } from '../../../src/streams/records/key-of.ts';
import { hurriedTime } from '../../support/hurried-time.ts';

let close: () => void = () => undefined;
afterEach(() => close());

interface Refusal {
  readonly status: number;
  readonly body: string;
}

function listWith(keys: object): ListDescription {
  const list = { path: '/things', records: '/data', key: 'id', ...keys };
  const file = { format: 1, api: 'shop', auth: 'none', quota: '5/s', lists: { things: list } };
  return parseDescription(JSON.stringify(file), 'shop.json').lists[0]!;
}

/**
 * Reads a list from a server that deletes the record after which the third request reads, and then does not know it. An outage of so many
 * requests begins with that request, too.
 */
async function readingOf(keys: object, { status, body }: Refusal, outage = 0) {
  let ids = Array.from({ length: 50 }, (_, k) => 100 + k);
  const asked: string[] = [];
  const outcomes: TokenOutcome[] = [];
  let unknown: string | undefined;
  const server = createServer((request, response) => {
    asked.push(request.url!);
    const after = new URL(request.url!, 'http://localhost').searchParams.get('after');
    if (asked.length === 3) [unknown, ids] = [after!, ids.filter((id) => id !== Number(after))];
    const isOut = asked.length >= 3 && asked.length < 3 + outage;
    if ((outage === 0 && unknown !== undefined && after === unknown) || isOut) {
      response.writeHead(status, { 'content-type': 'application/json' });
      return void response.end(body);
    }
    const things = ids.filter((id) => id > Number(after)).slice(0, 20);
    const last = things.at(-1)!;
    const hasMore = last < ids.at(-1)!;
    response.setHeader('content-type', 'application/json');
    if (hasMore) response.setHeader('link', `</things?after=${last}>; rel="next"`);
    const data = things.map((id) => ({ id }));
    response.end(JSON.stringify({ data, has_more: hasMore, ...(hasMore && { next: last }) }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  close = () => server.close();
  const baseUrl = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const description = listWith(keys);
  const token: Token = { text: 't', lifeMs: 1e9, askedAt: 0, serverTime: undefined };
  const tokens = {
    token$: of(token),
    current: () => token,
    report: (_: unknown, outcome: TokenOutcome) => {
      outcomes.push(outcome);
      return { isFinal: true, pauseMs: undefined };
    },
  } as unknown as TokenSource;
  const keyOf = keyOfFields(['id']);
  const { scheduler } = hurriedTime();
  const request = listRequest({ baseUrl, list: description, tokens, keyOf, scheduler });
  const troubles: ScanTrouble[] = [];
  const scan = pages({
    request: (place) => request(place, (source) => source),
    keyOf,
    list: description,
    pageSize: 20,
    onTrouble: (trouble) => troubles.push(trouble),
  });
  const all = await lastValueFrom(scan.pipe(toArray()));
  const read = new Set(all.flatMap(({ answer }) => answer.data.map(({ key }) => Number(key))));
  return { outcomes, troubles, isComplete: ids.every((id) => read.has(id)) };
}

const REFUSALS = [
  { status: 400, body: '{"error":{"code":"resource_missing"}}' },
  { status: 410, body: '{}' },
];
const AFTER = { paging: 'after', more: '/has_more', limit: 20, query: { after: '{after}' } };
const CURSOR = { paging: 'cursor', next: '/next', query: { after: '{cursor}' } };
const LINK = { paging: 'link', next: { link: 'next' } };

describe('the refusal of a cursor by the server', () => {
  it.each(REFUSALS)('as $status: the key of a deleted record', async (refusal) => {
    const { troubles, isComplete, outcomes } = await readingOf(AFTER, refusal);
    expect(troubles).toEqual(['stepped-back']);
    expect(isComplete).toBe(true);
    expect(outcomes).not.toContain('failed-for-good'); // the token is not the cause
  });

  it.each([CURSOR, LINK])('of an expired cursor: $paging', async (keys) => {
    const { troubles, isComplete } = await readingOf(keys, REFUSALS[1]!);
    expect(troubles).toEqual(['expired']);
    expect(isComplete).toBe(true);
  });

  it.each([
    { status: 404, body: '{}' },
    { status: 500, body: '{}' },
    { status: 200, body: '{"errors":[{"message":"no such cursor"}],"data":null}' },
  ])('shows as $status $body, while the first page is served', async (failure) => {
    for (const keys of [AFTER, CURSOR, LINK]) {
      const { troubles, isComplete } = await readingOf(keys, failure);
      expect(troubles).toEqual([keys === AFTER ? 'stepped-back' : 'expired']);
      expect(isComplete).toBe(true);
    }
  });

  it.each([500, 404])(
    'is not an outage, in which the first page fails, too: %i',
    async (status) => {
      const { troubles, isComplete } = await readingOf(CURSOR, { status, body: '{}' }, 40);
      expect(troubles).toEqual([]);
      expect(isComplete).toBe(true);
    },
  );
});

it('a request that is not sent, as its address has another origin, leaves no read open', async () => {
  const token: Token = { text: 't', lifeMs: 1e9, askedAt: 0, serverTime: undefined };
  const tokens = { token$: of(token), current: () => token } as unknown as TokenSource;
  const logicalClock = new LogicalClock();
  const baseUrl = new URL('http://127.0.0.1:9');
  const request = listRequest({ baseUrl, list: listWith(LINK), tokens, logicalClock });
  const place = { offset: 20, pageSize: 20, cursor: 'https://evil.example/things?x=1' };
  await expect(lastValueFrom(request(place, (source) => source))).rejects.toThrow('evil.example');
  expect(logicalClock.oldest()).toBe(Infinity);
});
