import { asyncScheduler, firstValueFrom, of } from 'rxjs';
import { afterEach, describe, expect, it } from 'vitest';
import { parseDescription } from '../../src/description/read-description.ts';
import { asker } from '../../src/measure/ask.ts';
import { MAX_REQUESTS, measuredOf, measureList } from '../../src/measure/measure-list.ts';
import type { Measurement } from '../../src/measure/replies.ts';
import type { Token } from '../../src/streams/http/login.ts';
import { pageRequest } from '../../src/streams/http/page-request.ts';
import { RequestPlan } from '../../src/streams/http/request-plan.ts';
import type { TokenSource } from '../../src/streams/http/token.ts';
import { keyOfFields } from '../../src/streams/records/key-of.ts';
import { lyingServer } from './lying-server.ts';
import type { Lie, LyingServer } from './lying-server.ts';

let server: LyingServer | undefined;
afterEach(() => server?.close());

const COMMON = {
  ...{ path: '/things', records: '/data', key: 'id', updated: 'updated', limit: 50 },
  ...{ total: '/total', more: '/more', dates: { from: '{from}', to: '{to}' } },
  one: { path: '/things/{key}' },
};
const STYLES = {
  offset: { ...COMMON, paging: 'offset', query: { offset: '{offset}', limit: '{limit}' } },
  page: { ...COMMON, paging: 'page', query: { page: '{page}', limit: '{limit}' } },
  after: { ...COMMON, paging: 'after', query: { after: '{after}', limit: '{limit}' } },
  cursor: {
    ...{ ...COMMON, paging: 'cursor', next: '/next' },
    query: { cursor: '{cursor}', limit: '{limit}' },
  },
};

/** Measures a server that tells these lies, as a list with this paging. */
async function measured(
  style: keyof typeof STYLES,
  lies: readonly Lie[] = [],
  keys: object = {},
): Promise<readonly Measurement[]> {
  const running = await lyingServer(...lies);
  server = running;
  const list = { ...STYLES[style], ...keys };
  const file = { format: 1, api: 'shop', auth: 'none', quota: '5/s', lists: { things: list } };
  const description = parseDescription(JSON.stringify(file), 'shop.json');
  const token: Token = { text: 't', lifeMs: 1e9, askedAt: 0, serverTime: undefined };
  const tokens = {
    token$: of(token),
    current: () => token,
    report: () => ({ isFinal: true, pauseMs: undefined }),
  } as unknown as TokenSource;
  const { times } = description;
  const ask$ = asker({
    ...{ list: description.lists[0]!, times, scheduler: asyncScheduler },
    request: (each) =>
      pageRequest(new RequestPlan({ baseUrl: running.baseUrl, list: each }), { tokens }),
    limit: (source) => source,
    keyOfFirst: () => keyOfFields(description.lists[0]!.keyCandidates[0]!),
  });
  return measureList({
    ...{ list: description.lists[0]!, times, unitMs: 1, now: Date.now },
    ask: (question) => firstValueFrom(ask$(question)),
    pause: () => Promise.resolve(),
  });
}

const withVerdict = (found: readonly Measurement[], verdict: Measurement['verdict']) =>
  found
    .filter((each) => each.verdict === verdict)
    .map(({ claim, measured: text }) => `${claim}: ${text}`);

describe('an honest server', () => {
  it.each(['offset', 'page', 'after', 'cursor'] as const)(
    'refutes nothing, within the requests: %s',
    async (style) => {
      const found = await measured(style);
      expect(withVerdict(found, 'refuted')).toEqual([]);
      expect(withVerdict(found, 'warning')).toEqual([]);
      expect(server!.asked.length).toBeLessThanOrEqual(MAX_REQUESTS);
      const { notRefuted } = measuredOf(new Map([['things', found]]), '2026-05-01').lists.things!;
      expect(notRefuted).toEqual(
        expect.arrayContaining([
          'key',
          'order',
          'limit',
          'paging',
          'total',
          'dates',
          'updated',
          'one',
        ]),
      );
    },
  );

  it('uses every request that is allowed, and says which experiments had none left', async () => {
    const found = await measured('offset', [], { total: { path: '/things/count', at: '/count' } });
    expect(withVerdict(found, 'refuted')).toEqual([]);
    expect(server!.asked).toHaveLength(MAX_REQUESTS);
    expect(withVerdict(found, 'not measured')).toContain(
      'dates: window from 2000: no request is left of 15',
    );
    expect(found).toContainEqual({
      ...{ claim: 'order', verdict: 'not refuted' },
      measured: expect.stringContaining('first page after 60 s') as string,
    });
  });
});

it('warns of a list without dates that is not sorted by its key', async () => {
  const warnings = async (list: object) =>
    withVerdict(
      await measured('offset', [], { dates: undefined, one: undefined, ...list }),
      'warning',
    );
  expect(await warnings({})).toEqual([]);
  expect(await warnings({ key: 'name' })).toEqual([
    expect.stringContaining('order: first page: not sorted by the key') as string,
  ]);
});

it('claims no `more` of a list whose pages do not show its end', async () => {
  const total = { path: '/things/count', at: '/count' };
  const found = await measured('offset', [], { total, more: undefined });
  expect(withVerdict(found, 'refuted')).toEqual([]);
  expect(found.filter(({ claim }) => claim === 'more')).toEqual([]);
  expect(found).toContainEqual({
    ...{ claim: 'total', verdict: 'not refuted' },
    measured: 'last page and beyond: 0 records beyond the last page',
  });
});

describe('a server that lies', () => {
  it.each<[Lie, keyof typeof STYLES, string]>([
    [
      'caps the size silently',
      'offset',
      'limit: first page: 20 records returned for a page size of 50, although the list has more',
    ],
    [
      'rounds offsets',
      'offset',
      'paging: smaller pages: 10 records requested from offset 7, 10 returned, beginning with record 0 of the first page',
    ],
    ['ignores the filter', 'offset', 'dates: windows: window that begins in 2099: 50 records'],
    ['has an exclusive filter', 'after', 'the start is exclusive, or read in another time zone'],
    [
      'reads dates in another zone',
      'cursor',
      'the start is exclusive, or read in another time zone',
    ],
    ['counts the whole list in a window', 'page', 'that of the whole list'],
    ['counts too few records', 'offset', 'records beyond the last page'],
    ['finds a record that is not there', 'offset', 'one: one by key: an unknown key: 1 record'],
    [
      'shows another record alone',
      'offset',
      'one: one by key: the response does not have the requested record',
    ],
    ['says more on the last page', 'offset', 'more: last page and beyond: more is true'],
    ['repeats a key', 'offset', 'key: first page: 1 of 50 records repeat a key'],
    [
      'sorts in another order each time',
      'offset',
      'order: first page twice: 22 records unchanged in the second response',
    ],
    [
      'repeats the first page behind a cursor',
      'cursor',
      'paging: second page: 50 records, of which 50',
    ],
  ])('%s (%s)', async (lie, style, text) => {
    const refuted = withVerdict(await measured(style, [lie]), 'refuted');
    expect(refuted).toContainEqual(expect.stringContaining(text));
    const claims = new Set(refuted.map((line) => line.split(':')[0]));
    if (lie !== 'sorts in another order each time') expect(claims.size).toBe(1);
  });

  it.each<[Lie, keyof typeof STYLES, string]>([
    [
      'gives the front for an unknown cursor',
      'after',
      'the API returns the first page, without an error; a scan notices this after a deletion, reads pages again',
    ],
    [
      'gives the front for an unknown cursor',
      'cursor',
      'the API returns the first page, without an error; a scan whose cursor has expired may start over',
    ],
    [
      'has stamps of whole days',
      'offset',
      'updated: first page: present in all of 50 records, resolution 24 h',
    ],
    [
      'empties the list for an unknown parameter',
      'offset',
      'query: an unknown parameter: no records',
    ],
  ])('%s (%s): a warning', async (lie, style, text) => {
    const found = await measured(style, [lie]);
    expect(withVerdict(found, 'warning')).toContainEqual(expect.stringContaining(text));
    expect(withVerdict(found, 'refuted')).toEqual([]);
  });

  it('fails in one experiment: it is reported, and the others run', async () => {
    const found = await measured('offset', ['fails for a single record']);
    expect(withVerdict(found, 'not measured')).toContainEqual(
      expect.stringMatching(/^one: one by key: .* 500/),
    );
    expect(withVerdict(found, 'refuted')).toEqual([]);
    expect(found).toContainEqual({
      ...{ claim: 'order', verdict: 'not refuted' },
      measured: expect.stringContaining('first page after 60 s') as string,
    });
  });
});
