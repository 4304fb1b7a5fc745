import { describe, expect, it } from 'vitest';
import { alterAt, parsePath } from '../../src/sandbox/drift.ts';
import type { JsonValue } from '../../src/sandbox/index.ts';

describe('a path', () => {
  it.each([
    ['since', ['since']],
    ['loyalty.since', ['loyalty', 'since']],
    ['/loyalty/since', ['loyalty', 'since']],
    ['/a~1b/c~0d/e.f/~01', ['a/b', 'c~d', 'e.f', '~1']],
  ])('%s', (path, names) => {
    expect(parsePath(path)).toEqual(names);
  });

  it.each(['', '/', 'a..b', 'a.', '/a//b'])('%j is none', (path) => {
    expect(() => parsePath(path)).toThrow(RangeError);
  });
});

describe('the field at a path', () => {
  const set = (record: JsonValue, path: string) => {
    const altered = alterAt(record, parsePath(path), (old) =>
      old === undefined ? 'new' : `${JSON.stringify(old)}+`,
    );
    return [altered, record];
  };

  it.each<[string, JsonValue, string, JsonValue]>([
    ['is altered', { a: { b: 1 } }, 'a.b', { a: { b: '1+' } }],
    ['is made, with what holds it', { c: 1 }, 'a.b.d', { c: 1, a: { b: { d: 'new' } } }],
    ['is made in place of null', { a: null }, '/a/b', { a: { b: 'new' } }],
    ['is that of each element', { a: [{ b: 1 }, {}] }, 'a.b', { a: [{ b: '1+' }, { b: 'new' }] }],
    ['is that of one element', { a: [{ b: 1 }, {}] }, '/a/1/b', { a: [{ b: 1 }, { b: 'new' }] }],
    ['is an element', { a: [1, 2] }, 'a.1', { a: [1, '2+'] }],
    ['is not taken from what all objects have', {}, 'constructor', { constructor: 'new' }],
  ])('%s', (_, record, path, after) => {
    expect(set(record, path)).toEqual([true, after]);
  });

  it.each<[string, JsonValue, string]>([
    ['in a text', { a: 'text' }, 'a.b'],
    ['behind the end of a list', { a: [1] }, 'a.1'],
    ['in an empty list', { a: [] }, 'a.b'],
    ['in what is no object', 'text', 'a'],
  ])('is not there %s', (_, record, path) => {
    const before = structuredClone(record);
    expect(set(record, path)).toEqual([false, before]);
  });

  it('makes nothing on the way when there is nothing to put into it', () => {
    const record = { a: null };
    expect(alterAt(record, ['a', 'b', 'c'], () => undefined)).toBe(false);
    expect(record).toEqual({ a: null });
  });
});
