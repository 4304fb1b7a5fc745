import { expect, it, vi } from 'vitest';
import type { PiiConfig } from '../../src/config/config.ts';
import type { JsonValue } from '../../src/schemas/json/json.ts';
import type { ListQuery } from '../../src/streams/http/page-request.ts';
import { records } from '../support/records.ts';
import { unmatchedFields } from '../../src/account/personal-fields-of.ts';

const pii: PiiConfig = {
  drop: [{ resource: 'orders', path: ['tender_info', 'last_four'] }],
  mask: [{ resource: 'orders', path: ['emial'] }],
  hmac: [{ resource: 'customers', path: ['email'] }],
  hmacKey: undefined,
};

/** What was told after each of these pages. */
function told(
  pages: readonly (readonly [data: readonly JsonValue[], query?: ListQuery, hasNext?: boolean])[],
  resource: 'orders' | 'customers' | 'products' = 'orders',
  volatile: readonly string[] = [],
): readonly (readonly string[])[] {
  const names: string[] = [];
  const look = unmatchedFields(pii, resource, volatile, (name) => names.push(name));
  const after: (readonly string[])[] = [];
  for (const [data, query = {}, hasNext = true] of pages) {
    const answer = { data: records(data), total: 0, hasNext };
    look({ ...answer, span: { begin: 1, end: 2 }, serverTime: undefined }, query);
    after.push([...names]);
  }
  return after;
}

const card = { id: 1, tender_info: [{ last_four: '1' }] };
const plain = (count: number) => Array.from({ length: count }, (_, id) => ({ id }));
const POLL = { from: '2026-03-05T12:00:00Z' };

it('tells once what none of the first 100 records has', () => {
  const pages = [[plain(99)], [[card]], [plain(100)]] as const;
  expect(told(pages)).toEqual([[], ['emial'], ['emial']]);
});

it('tells it of a whole list that has fewer', () => {
  expect(told([[[]], [[], {}, false], [[card], {}, false]])).toEqual([[], [], ['emial']]);
});

it('does not tell it of the few records that a poll brings, or one that was asked for', () => {
  const asked = { key: '1' };
  const few = [
    [plain(1), POLL, false],
    [plain(1), asked, false],
    [plain(98), POLL],
  ] as const;
  expect(told(few)).toEqual([[], [], ['tender_info.last_four', 'emial']]);
});

it('tells nothing of a list of which nothing is to be hidden, or all is there', () => {
  expect(told([[plain(100)]], 'products')).toEqual([[]]);
  expect(told([[[...plain(99), { email: null }]]], 'customers')).toEqual([[]]);
});

it('tells of volatile fields, too', () => {
  const records = [...plain(99), { images: [{ url: 1 }] }];
  const pointers = ['/images/url', '/image'];
  expect(told([[records]], 'products', pointers)).toEqual([['/image']]);
});

it('does not read the records of pages once nothing is left to look for: known runs would be created for it', () => {
  const look = unmatchedFields(pii, 'products', [], () => undefined);
  const answer = { total: 0, hasNext: true, span: { begin: 1, end: 2 }, serverTime: undefined };
  const read = vi.fn(() => []);
  look(Object.defineProperty(answer, 'data', { get: read }) as never, {});
  expect(read).not.toHaveBeenCalled();
});
