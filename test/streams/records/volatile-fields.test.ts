import { describe, expect, it } from 'vitest';
import { parseJson } from '../../../src/schemas/json/json.ts';
import type { JsonObject } from '../../../src/schemas/json/json.ts';
import { volatileFields } from '../../../src/streams/records/volatile-fields.ts';

describe('volatileFields', () => {
  const { without, isSame } = volatileFields(['/seen', '/images/url', '/a~1b/~0']);

  it('leaves out the fields, and nothing else', () => {
    const record = {
      id: 1,
      seen: { deep: 1 },
      images: [{ n: 1, url: 1 }, 'x'],
      'a/b': { '~': 1, c: 2 },
    };
    expect(without(record)).toEqual({ id: 1, images: [{ n: 1 }, 'x'], 'a/b': { c: 2 } });
    expect(record.seen).toEqual({ deep: 1 });
  });

  it('gives back what has none of them as it is', () => {
    for (const value of [{ id: 1, images: [], 'a/b': null }, 'seen', null, ['seen']] as const) {
      expect(without(value as never)).toBe(value);
    }
  });

  it('holds what stands where an object was expected for a change, and one more element', () => {
    const differ = (one: JsonObject, other: JsonObject) => !isSame(one, other);
    expect(differ({ images: 'x' }, { images: 'y' })).toBe(true);
    expect(differ({ images: [{ url: 1 }] }, { images: [{ url: 1 }, { url: 2 }] })).toBe(true);
    expect(differ({ images: [{ url: 1 }] }, { images: [{ url: 2 }] })).toBe(false);
    expect(differ({ seen: null }, {})).toBe(false);
  });

  it('keeps long numbers, and names such as __proto__', () => {
    const record = parseJson('{"__proto__":{"x":12345678901234567890},"seen":1}');
    expect(
      isSame(
        record as JsonObject,
        parseJson('{"__proto__":{"x":12345678901234567890}}') as JsonObject,
      ),
    ).toBe(true);
    expect(
      isSame(
        record as JsonObject,
        parseJson('{"__proto__":{"x":12345678901234567891}}') as JsonObject,
      ),
    ).toBe(false);
  });
});
