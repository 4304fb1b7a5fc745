import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { avroName, isAvroName, recordName } from '../../../src/schemas/avro/avro-name.ts';

const never = () => false;

describe('avroName', () => {
  it.each([
    ['order_number', 'order_number'],
    ['newItems', 'newItems'],
    ['first name', 'first_name'],
    ['a.b', 'a_b'],
    ['2nd', '_2nd'],
    ['2024', '_2024'],
    ['', '_'],
    ['$', '_'],
    ['Cépage', 'Cepage'],
    ['ﬁn', 'fin'],
    ['名前', '__'],
    ['😀', '_'],
    ['\ud800', '_'],
    ['x'.repeat(150), 'x'.repeat(150)],
    [' '.repeat(150), '_'.repeat(100)],
    ['\ufdfa'.repeat(100), undefined],
  ])('spells %j', (text, name) => {
    const spelled = avroName(text, never);

    if (name !== undefined) expect(spelled).toBe(name);
    expect(isAvroName(spelled)).toBe(true);
    expect(spelled.length).toBeLessThanOrEqual(150);
  });

  it('tells apart what is spelled alike, by a hash that is the same everywhere', () => {
    const taken = new Set(['a_b']);
    const isTaken = (name: string) => taken.has(name);

    expect(avroName('a b', isTaken)).toBe('a_b_c8687a08');
    expect(avroName('a.b', isTaken)).toBe('a_b_2e7336dc');
    expect(avroName('a_b', isTaken)).toMatch(/^a_b_[0-9a-f]{8}$/);
  });

  it('finds another name where the hash is taken too', () => {
    const taken = new Set<string>();
    for (let n = 0; n < 50; n++) {
      const name = avroName('a b', (name) => taken.has(name));
      expect(taken.has(name)).toBe(false);
      taken.add(name);
    }
  });

  it('gives any texts names of their own', () => {
    const texts = fc.uniqueArray(fc.oneof(fc.string({ unit: 'binary' }), fc.string()));
    fc.assert(
      fc.property(texts, (keys) => {
        const taken = new Set<string>();
        for (const key of keys) {
          const name = avroName(key, (name) => taken.has(name));
          expect(isAvroName(name)).toBe(true);
          taken.add(name);
        }
        expect(taken.size).toBe(keys.length);
      }),
      { seed: 1 },
    );
  });
});

describe('recordName', () => {
  it.each([
    [['shipping_address'], 'ShippingAddress'],
    [['shipping_address', 'geo'], 'ShippingAddressGeo'],
    [['newItems'], 'NewItems'],
    [['_2nd', 'part'], '_2ndPart'],
    [['_'], '_'],
  ])('joins %j', (path, name) => {
    expect(recordName(path, new Set())).toBe(name);
  });

  it('hashes the way to it where the name is taken', () => {
    const nameOf = (...path: string[]) => recordName(path, new Set(['ab']));

    expect(nameOf('a_b')).not.toBe(nameOf('a', 'b'));
  });
});
