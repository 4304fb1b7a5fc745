import { lastValueFrom, of, throwError } from 'rxjs';
import type { Observable } from 'rxjs';
import { describe, expect, it, vi } from 'vitest';
import { CellarstreamError } from '../../../src/core/errors.ts';
import { listNamed } from '../../../src/description/description.ts';
import { WINE } from '../../../src/description/wine/wine.ts';
import { SingleRecords } from '../../../src/pipeline/reads/single-records.ts';
import type { Answer } from '../../../src/streams/decode/response.ts';
import type { ListQuery } from '../../../src/streams/http/page-request.ts';
import { PageRecord } from '../../../src/streams/records/page-record.ts';
import { records } from '../../support/records.ts';
import { PageRecords } from '../../../src/streams/records/page-records.ts';

const answer = (...numbers: number[]): Answer => ({
  data: records(numbers.map((order_number) => ({ order_number }))),
  total: numbers.length,
  hasNext: false,
  span: { begin: 1, end: 2 },
  serverTime: undefined,
});
const notFound: Answer = { ...answer(), notFound: true };
const found = (key: string): Answer => ({
  ...answer(1),
  data: [PageRecord.ofJson(key, { key })],
});

/** Asks for order 7, or a record with another key, of an API that says this of a key. */
function asked(
  says: (number: string) => Observable<Answer>,
  seen: readonly string[] = [],
  key = '7',
) {
  const numbers: string[] = [];
  const settle = vi.fn();
  const onRefused = vi.fn();
  const single = new SingleRecords({
    one: { ...listNamed(WINE, 'orders').one!, digitsOnly: key === '7' },
    request: ({ key: each }: ListQuery) => {
      numbers.push(each!);
      return says(each!);
    },
    settle,
    onRefused,
  });
  single.observe(new PageRecords(seen.map((each) => PageRecord.ofJson(each, { key: each }))));
  const result = lastValueFrom(single.request(key, (source) => source));
  return { result, numbers, settle, onRefused, single };
}

describe('SingleRecords', () => {
  it('can request what the description allows: keys of digits alone, or any', () => {
    const { one } = listNamed(WINE, 'orders');
    const given = { request: () => of(answer()), settle: vi.fn(), onRefused: vi.fn() };
    const canRequest = (change: object) => {
      const single = new SingleRecords({ one: { ...one!, ...change }, ...given });
      return [single.canRequest('7'), single.canRequest('A-7')];
    };
    expect(canRequest({})).toEqual([true, false]);
    expect(canRequest({ digitsOnly: false })).toEqual([true, true]);
    const any = new SingleRecords({ one: { ...one!, digitsOnly: false }, ...given });
    expect(['.', '..', '...', 'a/..'].map((key) => any.canRequest(key))).toEqual([
      false,
      false,
      true,
      true,
    ]);
    expect(new SingleRecords({ one: undefined, ...given }).canRequest('7')).toBe(false);
  });

  it('give what the API says, be it nothing', async () => {
    for (const said of [answer(7), answer()]) {
      const { result, numbers } = asked(() => of(said), ['8']);
      expect(await result).toBe(said);
      expect(numbers).toEqual(['7']);
    }
  });

  it('believe a 404 only while a record that is there is found', async () => {
    const api = (number: string) => of(number === '7' ? notFound : found(number));
    const { result, numbers, settle } = asked(api, ['x', '9', 'y']);
    expect(await result).toBe(notFound);
    expect(numbers).toEqual(['7', '9']);
    expect(settle).toHaveBeenCalledTimes(1); // the other answer
  });

  it('believe a 404 for a key with special characters only while such a record is found', async () => {
    const there = new Set(['c', 'd', 'a/b', 'é', 'ü c', '100%']);
    const api = (key: string) => of(there.has(key) ? found(key) : notFound);
    const refusing = (key: string) => (key.includes('/') ? of(notFound) : api(key));
    const all = [...there];
    for (const [key, witness] of [
      ['x', 'd'],
      ['x/y', 'a/b'],
      ['ö', 'é'],
      ['x z', undefined],
      ['../x', undefined],
      ['x//y', undefined],
      ['/x', undefined],
      ['x/', undefined],
      ['/', undefined],
      ['x%20y', undefined],
    ] as const) {
      const { result, numbers } = asked(api, all, key);
      expect(await result).toBe(witness && notFound);
      expect(numbers).toEqual([key, ...(witness ? [witness] : [])]);
    }
    expect(await asked(refusing, all, 'x/y').result).toBeUndefined();
    expect(await asked(refusing, all, 'x').result).toBe(notFound);
  });

  it('believe an empty answer for a key with special characters only while such a record is found', async () => {
    const there = new Set(['c', 'a,b']);
    const api = (key: string) => of(there.has(key) ? found(key) : answer());
    const splitting = (key: string) => (key.includes(',') ? of(answer()) : api(key));
    for (const [key, seen, witness] of [
      ['x', [], undefined],
      ['x,y', [...there], 'a,b'],
    ] as const) {
      const { result, numbers } = asked(api, seen, key);
      expect(await result).toMatchObject({ data: [] });
      expect(numbers).toEqual([key, ...(witness === undefined ? [] : [witness])]);
    }
    expect(await asked(splitting, [...there], 'x,y').result).toBeUndefined();
    expect(await asked(api, ['c'], 'x,y').result).toBeUndefined();
  });

  it.each([
    ['everything is answered so', () => of(notFound), ['9']],
    [
      'another record comes for the one known',
      (key: string) => of(key === '7' ? notFound : found('8')),
      ['9'],
    ],
    ['nothing is known to be there', () => of(notFound), []],
    ['it is the only one known', () => of(notFound), ['7']],
  ])('can not tell when %s, and leave no read open', async (_, api, seen) => {
    const { result, numbers, settle } = asked(api, seen);
    expect(await result).toBeUndefined();
    expect(settle).toHaveBeenCalledTimes(numbers.length);
  });

  it('say so when another record comes for the one known', async () => {
    const { result, onRefused } = asked((key) => of(key === '7' ? notFound : found('8')), ['9']);
    expect(await result).toBeUndefined();
    const message = expect.stringContaining('a record of another key') as string;
    expect(onRefused.mock.calls).toMatchObject([[{ code: 'API_ANSWER', message }]]);
  });

  it('can not tell when what is known to be there is refused, and leave no read open', async () => {
    const error = new CellarstreamError('API_STATUS', 'answered 400', { context: { status: 400 } });
    const api = (number: string) => (number === '7' ? of(notFound) : throwError(() => error));
    const { result, settle, onRefused } = asked(api, ['9']);
    expect(await result).toBeUndefined();
    expect(settle.mock.calls).toEqual([[notFound.span]]);
    expect(onRefused).not.toHaveBeenCalled();
  });

  it('can not tell of a number that the API refuses, and say so; other errors go on', async () => {
    const refused = new CellarstreamError('API_STATUS', 'answered 400', {
      context: { status: 400 },
    });
    const { result, onRefused } = asked(() => throwError(() => refused));
    expect(await result).toBeUndefined();
    expect(onRefused).toHaveBeenCalledWith(refused);
    const fatal = new CellarstreamError('API_KEY_REJECTED', 'no');
    await expect(asked(() => throwError(() => fatal)).result).rejects.toBe(fatal);
  });

  it('can not tell of what is no JSON, and say so; nor does it bear witness', async () => {
    const odd: Answer = { ...answer(1), data: [PageRecord.unreadable('{"order_number":7,}', 0)] };
    const one = asked(() => of(odd));
    expect(await one.result).toBeUndefined();
    expect(one.settle.mock.calls).toEqual([[odd.span]]);
    expect(one.onRefused).toHaveBeenCalledTimes(1);

    const other = asked((number) => of(number === '7' ? notFound : odd), ['9']);
    expect(await other.result).toBeUndefined();
    expect(other.settle).toHaveBeenCalledTimes(2);
  });

  it('are asked for by whole numbers alone', () => {
    const { single } = asked(() => of(answer()));
    expect(['7', '0', '-7', 'A-7', '', '7.5'].filter((key) => single.canRequest(key))).toEqual([
      '7',
      '0',
    ]);
  });

  it('take keys of known runs from their bytes, without creating their records', async () => {
    const there = new Set(['a/b']);
    const { single } = asked((key) => of(there.has(key) ? found(key) : notFound), [], 'x/y');
    const bytes = Buffer.from('..a/b..');
    const run = { size: 1, eachKey: (tell: (...key: unknown[]) => void) => tell(bytes, 2, 5) };
    single.observe(new PageRecords([{ size: 1, run } as never]));
    expect(await lastValueFrom(single.request('x/y', (source) => source))).toBe(notFound);
  });
});
