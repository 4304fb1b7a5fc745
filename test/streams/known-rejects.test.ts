import { expect, it } from 'vitest';
import { knownRejects, rejectDigest } from '../../src/streams/known-rejects.ts';
import { volatileFields } from '../../src/streams/volatile-fields.ts';

const reject = (raw: number) => ({ reason: 'no-key', raw, key: null }) as const;

it('knownRejects: the same reject is news once, a changed one again, and the oldest are forgotten', () => {
  const isNews = knownRejects([], 2);
  const news = (...raws: number[]) => raws.map((raw) => isNews(reject(raw)));
  expect(news(1, 1, 2, 1)).toEqual([true, false, true, false]);
  expect(news(3, 1, 2)).toEqual([true, false, true]); // 2 was the oldest when 3 came
  expect(isNews({ reason: 'not-an-object', raw: 1, key: null })).toBe(true);
});

it('knownRejects: what an earlier process knew is no news', () => {
  const isNews = knownRejects([1, 2].map((raw) => rejectDigest(reject(raw))));
  expect([1, 2, 3].map((raw) => isNews(reject(raw)))).toEqual([false, false, true]);
});

it('knownRejects: a record that differs in a volatile field alone is no news', () => {
  const volatile = volatileFields(['/seen']);
  const record = (seen: number, name = 'x') =>
    ({ reason: 'no-key', raw: { seen, name }, key: null }) as const;
  const isNews = knownRejects([rejectDigest(record(1), volatile)], 10, volatile);
  expect([record(2), record(3), record(3, 'y')].map(isNews)).toEqual([false, false, true]);
});
