import { expect, it } from 'vitest';
import { knownRejects, rejectDigest } from '../../../src/streams/records/records.ts';
import { volatileFields } from '../../../src/streams/records/volatile-fields.ts';

const reject = (raw: number) => ({ reason: 'no-key', raw, key: null }) as const;

it('knownRejects: the same reject is news once on a page, a changed one again', () => {
  const isNews = knownRejects(() => false);
  const news = (...raws: number[]) => raws.map((raw) => isNews(reject(raw)));
  expect(news(1, 1, 2, 1, 3)).toEqual([true, false, true, false, true]);
  expect(isNews({ reason: 'not-an-object', raw: 1, key: null })).toBe(true);
});

it('knownRejects: what an earlier page has told, or an earlier process, is no news', () => {
  const known = new Set([1, 2].map((raw) => rejectDigest(reject(raw))));
  const isNews = knownRejects((digest) => known.has(digest));
  expect([1, 2, 3].map((raw) => isNews(reject(raw)))).toEqual([false, false, true]);
  expect([...known].map((digest) => Buffer.byteLength(digest, 'latin1'))).toEqual([16, 16]);
});

it('knownRejects: a record that differs in a volatile field alone is no news', () => {
  const volatile = volatileFields(['/seen']);
  const record = (seen: number, name = 'x') =>
    ({ reason: 'no-key', raw: { seen, name }, key: null }) as const;
  const known = rejectDigest(record(1), volatile);
  const isNews = knownRejects((digest) => digest === known, volatile);
  expect([record(2), record(3), record(3, 'y')].map(isNews)).toEqual([false, false, true]);
});
