import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { KeyIndex } from '../../../src/streams/records/key-index.ts';

const indexOf = (keys: readonly string[]): KeyIndex => {
  const index = new KeyIndex();
  for (const key of keys) index.add(key);
  return index;
};

/** Short ones, of which many are the same or alike. */
const someKey = fc.oneof(
  fc.nat({ max: 300 }).map(String),
  fc.string({ unit: 'grapheme', maxLength: 4 }),
  fc.constantFrom('', 'é', 'e', 'ab', 'ba', '1', '01'),
);
const someKeys = fc.array(someKey, { maxLength: 400 });

describe('an index of keys', () => {
  it('counts as many different ones as a set of their texts', () => {
    fc.assert(
      fc.property(someKeys, (keys) => {
        const index = indexOf(keys);
        expect([index.length, index.size]).toEqual([keys.length, new Set(keys).size]);
      }),
    );
  });

  it('finds each where it was added first, and no other', () => {
    fc.assert(
      fc.property(someKeys, someKey, (keys, other) => {
        const index = indexOf(keys);
        for (const key of [...keys, other]) {
          const place = keys.indexOf(key);
          expect(index.placeOf(key)).toBe(place < 0 ? undefined : place);
        }
      }),
    );
  });

  it('is the same of texts, of their bytes, and of other indexes', () => {
    fc.assert(
      fc.property(someKeys, someKeys, (keys, more) => {
        const joined = indexOf([]);
        joined.addAll(indexOf(keys));
        for (const key of more) {
          const bytes = Buffer.from(`"${key}"`);
          joined.addBytes(bytes, 1, bytes.length - 1);
        }
        const all = [...keys, ...more];
        expect(joined.size).toBe(new Set(all).size);
        for (const key of all) expect(joined.placeOf(key)).toBe(all.indexOf(key));
      }),
    );
  });

  it('tells a quarter of a million numbers apart, and begins anew', () => {
    const index = new KeyIndex();
    for (let number = 0; number < 250_000; number += 1) index.add(String(100_000 + number));
    expect(index.size).toBe(250_000);
    index.clear();
    expect([index.length, index.size, index.placeOf('100000')]).toEqual([0, 0, undefined]);
  });
});
