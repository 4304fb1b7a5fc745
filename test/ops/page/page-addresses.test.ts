import { expect, it } from 'vitest';

interface Addressing {
  readonly addressesOf: (page: string | undefined, pathname: string) => object;
}
const MODULE = new URL('../../../src/ops/page/page-updates.ts', import.meta.url).pathname;
const { addressesOf } = (await import(MODULE)) as Addressing;

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
