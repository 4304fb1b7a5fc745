import { expect, it } from 'vitest';
import { describedQuota, perMinuteOf } from '../../src/description/quota-limits.ts';

const quotaOf = (quota: string | string[], own: Readonly<Record<string, string>> = {}) =>
  describedQuota({
    auth: { login: { path: '/', body: {}, token: '/t', quota: '5/s' } },
    quota: typeof quota === 'string' ? quota : { limits: quota },
    lists: ['orders', 'carts'].map((name) => ({ name, quota: own[name] })),
  });

it.each([
  ['7/min', 7],
  ['5000/h per key', 83],
  ['60/h', 1],
  ['59/h', 0],
  ['1440/d per list', 1],
  ['2/s', 120],
  ['9999999/s', 1_000_000],
])('keeps %s as %i a minute', (limit, perMinute) => {
  expect(perMinuteOf(limit)).toBe(perMinute);
});

it('takes the narrowest limit of each scope, and a list its own in place of those for each list', () => {
  expect(quotaOf('100/min per list')).toEqual({
    ...{ scope: 'endpoint', perMinute: 100, keyPerSecond: undefined },
    lists: {
      orders: { perMinute: undefined, perSecond: undefined },
      carts: { perMinute: undefined, perSecond: undefined },
    },
    login: { perMinute: 300, perSecond: 5 },
  });
  const limits = ['90/min per list', '80/min per list', '5000/h per key', '4/s per key', '9/s'];
  expect(quotaOf(limits, { orders: '3/s' })).toMatchObject({
    ...{ scope: 'key', perMinute: 83, keyPerSecond: 4 },
    lists: {
      orders: { perMinute: undefined, perSecond: 3 },
      carts: { perMinute: 80, perSecond: undefined },
    },
  });
  expect(quotaOf(['90/min per list', '2/s per list'], { orders: '1/s' })).toMatchObject({
    ...{ scope: 'endpoint', perMinute: 90, keyPerSecond: undefined },
    lists: {
      orders: { perMinute: 60, perSecond: 1 },
      carts: { perMinute: undefined, perSecond: 2 },
    },
  });
});
