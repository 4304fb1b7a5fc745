import { expect, it } from 'vitest';
import { KeyTable } from '../../src/consumers/live-key-tracker.ts';
import { Chance } from '../support/chance.ts';

it('is a Map, whatever comes and goes, also where hashes begin alike', () => {
  const chance = new Chance(3);
  const table = new KeyTable();
  const map = new Map<string, number>();
  // Many that would stand in one place, at the edge of the arrays too.
  const low = () => (chance.is(0.5) ? 2 ** 32 - 1 - chance.below(600) : chance.below(600));
  for (let n = 0; n < 30_000; n++) {
    const hash = { high: chance.below(3), low: low() };
    const text = `${hash.high} ${hash.low}`;
    expect(table.get(hash)).toBe(map.get(text));
    if (chance.is(0.4)) {
      table.delete(hash);
      map.delete(text);
    } else {
      table.set(hash, n);
      map.set(text, n);
    }
  }
  const all = new Map<string, number>();
  table.forEach(({ high, low }, value) => all.set(`${high} ${low}`, value));
  expect(all).toEqual(map);
  expect(map.size).toBeGreaterThan(1_024); // it has grown
});
