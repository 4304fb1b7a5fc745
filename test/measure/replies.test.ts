import { expect, it } from 'vitest';
import { absentKey } from '../../src/measure/replies.ts';

it.each([
  [['7', '12'], '999'],
  [['ab12', 'cd34'], 'ab99'],
  [['ORD-9998', 'ORD-9999'], 'ORD-99999'],
  [['9'.repeat(15)], '9'.repeat(16)],
  [['9'.repeat(15), '9'.repeat(16)], '9'.repeat(17)],
  [[], '99'],
])('of keys like %j, one is asked for that is none of them', (keys, absent) => {
  expect(absentKey(keys)).toBe(absent);
});
