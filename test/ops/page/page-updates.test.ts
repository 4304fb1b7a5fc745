import { describe, expect, it } from 'vitest';
import { addressesOf, newVersion, updateAll } from '../../../src/ops/page/page-updates.ts';

describe('updateAll', () => {
  it('brings all views up to date, although one of them fails', () => {
    const told: string[] = [];
    const errors: unknown[] = [];
    const failure = new Error('no such field');
    const views = [
      (text: string) => told.push(`first ${text}`),
      () => {
        throw failure;
      },
      (text: string) => told.push(`last ${text}`),
    ];
    expect(updateAll(views, 'now', (error) => errors.push(error))).toBe(false);
    expect(told).toEqual(['first now', 'last now']);
    expect(errors).toEqual([failure]);
    expect(updateAll([views[0]!], 'then', (error) => errors.push(error))).toBe(true);
    expect(errors).toHaveLength(1);
  });
});

describe('newVersion', () => {
  it('is told once, of the first that is another one', () => {
    let changes = 0;
    const told = newVersion(() => (changes += 1));
    ['1.0.0', '1.0.0', '1.0.0'].forEach(told);
    expect(changes).toBe(0);
    ['1.1.0', '1.1.0', '1.0.0', '1.2.0'].forEach(told);
    expect(changes).toBe(1);
  });
});

it('a page asks beside itself, whatever its address looks like', () => {
  for (const pathname of ['/', '/cellar/', '/accounts/east']) {
    expect(addressesOf(undefined, pathname)).toEqual({ url: 'status/events', statusUrl: 'status' });
  }
});

it('that of an account asks one level up for this account alone', () => {
  expect(addressesOf('account', '/cellar/accounts/east-2.a')).toEqual({
    url: '../status/events?account=east-2.a',
    statusUrl: '../status?account=east-2.a',
  });
  expect(addressesOf('account', '/accounts/a&b=c%')).toMatchObject({
    statusUrl: '../status?account=a%26b%3Dc%25',
  });
});
