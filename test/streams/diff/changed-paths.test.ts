import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canonicalJson, JsonNumber } from '../../../src/schemas/json/json.ts';
import type { JsonObject, JsonValue } from '../../../src/schemas/json/json.ts';
import { byIdentity, changedPaths } from '../../../src/streams/diff/changed-paths.ts';
import { jsonValues, objectOf } from '../../support/json-values.ts';
import { ORDERS } from '../../support/orders.ts';

const paths = (before: JsonObject, after: JsonObject) => changedPaths(before, after, ORDERS.arrays);

describe('changedPaths', () => {
  it.each<[string, JsonObject, JsonObject, string[]]>([
    ['nothing', { a: 1, b: { c: [1, { d: 2 }] } }, { b: { c: [1, { d: 2 }] }, a: 1 }, []],
    ['fields, sorted', { b: 1, a: 1, c: 1 }, { b: 2, a: 2, c: 1 }, ['a', 'b']],
    ['a field that is new', {}, { a: 1 }, ['a']],
    ['a field that is gone', { a: 1 }, {}, ['a']],
    ['null for nothing', {}, { a: null }, ['a']],
    ['nothing for null', { a: null }, {}, ['a']],
    ['a text for a number', { a: 1 }, { a: '1' }, ['a']],
    ['-0 for 0, which are written differently', { a: 0 }, { a: -0 }, ['a']],
    [
      'a number that no double holds',
      { a: new JsonNumber('12345678901234567890') },
      { a: new JsonNumber('12345678901234567891') },
      ['a'],
    ],
    [
      'no number that is the same',
      { a: new JsonNumber('12345678901234567890') },
      { a: new JsonNumber('12345678901234567890') },
      [],
    ],
    ['a field of an object', { t: { n: 1, u: 1 } }, { t: { n: 2, u: 1 } }, ['t.n']],
    ['an object for null, whole', { t: null }, { t: { n: 1 } }, ['t']],
    ['an object that is gone, whole', { t: { n: 1 } }, {}, ['t']],
    ['an array of plain values, whole', { tags: ['a', 'b'] }, { tags: ['a', 'c'] }, ['tags']],
    ['plain values in another order', { tags: ['a', 'b'] }, { tags: ['b', 'a'] }, ['tags']],
    ['nested arrays, whole', { m: [[1], [2]] }, { m: [[1], [3]] }, ['m']],
    [
      'objects without identity, by place',
      { order_items: [{ sku: 'a', quantity: 1 }, { sku: 'b' }] },
      { order_items: [{ sku: 'a', quantity: 2 }, { sku: 'b' }, { sku: 'c' }] },
      ['order_items[0].quantity', 'order_items[2]'],
    ],
    ['the first of them', { order_items: [] }, { order_items: [{ sku: 'a' }] }, ['order_items[0]']],
  ])('names %s', (_, before, after, expected) => {
    expect(paths(before, after)).toEqual(expected);
  });

  const fulfilments = (...list: JsonObject[]): JsonObject => ({ fulfillment_info: list });
  const f11 = { fulfillment_id: 'F-11', status: 'open', tracking: { tracking_urls: ['u'] } };
  const f12 = { fulfillment_id: 'F-12', status: 'open' };

  it.each<[string, JsonObject, JsonObject, string[]]>([
    [
      'a field of an element',
      fulfilments(f11, f12),
      fulfilments(f11, { ...f12, status: 'sent' }),
      ['fulfillment_info[F-12].status'],
    ],
    [
      'the same though the places have changed',
      fulfilments(f11, f12),
      fulfilments({ ...f12, status: 'sent' }, f11),
      ['fulfillment_info', 'fulfillment_info[F-12].status'],
    ],
    ['a mere change of places', fulfilments(f11, f12), fulfilments(f12, f11), ['fulfillment_info']],
    ['an element that is new', fulfilments(f11), fulfilments(f12, f11), ['fulfillment_info[F-12]']],
    ['one that is gone', fulfilments(f11, f12), fulfilments(f12), ['fulfillment_info[F-11]']],
    [
      'what is within an element',
      fulfilments(f11),
      fulfilments({ ...f11, tracking: { tracking_urls: ['v'] } }),
      ['fulfillment_info[F-11].tracking.tracking_urls'],
    ],
    [
      'edits of one time by their count',
      { order_edit: [{ created_at: 't' }, { created_at: 't', status: 'a' }] },
      { order_edit: [{ created_at: 't' }, { created_at: 't', status: 'b' }] },
      ['order_edit[t#2].status'],
    ],
    ['null for an array', fulfilments(f11), { fulfillment_info: null }, ['fulfillment_info']],
    [
      'an array of something else',
      fulfilments(),
      { fulfillment_info: ['x'] },
      ['fulfillment_info'],
    ],
    [
      'elements that have no identity, by place',
      fulfilments({ status: 'a' }, f12),
      fulfilments({ status: 'b' }, f12),
      ['fulfillment_info[#1].status'],
    ],
  ])('in arrays with an identity, names %s', (_, before, after, expected) => {
    expect(paths(before, after)).toEqual(expected);
  });

  it('compares arrays by place where only some of their elements are objects', () => {
    const before = { list: [{ a: 1 }, 'x', { b: 1 }] };
    expect(changedPaths(before, { list: [{ a: 2 }, 'x'] })).toEqual(['list[0].a', 'list[2]']);
  });

  it('takes identities from those it is given, not from what every object inherits', () => {
    const before = { constructor: [{ a: 1 }] };
    const after = { constructor: [{ a: 2 }] };
    expect(changedPaths(before, after)).toEqual(['constructor[0].a']);
  });

  it('names no path if, and only if, the records are equal', () => {
    const record = objectOf(
      fc.oneof(
        jsonValues,
        fc.array(
          fc.record({ id: fc.constantFrom('a', 'a#2', '#1', 'a\na', 1, null), n: fc.nat(1) }),
          { maxLength: 3 },
        ),
      ),
    );
    // One of a record's own variants as often as not: two at random are seldom equal.
    const pair = fc.oneof(
      fc.tuple(record, record),
      record.map((one) => [one, structuredCloneOf(one)] as const),
      record.map((one) => [one, reversed(one)] as const),
    );
    fc.assert(
      fc.property(pair, ([before, after]) => {
        const found = changedPaths(before, after, { list: 'id', a: 'id' });
        expect(found.length === 0).toBe(canonicalJson(before) === canonicalJson(after));
        expect(found).toEqual([...new Set(found)].sort());
      }),
      { numRuns: 3_000 },
    );
  });
});

const structuredCloneOf = (record: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(record).reverse());

/** The same arrays the other way round. */
const reversed = (record: JsonObject): JsonObject =>
  Object.fromEntries(
    Object.entries(record).map(([name, value]) => [
      name,
      Array.isArray(value) ? [...value].reverse() : value,
    ]),
  );

const ids = (array: readonly JsonValue[]) => [...byIdentity(array, 'id').keys()];

describe('byIdentity', () => {
  it('knows elements by the text of a field, in order', () => {
    const [a, b] = [
      { id: 'F-2', n: 1 },
      { id: 'F-1', n: 2 },
    ];
    expect([...byIdentity([a, b], 'id')]).toEqual([
      ['F-2', a],
      ['F-1', b],
    ]);
  });

  it('counts those that share one', () => {
    expect(ids([{ id: 'a' }, { id: 'b' }, { id: 'a' }, { id: 'a' }])).toEqual([
      'a',
      'b',
      'a#2',
      'a#3',
    ]);
  });

  it('takes numbers for their text', () => {
    const large = new JsonNumber('12345678901234567890');
    expect(ids([{ id: 7 }, { id: '7' }, { id: large }])).toEqual([
      '7',
      '7#2',
      '12345678901234567890',
    ]);
  });

  it('knows an element without identity by its place', () => {
    expect(ids([null, { id: 'a' }, {}, { id: null }, 'text', { id: {} }])).toEqual([
      '#1',
      'a',
      '#3',
      '#4',
      '#5',
      '#6',
    ]);
  });

  it.each<[string, JsonValue[]]>([
    ['an identity that looks like a count', [{ id: 'a' }, { id: 'a' }, { id: 'a#2' }]],
    ['an identity that looks like a place', [{ id: '#2' }, {}]],
    ['the same, the other way round', [{}, { id: '#1' }]],
  ])('loses no element to %s', (_, array) => {
    expect(new Set(byIdentity(array, 'id').values())).toEqual(new Set(array));
  });

  it('has every element once, in order', () => {
    const id = fc.constantFrom('a', 'a#2', 'a#3', '#1', '#2', 1, null);
    const element = fc.oneof(fc.record({ id }), jsonValues);
    fc.assert(
      fc.property(fc.array(element), (array) => {
        expect([...byIdentity(array, 'id').values()]).toEqual(array);
      }),
      { numRuns: 1_000 },
    );
  });

  it('knows fulfilments by their id and edits by when they were made', () => {
    expect(ORDERS.arrays).toEqual({
      fulfillment_info: 'fulfillment_id',
      order_edit: 'created_at',
    });
  });
});
