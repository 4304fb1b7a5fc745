import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { JsonNumber } from '../../../src/schemas/json/json.ts';
import type { JsonValue } from '../../../src/schemas/json/json.ts';
import { ORDER_IDENTITIES } from '../../../src/resources/orders/order-identities.ts';
import { byIdentity } from '../../../src/streams/diff/changed-paths.ts';
import { jsonValues } from '../../support/json-values.ts';

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
    expect(ORDER_IDENTITIES).toEqual({
      fulfillment_info: 'fulfillment_id',
      order_edit: 'created_at',
    });
  });
});
