import fc from 'fast-check';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { canonicalJson, isJsonObject, JsonNumber } from '../../../src/schemas/json/json.ts';
import type { JsonObject, JsonValue } from '../../../src/schemas/json/json.ts';
import { orderSchema } from '../../../src/description/wine/order.ts';
import { parsedElement } from '../../../src/schemas/json/json-bytes.ts';
import { RecordCodec } from '../../../src/schemas/avro/record-codec.ts';
import { instantOf } from '../../../src/schemas/avro/instant.ts';
import type { Transcoded } from '../../../src/schemas/avro/record-codec.ts';
import { Chance } from '../../support/chance.ts';
import { SentNumber } from '../../integration/support/json-model.ts';
import type { Json } from '../../integration/support/json-model.ts';
import { oddText } from '../../integration/support/odd-text.ts';
import { everyKind, nullable } from './every-type.ts';
import { oddRecords } from './odd-records.ts';
import { scaled } from '../../support/scale.ts';

const BEFORE = '[{"label":"the one before"},';

/** They are wanted as they are, and as instants. */
const fields = (values: readonly string[]) => ({ values, instants: values });

/** What a codec makes of a record in the middle of a page: from its bytes, or once it is parsed. */
function transcoded(codec: RecordCodec, record: Buffer, wanted: readonly string[] = []) {
  const page = Buffer.concat([Buffer.from(BEFORE), record, Buffer.from(', {"label":"the next"}]')]);
  let hasUnknown = false;
  const onUnknown = () => (hasUnknown = true);
  const told = (read: () => Transcoded | undefined) => {
    hasUnknown = false;
    try {
      const record = read();
      if (!record) return undefined;
      const { image, end, fields, instants } = record;
      const found = wanted.filter((name) => Object.hasOwn(fields, name));
      const values = found.map((name) => [name, canonicalJson(fields[name]!)]);
      return { image: image.toString('hex'), end, values, instants, hasUnknown };
    } catch (error) {
      expect(error).toBeInstanceOf(SyntaxError);
      return 'no JSON';
    }
  };
  return {
    read: told(() => codec.transcode(page, BEFORE.length, fields(wanted), onUnknown)),
    parsed: told(() => {
      const { value, end } = parsedElement(page, BEFORE.length);
      if (!isJsonObject(value)) return undefined;
      const instants = wanted.map((name) => instantOf(value, name));
      return { image: codec.encode(value, onUnknown), end, fields: value, instants };
    }),
  };
}

/** Numbers spelt as one likes, for {@link oddText}. */
function modelOf(value: JsonValue, chance: Chance): Json {
  if (value instanceof JsonNumber) return new SentNumber(value.text);
  if (typeof value === 'number') {
    const plain = Object.is(value, -0) ? '-0' : String(value);
    const more = plain.includes('.') && !plain.includes('e') ? `${plain}0` : plain;
    return new SentNumber(chance.pick([plain, plain, more, value.toExponential()]));
  }
  if (Array.isArray(value)) return value.map((item) => modelOf(item, chance));
  if (!isJsonObject(value)) return value;
  return new Map(Object.entries(value).map(([name, item]) => [name, modelOf(item, chance)]));
}

const PIECES = [
  '{',
  '}',
  '[',
  ']',
  '"',
  ':',
  ',',
  '\\',
  '0',
  '9',
  '.',
  '-',
  'e',
  ' ',
  'null',
  'é',
  '"a":1,',
];

/** The text with something in it, or missing from it, or a byte that is no UTF-8. */
function damaged(text: Buffer, chance: Chance): Buffer {
  const at = chance.below(text.length);
  const end = chance.is(0.5) ? at : at + 1 + chance.below(3);
  const piece = chance.is(0.2) ? Buffer.of(chance.below(256)) : Buffer.from(chance.pick(PIECES));
  return Buffer.concat([text.subarray(0, at), piece, text.subarray(end)]);
}

describe.each([
  ['orders', orderSchema, ['order_number', 'updated_at', 'order_items', 'no such field']],
  ['every kind of field', everyKind, ['label', 'count', 'any', 'at', 'day', 'part', 'parts']],
])('transcode: %s', (_, schema, wanted) => {
  const codec = new RecordCodec(schema);

  it('makes of any text what it makes of the parsed record', () => {
    fc.assert(
      fc.property(oddRecords(schema), fc.integer(), (record, seed) => {
        const chance = new Chance(seed);
        const text = Buffer.from(oddText(modelOf(record, chance), chance));
        const { read, parsed } = transcoded(codec, text, wanted);
        expect(read).toEqual(parsed);
        expect(parsed).toMatchObject({ end: BEFORE.length + text.length });
      }),
      { seed: 1, numRuns: scaled(120, 500) },
    );
  });

  it('makes of a damaged text what parsing makes of it, which is mostly an error', () => {
    const ends = { error: 0, image: 0 };
    const numRuns = scaled(60, 300);
    fc.assert(
      fc.property(oddRecords(schema), fc.integer(), (record, seed) => {
        const chance = new Chance(seed);
        const whole = Buffer.from(oddText(modelOf(record, chance), chance));
        for (let round = 0; round < 10; round++) {
          const text = damaged(whole, chance);
          if (text.at(0) !== whole.at(0)) continue; // no object: left to others
          const { read, parsed } = transcoded(codec, text, wanted);
          expect(read).toEqual(parsed);
          ends[parsed === 'no JSON' ? 'error' : 'image'] += 1;
        }
      }),
      { seed: 2, numRuns },
    );
    expect(ends.error).toBeGreaterThan(numRuns);
    expect(ends.image).toBeGreaterThan(numRuns);
  });
});

describe('transcode', () => {
  const codec = new RecordCodec(everyKind);
  const long = 'x'.repeat(3_000);
  const items = (count: number) => Array.from({ length: count }, (_, nth) => ({ nulls: nth }));

  it.each([
    ['nothing', '{}'],
    ['white space', ' \n{ "label"\t:\r\n"a" , "count" : 1 } '.trim()],
    ['fields in another order', '{"parts":[],"label":"a","flag":true,"count":1}'],
    ['a field that moves to the end', '{"small":1,"ratio":2,"label":"a","flag":false}'],
    ['short and long texts', `{"label":"${long}","any":"${'y'.repeat(48)}"}`],
    ['letters beyond ASCII', `{"label":"Grüner Veltliner 🍇${'é'.repeat(100)}"}`],
    ['escapes', '{"label":"a\\n\\u0062\\"","any":"\\\\"}'],
    ['half a surrogate pair', '{"label":"\\ud83d"}'],
    ['an escaped name', '{"l\\u0061bel":"a"}'],
    ['a name twice', '{"label":"a","count":1,"label":"b"}'],
    ['a name twice, once as something odd', '{"label":7,"count":1,"label":"b"}'],
    ['a name twice, once in disguise', '{"label":"a","\\u006cabel":"b"}'],
    ['a name twice in a part', '{"flag":7,"part":{"~a/b":7,"~a/b":"b"},"small":true}'],
    ['a name without a field', '{"stranger":"a","label":"b"}'],
    ['a name without a field, twice', '{"stranger":null,"label":"b","stranger":1}'],
    ['a name without a field, twice, and null at last', '{"stranger":1,"stranger":null}'],
    [
      'a name without a field, twice in a part',
      '{"part":{"s":1,"s":null},"parts":[{"s":null,"s":2}]}',
    ],
    ['a name without a field that is null', '{"label":"b","stranger":null,"count":3}'],
    ['a name that is half a surrogate pair', '{"label":"b","\\ud83d":1}'],
    ['__proto__ as a name', '{"__proto__":{"label":1},"parts":[{"__proto__":"x"}]}'],
    ['no item', '{"times":[],"grid":[[]],"parts":[{}]}'],
    ['as many items as a byte counts', JSON.stringify({ parts: items(63) })],
    ['more items', JSON.stringify({ parts: items(64), label: 'behind them' })],
    ['many items', JSON.stringify({ parts: items(9_000), times: [], label: 'behind them' })],
    [
      'items that are null or odd',
      '{"grid":[[1,null,"x"],null,7,[2]],"parts":[null,7,{"nulls":1}]}',
    ],
    ['another value than a part', '{"part":[],"parts":{},"grid":7,"label":"a"}'],
    ['the least and the most', '{"count":9007199254740990,"small":-2147483648,"ratio":5e-324}'],
    ['too many digits', '{"count":12345678901234567890,"ratio":0.1234567890123456789}'],
    ['zeros', '{"count":-0,"small":0,"ratio":-0.0,"price":0.00}'],
    ['fractions', '{"ratio":0.1,"price":19.99,"count":1.0,"small":1.5}'],
    [
      '15 and 16 digits',
      '{"ratio":123456789.012345,"price":999999999.999999,"count":1234567890123456}',
    ],
    ['exponents', '{"ratio":1e3,"count":1E2,"small":1e-1}'],
    [
      'times',
      '{"at":"2024-05-01T12:34:56.789Z","day":"2024-02-29","times":["2024-05-01T12:00+02:00","x"]}',
    ],
    ['words', '{"flag":true,"label":null,"any":false,"count":true}'],
  ])('reads %s', (_, text) => {
    const { read, parsed } = transcoded(codec, Buffer.from(text), ['label', 'any', 'count']);
    expect(parsed).toMatchObject({ end: BEFORE.length + Buffer.byteLength(text) });
    expect(read).toEqual(parsed);
  });

  it.each([
    ...[
      '{"label":"a"',
      '{"label":"a",}',
      '{,}',
      '{"label"}',
      '{"label" "count":1}',
      '{"flag" "label":"x"}',
      '{"label":"a","count""small":null}',
      '{"label":"a","count""stranger":1}',
      '{"label":}',
      '{"label":"a"]',
      '{label:"a"}',
    ],
    ...[
      '{"label":"a\nb"}',
      '{"label":"a" "count":1}',
      '{"count":01}',
      '{"count":1.}',
      '{"count":.5}',
    ],
    ...[
      '{"count":+1}',
      '{"count":1x}',
      '{"count":-}',
      '{"flag":truer}',
      '{"flag":nul}',
      '{"label":nulls}',
    ],
    ...[
      '{"times":[,]}',
      '{"times":["x",]}',
      '{"times":["x"}',
      '{"part":{"~a/b":"x"]}',
      '{"stranger":tru}',
    ],
    ...['{"label":"\\x"}', '{"stranger"}', '{"stranger" 1}', '{"\\x":1}'],
  ])('throws a SyntaxError at %s', (text) => {
    expect(transcoded(codec, Buffer.from(text))).toEqual({ read: 'no JSON', parsed: 'no JSON' });
  });

  it.each(['7', '"label"', 'null', '[{"label":"a"}]'])('leaves %s to others', (text) => {
    expect(codec.transcode(Buffer.from(text), 0, fields([]))).toBeUndefined();
  });

  it('reads a page with many texts beyond ASCII, one of which is not UTF-8, each as parsing does', () => {
    const odd = Buffer.of(0x22, 0xff, 0xc3, 0x22);
    const wanted = fields(['label']);
    const records = Array.from({ length: 2_500 }, (_, nth) =>
      Buffer.concat([
        Buffer.from('{"label":'),
        nth === 1_800 ? odd : Buffer.from(`"é${nth}"`),
        Buffer.from('}'),
      ]),
    );
    const page = Buffer.concat(records);
    let at = 0;
    for (const [nth, record] of records.entries()) {
      if (nth === 1_800) {
        expect(() => codec.transcode(page, at, wanted)).toThrow(SyntaxError);
        expect(() => parsedElement(record, 0)).toThrow(SyntaxError);
        at += record.length;
        continue;
      }
      const { image, end } = codec.transcode(page, at, wanted)!;
      expect(end).toBe(at + record.length);
      expect(image).toEqual(codec.encode(parsedElement(record, 0).value as JsonObject));
      at = end;
    }
  });

  it('reads bytes that are no UTF-8 as parsing does', () => {
    for (const wrong of ['ff', 'c3', 'eda0bd', 'c080']) {
      const text = Buffer.concat([
        Buffer.from('{"label":"a'),
        Buffer.from(wrong, 'hex'),
        Buffer.from('"}'),
      ]);
      const { read, parsed } = transcoded(codec, text, ['label']);
      expect(read).toEqual(parsed);
    }
  });

  it('forgets what it has noted in a part that it could not read', () => {
    const odd = '{"parts":[{"nulls":"odd","proto":1,"nulls":5},{"nulls":7}]}';
    const { read, parsed } = transcoded(codec, Buffer.from(odd));
    expect(read).toEqual(parsed);
  });

  it('throws a SyntaxError wherever a page ends too soon', () => {
    const text = '{"label":"Grüner","part":{"~a/b":"x"},"times":["x"],"count":12,"stranger":null}';
    const page = Buffer.from(text);
    for (let end = 1; end < page.length; end++) {
      expect(() => codec.transcode(page.subarray(0, end), 0, fields([]))).toThrow(SyntaxError);
    }
  });

  it('makes room for what is long, in any order', () => {
    for (const length of [16_370, 16_384, 40_000, 200_000]) {
      for (const text of ['x'.repeat(length), 'ü'.repeat(length)]) {
        const record = { flag: true, label: text, count: 1, times: [], any: text };
        for (const one of [record, Object.fromEntries(Object.entries(record).reverse())]) {
          const fresh = new RecordCodec(everyKind); // its buffer is as small as ever
          const { image } = fresh.transcode(Buffer.from(JSON.stringify(one)), 0, fields([]))!;
          expect(image.equals(codec.encode(record))).toBe(true);
        }
      }
    }
  });

  it('parses nothing but what is odd', () => {
    const parse = vi.spyOn(JSON, 'parse');
    onTestFinished(() => parse.mockRestore());
    const calls = (text: string) => {
      parse.mockClear();
      codec.transcode(Buffer.from(text), 0, fields(['count']));
      return parse.mock.calls.map(([text]) => text);
    };
    const plain = {
      ...{
        flag: true,
        small: -1,
        count: 9_007_199_254_740,
        ratio: 0.25,
        label: 'Grüner',
        price: 1.5,
      },
      ...{
        at: '2024-05-01T12:34:56.789Z',
        day: '2024-05-01',
        times: ['2024-05-01T12:34Z'],
        grid: [[1], []],
      },
      ...{
        part: { '~a/b': 'x' },
        parts: [{ nulls: 1 }, { nulls: null }, null],
        any: 'plain',
        stranger: null,
      },
    };
    expect(calls(JSON.stringify(plain))).toEqual([]);
    const turned = Object.fromEntries(Object.entries(plain).reverse());
    expect(calls(JSON.stringify(turned))).toEqual([]);
    const odd =
      '{"ratio":1e3,"label":"a\\n","part":{"~a/b":"x","~a/b":"y"},"any":{"a":[1]},"count":1}';
    // In the order of the schema.
    expect(calls(odd)).toEqual(['1e3', '"a\\n"', '{"a":[1]}', '{"~a/b":"x","~a/b":"y"}']);
  });

  it('gives wanted fields by any name', () => {
    const schemas = [nullable('proto', 'long', '__proto__'), nullable('a', 'long')];
    const named = new RecordCodec({
      ...everyKind,
      fields: [...schemas, ...everyKind.fields.slice(-2)],
    });
    const { fields: found } = named.transcode(
      Buffer.from('{"a":null,"__proto__":7}'),
      0,
      fields(['a', '__proto__', 'b']),
    )!;
    expect(Object.entries(found)).toEqual([
      ['a', null],
      ['__proto__', 7],
    ]);
  });

  it('reads on after an error as before it', () => {
    const again = () => transcoded(codec, Buffer.from('{"count":1,"label":"a"}')).read;
    const before = again();
    expect(transcoded(codec, Buffer.from('{"label":"a","count":1x}')).read).toBe('no JSON');
    expect(again()).toEqual(before);
  });

  it('tells names by their bytes', () => {
    const names = ['a', 'ab', 'é', 'a"b', 'a\\b', 'A'];
    const fields = names.map((name, nth) => nullable(`f${nth}`, 'long', name));
    const named = new RecordCodec({
      ...everyKind,
      fields: [...fields, ...everyKind.fields.slice(-2)],
    });
    for (let first = 0; first < names.length; first++) {
      const turned = [...names.slice(first), ...names.slice(0, first)];
      const record = Object.fromEntries(turned.map((name, nth) => [name, nth]));
      const { read, parsed } = transcoded(named, Buffer.from(JSON.stringify(record)), names);
      expect(read).toEqual(parsed);
      expect(read).toMatchObject({ hasUnknown: false });
    }
  });
});
