import { describe, expect, it } from 'vitest';
import type { JsonValue } from '../../../src/schemas/json/json.ts';
import { pointerNames, pointerStep, valueAt, withValueAt } from '../../../src/schemas/json/json.ts';

describe('pointerStep', () => {
  // The examples of RFC 6901, section 5.
  it.each([
    ['foo', '/foo'],
    ['', '/'],
    ['a/b', '/a~1b'],
    ['c%d', '/c%d'],
    ['k"l', '/k"l'],
    [' ', '/ '],
    ['m~n', '/m~0n'],
    ['~1', '/~01'],
    ['/~/', '/~1~0~1'],
  ])('writes %j as %j, where withPart finds it', (name, step) => {
    expect(pointerStep(name)).toBe(step);
    expect(withValueAt({}, step, 1)).toEqual({ [name]: 1 });
  });
});

describe('withPart', () => {
  it.each<[string, JsonValue]>([
    ['', 7],
    ['/a', { a: 7, b: [{ c: 1 }] }],
    ['/b/0/c', { a: 1, b: [{ c: 7 }] }],
    ['/b/0', { a: 1, b: [7] }],
    ['/x/y', { a: 1, b: [{ c: 1 }], x: { y: 7 } }],
    ['/a/y', { a: { y: 7 }, b: [{ c: 1 }] }],
    ['/toString/y', { a: 1, b: [{ c: 1 }], toString: { y: 7 } }],
  ])('replaces what is at %j', (pointer, expected) => {
    expect(withValueAt({ a: 1, b: [{ c: 1 }] }, pointer, 7)).toEqual(expected);
  });
});

describe('valueAt', () => {
  it.each<[string, JsonValue | undefined]>([
    ['/b/0', 5],
    ['/b/1', undefined],
    ['/b/00', undefined],
    ['/b/length', undefined],
    ['/b/0/length', undefined],
    ['/length', 3],
  ])('finds members and elements, and no other properties: %s', (pointer, expected) => {
    expect(valueAt({ b: [5], length: 3 }, pointerNames(pointer))).toBe(expected);
  });
});
