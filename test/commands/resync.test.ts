import { expect, it } from 'vitest';
import { resyncRequestOf } from '../../src/commands/resync.ts';
import { parseDescription } from '../../src/description/read-description.ts';
import { WINE } from '../../src/description/wine/wine.ts';

const SHOP = parseDescription(
  `format: 1
api: shop
auth: none
quota: 100/min
list: { paging: none, records: '', key: id }
lists:
  sales: { path: /sales, one: { path: '/sales/{key}' } }
  prices: { path: /prices, one: { path: '/prices/{key}' } }
  tags: { path: /tags }
`,
  'shop.yaml',
);

const request = (flags: Parameters<typeof resyncRequestOf>[0], description = SHOP) =>
  resyncRequestOf(flags, {
    account: 'default',
    description,
    resources: description.lists.map(({ name }) => name),
  });

it('requests a single record from the only list that serves single records', () => {
  expect(request({ order: '7' }, WINE)).toMatchObject({ resources: ['orders'], order_number: 7 });
});

it('needs the list of a single record where several lists serve single records', () => {
  expect(() => request({ order: '7' })).toThrow('--order needs --resource: sales or prices');
  expect(request({ order: '7', resource: 'prices' })).toMatchObject({ resources: ['prices'] });
});

it('refuses flags that contradict each other', () => {
  expect(() => request({ order: '7', resource: 'tags' })).toThrow(
    "--order can't be used with --resource tags",
  );
  const since = '2026-01-31T12:00:00Z';
  expect(() => request({ order: '7', resource: 'sales', since })).toThrow(
    "--order and --since can't be used together",
  );
  expect(() => request({ order: 'A7', resource: 'sales' })).toThrow('--order must be');
  expect(() => request({ since: 'noon' })).toThrow('--since must be an ISO 8601 time');
});
