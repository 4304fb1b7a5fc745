import { describe, expect, it } from 'vitest';
import {
  filled,
  filledBody,
  filledParameters,
  variablesIn,
} from '../../src/description/template.ts';

describe('templates', () => {
  it('leaves out a parameter whose variable is unset', () => {
    const query = { offset: '{offset}', since: '>={from}', sort: 'id' };
    expect(filledParameters(query, { offset: 0 })).toEqual([
      ['offset', '0'],
      ['sort', 'id'],
    ]);
    expect(filledParameters(query, { from: 'X' })).toEqual([
      ['since', '>=X'],
      ['sort', 'id'],
    ]);
  });

  it('keeps the type of a variable that is a whole text of a body', () => {
    const body = { first: '{limit}', filter: { since: '{from}' }, tags: ['{after}', 'x{limit}'] };
    expect(filledBody(body, { limit: 5 })).toEqual({ first: 5, filter: {}, tags: ['x5'] });
  });

  it('encodes each value, not the text around it', () => {
    expect(filled('/a/{key}/b', { key: 'x/y z' }, encodeURIComponent)).toBe('/a/x%2Fy%20z/b');
    expect(filled('/a/{key}', {})).toBeUndefined();
  });

  it('finds the variables of all texts, and no braces of GraphQL', () => {
    const query = 'query { products(first: 5) { id } }';
    expect(
      variablesIn({ query, variables: { after: '{after}', n: ['{limit}', 1, null] } }),
    ).toEqual(['after', 'limit']);
  });
});
