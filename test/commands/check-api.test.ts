import { expect, it } from 'vitest';
import { usedUpQuota } from '../../src/commands/check-api.ts';
import { parseDescription } from '../../src/description/read-description.ts';

const description = (quota: string) =>
  parseDescription(
    `format: 1
api: shop
auth: none
quota: ${quota}
list: { paging: none, records: '', key: id }
lists:
  sales: { path: /sales }
  prices: { path: /prices, quota: 60/h }
`,
    'shop.yaml',
  );

it.each([
  ['endpoint', '100/min per list', 'sales', '50 requests a minute (QUOTA_PER_MINUTE)'],
  ['endpoint', '100/min per list', 'prices', '1 requests a minute (`quota` in the description)'],
  ['key', '100/min per key', 'sales', '50 requests a minute (QUOTA_PER_MINUTE)'],
  [
    ...(['key', '100/min per key', 'prices'] as const),
    '1 requests a minute (`quota` in the description), or all 50 requests a minute (QUOTA_PER_MINUTE)',
  ],
] as const)('names the quota that is used up: %s, %s, %s', (scope, quota, list, limits) => {
  const set = { perMinute: 50, loginsPerMinute: 10, scope, firstReadPercent: 73 };
  expect(usedUpQuota(list, { quota: set, description: description(quota) })).toBe(
    `the quota for ${list} is used up: all ${limits}`,
  );
});
