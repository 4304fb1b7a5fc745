import fc from 'fast-check';
import { isLosslessNumber, parse as parseLossless } from 'lossless-json';
import { describe, expect, it } from 'vitest';
import {
  canonicalJson,
  JsonNumber,
  parseJson,
  setOwn,
  stringifyJson,
} from '../../../src/schemas/json/json.ts';
import type { JsonObject, JsonValue } from '../../../src/schemas/json/json.ts';

describe('parseJson', () => {
  it.each([
    '9007199254740993',
    '12345678901234567890',
    '-12345678901234567890',
    '1e400',
    '-1E+400',
    '1e-400',
    '0.1000000000000000055511151231257827',
    '123456789012345.67890',
    '5e-324000',
  ])('keeps %s as it was written', (text) => {
    expect(parseJson(text)).toEqual(new JsonNumber(text));
    expect(parseJson(`[${text}]`)).toEqual([new JsonNumber(text)]);
    expect(parseJson(`{"a": {"b":${text}}}`)).toEqual({ a: { b: new JsonNumber(text) } });
    expect(stringifyJson(parseJson(`[1,${text},2]`))).toBe(`[1,${text},2]`);
  });

  it.each([
    ['1.50000000000000000000', 1.5],
    ['100000000000000000000', 1e20],
    ['0.00000000000000000001', 1e-20],
    ['1e0000000005', 100_000],
    ['0e400', 0],
    ['9007199254740992', 2 ** 53],
    ['1.7976931348623157e308', Number.MAX_VALUE],
    ['-0', -0],
  ])('reads %s as a plain number', (text, number) => {
    expect(parseJson(text)).toBe(number);
    expect(parseJson(`[${text}]`)).toEqual([number]);
  });

  it('is not taken in by digits in strings and names', () => {
    const digits = '12345678901234567890';
    const text = `{"${digits}":"${digits}","a\\"":": ${digits}","\\\\":[": ${digits}\\\\",1]}`;

    expect(parseJson(text)).toEqual(JSON.parse(text));
    expect(stringifyJson(parseJson(`{"s":", ${digits}","n":${digits}}`))).toBe(
      `{"s":", ${digits}","n":${digits}}`,
    );
  });

  it('lets the last of several equal keys win', () => {
    expect(parseJson('{"a":12345678901234567890,"a":1}')).toEqual({ a: 1 });
    expect(parseJson('{"a":1,"a":12345678901234567890}')).toEqual({
      a: new JsonNumber('12345678901234567890'),
    });
  });

  it('leaves prototypes alone', () => {
    const value = parseJson('{"__proto__":{"a":12345678901234567890},"constructor":1e999}');

    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
    expect(Object.keys(value as JsonObject)).toEqual(['__proto__', 'constructor']);
    expect(stringifyJson(value)).toBe(
      '{"__proto__":{"a":12345678901234567890},"constructor":1e999}',
    );
    const swap = parseJson('{"__proto__":12345678901234567890}');
    expect(stringifyJson(swap)).toBe('{"__proto__":12345678901234567890}');
  });

  it.each(['', '{', '[1 12345678901234567890]', '01234567890123456789', '["a]', '[1e400', 'nul'])(
    'refuses %s',
    (text) => {
      expect(() => parseJson(text)).toThrow(SyntaxError);
    },
  );

  it('is at ease in any depth', () => {
    const deep = `${'[{"a":'.repeat(30_000)}12345678901234567890${'}]'.repeat(30_000)}`;

    expect(stringifyJson(parseJson(deep))).toBe(deep);
    expect(canonicalJson(parseJson(deep))).toBe(deep);
  });

  it('agrees with a parser that keeps every number', () => {
    fc.assert(
      fc.property(numberTexts(), fc.string(), fc.string(), (numbers, key, string) => {
        const text = `{"a":${JSON.stringify(string)},${JSON.stringify(`${key}!`)}:[${numbers.join(', ')}]}`;
        const oracle = parseLossless(text) as Record<string, unknown>;
        const kept = (oracle[`${key}!`] as unknown[]).map(String);
        const ours = (parseJson(text) as JsonObject)[`${key}!`] as JsonValue[];

        ours.forEach((number, index) => {
          expect(isLosslessNumber(number)).toBe(false);
          if (number instanceof JsonNumber) expect(number.text).toBe(kept[index]);
          else expect(isSame(number as number, kept[index]!)).toBe(true);
        });
      }),
    );
  });
});

describe('stringifyJson', () => {
  it('is JSON.stringify for what JSON.parse gives', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6 }), (value) => {
        const text = JSON.stringify(value);
        expect(stringifyJson(JSON.parse(text) as JsonValue)).toBe(text);
      }),
    );
  });

  it('writes -0, lone surrogates, control characters', () => {
    const value = { '': -0, '\ud800': '\udfff "\\\u0000\n', é: '😀' };

    expect(stringifyJson(value)).toBe('{"":-0,"\\ud800":"\\udfff \\"\\\\\\u0000\\n","é":"😀"}');
    expect(parseJson(stringifyJson(value))).toEqual(value);
  });

  it('leaves out what is undefined, as JSON.stringify does', () => {
    const value: Record<string, unknown> = { a: undefined, b: 1 };
    expect(stringifyJson(value as JsonObject)).toBe('{"b":1}');
  });
});

describe('canonicalJson', () => {
  it('sorts keys at every depth, and nothing else', () => {
    expect(canonicalJson({ b: [2, 1, { d: 1, c: 2 }], a: null, B: 1 })).toBe(
      '{"B":1,"a":null,"b":[2,1,{"c":2,"d":1}]}',
    );
  });
});

describe('setOwn', () => {
  it('sets any name', () => {
    const object: JsonObject = {};
    setOwn(object, '__proto__', { a: 1 });
    setOwn(object, 'a', 2);

    expect(JSON.stringify(object)).toBe('{"__proto__":{"a":1},"a":2}');
  });
});

/** Numbers as JSON may spell them, many of them at the edge of what a double holds. */
function numberTexts(): fc.Arbitrary<string[]> {
  const digits = (max: number) => fc.stringMatching(new RegExp(`^[0-9]{1,${max}}$`));
  const parts = fc.tuple(
    fc.constantFrom('', '-'),
    fc.oneof(fc.constant('0'), fc.stringMatching(/^[1-9][0-9]{0,24}$/)),
    fc.option(digits(24)),
    fc.option(fc.tuple(fc.constantFrom('e', 'E', 'e+', 'e-'), digits(3))),
  );
  const text = parts.map(
    ([sign, whole, fraction, exponent]) =>
      sign + whole + (fraction === null ? '' : `.${fraction}`) + (exponent?.join('') ?? ''),
  );
  return fc.array(text, { minLength: 1 });
}

/** Whether a double is the decimal number of the text, worked out in whole numbers. */
function isSame(number: number, text: string): boolean {
  const scaled = (of: string): bigint => {
    const [mantissa = '', exponent = '0'] = of.toLowerCase().split('e');
    const [whole = '', fraction = ''] = mantissa.split('.');
    return BigInt(whole + fraction) * 10n ** BigInt(Number(exponent) - fraction.length + 2_000);
  };
  return scaled(String(number)) === scaled(text);
}
