import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  canonicalJson,
  isJsonObject,
  parseJson,
  pointerNames,
  pointerStep,
  stringifyJson,
  valueAt,
  withValueAt,
} from '../../../src/schemas/json/json.ts';
import type { JsonValue } from '../../../src/schemas/json/json.ts';
import { endOfValue, pageElements, parsedElement } from '../../../src/schemas/json/json-bytes.ts';
import { atOnce } from '../../support/at-once.ts';
import { jsonValues } from '../../support/json-values.ts';

/** Parses elements one by one. */
const parsed = (page: Buffer) => (at: number) => {
  const { value, end } = parsedElement(page, at);
  return { values: [value], end };
};

/** What the page says, from its elements and the rest; undefined where it has to be parsed whole. */
function taken(page: Buffer, path: readonly string[]): JsonValue | undefined {
  const parts = atOnce(pageElements(page, path, parsed(page)));
  if (!parts) return undefined;
  const rest = parseJson(parts.rest);
  expect(valueAt(rest, path)).toEqual([]);
  return withValueAt(rest, path.map(pointerStep).join(''), [...parts.elements]);
}

const outcome = (work: () => JsonValue | undefined): string => {
  try {
    const value = work();
    return value === undefined ? 'not taken apart' : canonicalJson(value);
  } catch (error) {
    if (error instanceof SyntaxError) return 'no JSON';
    throw error;
  }
};
const inParts = (text: string | Buffer, path = ['data']) =>
  outcome(() => taken(Buffer.from(text), path));
const asWhole = (text: string | Buffer) => outcome(() => parseJson(text.toString()));

const SPACES = fc.string({ unit: fc.constantFrom(' ', '\n', '\r', '\t'), maxLength: 2 });

/** JSON text of a value, in some layout: white space anywhere, any character as an escape. */
function layouts(value: JsonValue): fc.Arbitrary<string> {
  return fc
    .tuple(fc.array(SPACES, { minLength: 1, maxLength: 5 }), fc.nat(7))
    .map(([spaces, every]) => {
      let n = 0;
      const space = () => spaces[n++ % spaces.length]!;
      const quoted = (text: string) => {
        const units = Array.from(text.split(''), (unit, k) =>
          every > 0 && (k + n) % (every * 2) === 1
            ? `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
            : JSON.stringify(unit).slice(1, -1),
        );
        return `"${units.join('')}"`;
      };
      const laid = (part: JsonValue): string => {
        const all = (texts: string[]) => texts.join(`${space()},${space()}`);
        if (Array.isArray(part)) return `[${space()}${all(part.map(laid))}${space()}]`;
        if (isJsonObject(part))
          return `{${space()}${all(Object.entries(part).map(([key, item]) => `${quoted(key)}${space()}:${space()}${laid(item)}`))}${space()}}`;
        return typeof part === 'string' ? quoted(part) : stringifyJson(part);
      };
      return space() + laid(value) + space();
    });
}

/** Values with `data` in them at any depth, and text that looks like the page around it. */
const values: fc.Arbitrary<JsonValue> = fc.oneof(
  jsonValues,
  jsonValues.map((value) => ({ data: [value, { data: [] }], 'da"ta': ']' })),
  fc.constantFrom<JsonValue>('"data":[', '],"data":[1]', '\\', '"', '{', [[]], [{}], -1.5e-7, 'é𝄞'),
);
const pages: fc.Arbitrary<string> = fc
  .tuple(
    fc.array(fc.tuple(fc.constantFrom('pagination', 'meta', 'Data', ''), values), { maxLength: 3 }),
    fc.oneof(
      { weight: 6, arbitrary: fc.array(values, { maxLength: 4 }) },
      { weight: 1, arbitrary: values },
    ),
    fc.nat(3),
  )
  .chain(([others, data, place]) => {
    const members: [string, JsonValue][] = [...others];
    members.splice(place, 0, ['data', data]);
    return layouts(Object.fromEntries(members));
  });

/** Pages whose records stand as deep as their path says, and their paths. */
const deepPages: fc.Arbitrary<{ readonly path: string[]; readonly page: string }> = fc
  .tuple(
    fc.array(fc.constantFrom('data', 'meta', 'é/"'), { maxLength: 3 }),
    fc.array(values, { maxLength: 3 }),
    fc.array(fc.tuple(fc.constantFrom('data', 'meta', 'total', ''), values), { maxLength: 3 }),
    fc.nat(3),
  )
  .chain(([path, records, others, place]) => {
    const body = path.reduceRight<JsonValue>((inner, name) => {
      const members: [string, JsonValue][] = others.filter(([other]) => other !== name);
      members.splice(place, 0, [name, inner]);
      return Object.fromEntries(members);
    }, records);
    return layouts(body).map((page) => ({ path, page }));
  });

describe('pageElements', () => {
  it('finds the records as deep as they are, or the page as a whole, and what was damaged there', () => {
    const damages = fc.array(fc.tuple(fc.nat(), fc.constantFrom(...'{}[],:" 1', ''), fc.nat(2)), {
      maxLength: 2,
    });
    const depths = new Set<number>();
    let damaged = 0;
    fc.assert(
      fc.property(deepPages, damages, ({ path, page }, all) => {
        let text = page;
        for (const [place, by, length] of all) {
          const at = place % (text.length + 1);
          text = text.slice(0, at) + by + text.slice(at + length);
        }
        const found = inParts(text, path);
        if (found === 'not taken apart') return;
        expect(found).toBe(asWhole(text));
        if (found === 'no JSON') damaged += 1;
        else depths.add(path.length);
      }),
      { seed: 3, numRuns: 3_000 },
    );
    expect([...depths].sort()).toEqual([0, 1, 2, 3]);
    expect(damaged).toBeGreaterThan(100);
  });

  it.each([
    ['/a/b', '{"a":{"b":[1]},"c":2}', true],
    ['/a/b', '{"b":[0],"a":{"c":{"b":[2]},"b":[1]}}', true],
    ['', ' [1, {"data":[2]}] ', true],
    ['', '{"data":[1]}', false],
    ['/a/b', '{"a":{"b":[1]},"a":{"b":[2]}}', false],
    ['/a/b', '{"a":{"b":[1],"b":[2]}}', false],
    ['/a/b', '{"a":[{"b":[1]}]}', false],
    ['/a/b', '{"a":{"b":[1]}', false],
    ['/a/b', '{"a":{"b":[1]]}', false],
    ['/0/b', '[{"b":[1]}]', false],
  ])('follows %j in %s: %j', (pointer, page, isFound) => {
    const found = inParts(page, pointerNames(pointer));
    expect(found).toBe(isFound ? asWhole(page) : 'not taken apart');
  });

  it('says exactly what the page says, in whatever layout', () => {
    let apart = 0;
    fc.assert(
      fc.property(pages, (page) => {
        const found = inParts(page);
        if (found === 'not taken apart') return;
        apart += 1;
        expect(found).toBe(asWhole(page));
      }),
      { seed: 1, numRuns: 1_000 },
    );
    expect(apart).toBeGreaterThan(300);
  });

  it('finds what is no JSON, wherever it was damaged: in an element, in the rest, or not at all', () => {
    const odd = [
      ...'{}[],:"\\ 1e-.tn',
      '\0',
      '\v',
      '\f',
      '\u001f',
      '\u00a0',
      '\ufeff',
      '\u2028',
      '',
    ];
    const changes = fc.array(fc.tuple(fc.nat(), fc.constantFrom(...odd), fc.nat(2)), {
      minLength: 1,
      maxLength: 3,
    });
    const seen = new Set<string>();
    fc.assert(
      fc.property(pages, changes, fc.nat(9), (page, all, cut) => {
        let text = page;
        for (const [place, by, length] of all) {
          const at = place % (text.length + 1);
          text = text.slice(0, at) + by + text.slice(at + length);
        }
        if (cut === 0) text = text.slice(0, all[0]![0] % (text.length + 1));
        const [found, whole] = [inParts(text), asWhole(text)];
        seen.add(`${found === whole || found} ${whole === 'no JSON'}`);
        if (found !== 'not taken apart') expect(found).toBe(whole);
      }),
      { seed: 2, numRuns: 3_000 },
    );
    expect(seen).toContain('true true');
    expect(seen).toContain('true false');
  });

  it('sees every page cut off, at whatever byte', () => {
    const page = Buffer.from(
      '{"pagination":{"a":[1,"]"]}, "data" : [ {"b":"é\\"}"}, 12, null ],"c":{}}\n',
    );
    expect(inParts(page)).toBe(asWhole(page));
    for (let end = 0; end < page.length - 1; end++) {
      expect(inParts(page.subarray(0, end))).toMatch(/^(no JSON|not taken apart)$/);
    }
  });

  it.each([
    '{"data":[1 2]}',
    '{"data":[1,]}',
    '{"data":[,1]}',
    '{"data":[,]}',
    '{"data":[1,,2]}',
    '{"data":[1}]}',
    '{"data":[1],}',
    '{,"data":[1]}',
    '{"data":[1]}}',
    '{"data":[1]} x',
    '{"data":[1]}{"data":[2]}',
    '\ufeff{"data":[1]}',
    '{"data":[\ufeff1]}',
    '{"data":[\u00a01]}',
    '{"data":[\0{"a":1}\u0001,\u000b{"b":2}\f]}',
    '{"data":[1\0]}',
    '{"data":\v[1]}',
    '\0{"data":[1]}',
    '{"data":[1]\0}',
    '{"data":["a\nb"]}',
    '{"data":[{"a":[1}]}',
    '{"data":[{]}]}',
    '{"data":[1],"a":[}',
    '{"data":[1],"a":01}',
    '{"data":[01]}',
    '{"data":[nul]}',
    '{"data":["\\x"]}',
    '{"data":[1],a:2}',
    '{"data" [1]}',
    '{"data":[1',
    '{"data":["',
    '{"data":["\\',
    '{"data":[1],"a":"\\',
    '{"data":',
    '{',
    '',
  ])('passes nothing that is no JSON: %j', (page) => {
    expect(asWhole(page)).toBe('no JSON');
    expect(inParts(page)).toMatch(/^(no JSON|not taken apart)$/);
  });

  it.each([
    ['an array', '[{"data":[1]}]'],
    ['no data', '{"a":[1]}'],
    ['an empty object', '{}'],
    ['data that is no array', '{"data":{"data":[1]}}'],
    ['data twice', '{"data":[1],"data":[2]}'],
    ['an escape in a name', '{"d\\u0061ta":[1],"data":[2]}'],
  ])('leaves a page of another make whole: %s', (_, page) => {
    expect(inParts(page)).toBe('not taken apart');
  });

  it('takes a page apart wherever data stands, its own and no other', () => {
    for (const page of [
      '{"data":[{"data":[1]},[2],"]",3],"a":{"data":[4]}}',
      '{"a":{"data":[4]},"b":"\\"data\\":[","data":[]}',
      ' { "a" : 1 , "data" : [ ] , "a" : 2 } ',
      '{"a":-1.5e3,"data":[true,null,{}],"__proto__":1}',
      '{"data":[12345678901234567890],"a":12345678901234567890}',
    ]) {
      expect(inParts(page)).toBe(asWhole(page));
    }
  });

  it('hands over the place of each element, and goes on where it is told that it ends', () => {
    const page = Buffer.from('{"data": [ 1,\t"two" ,{"three":3}]}');
    const places: string[] = [];
    const parts = atOnce(
      pageElements(page, ['data'], (at) => {
        const end = endOfValue(page, at);
        places.push(page.toString('utf8', at, end));
        return { values: [at], end };
      }),
    );
    expect(places).toEqual(['1', '"two"', '{"three":3}']);
    expect(parts).toEqual({ elements: [11, 14, 21], rest: '{"data": []}' });
  });

  it('stops between elements about every 512 KiB, and never on a small page', () => {
    const steps = (elements: number, bytes: number): number => {
      const data = Array.from({ length: elements }, () => 'x'.repeat(bytes - 3));
      const page = Buffer.from(JSON.stringify({ data, pagination: {} }));
      const taking = pageElements(page, ['data'], parsed(page));
      let stops = 0;
      for (let step = taking.next(); !step.done; step = taking.next()) stops += 1;
      return stops;
    };
    expect(steps(1_000, 500)).toBe(0);
    expect(steps(1_000, 3_000)).toBe(5);
    expect(steps(3, 2 ** 20)).toBe(2);
  });
});
