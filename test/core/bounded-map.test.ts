import { expect, it } from 'vitest';
import { boundedMap } from '../../src/core/bounded-map.ts';

it('remembers the newest half of what it may, and never more than all of it', () => {
  const map = boundedMap<string, number>(100);
  for (let n = 0; n < 300; n++) {
    map.set(`${n}`, n);
    expect(map.size()).toBeLessThanOrEqual(100);
    for (let behind = 0; behind < Math.min(n + 1, 50); behind++) {
      expect(map.get(`${n - behind}`)).toBe(n - behind);
    }
  }
  expect(map.get('0')).toBeUndefined();
});

it('counts what is set again as new, and forgets what is deleted', () => {
  const map = boundedMap<string, number>(4);
  map.set('a', 1);
  map.set('b', 2);
  map.set('a', 3);
  map.set('c', 4);
  expect([map.get('a'), map.get('b'), map.get('c')]).toEqual([3, undefined, 4]);
  map.delete('a');
  map.delete('c');
  expect(map.size()).toBe(0);
});
