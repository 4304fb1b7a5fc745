import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { AvroType } from '../../../src/schemas/avro/avro-schema.ts';
import { canonicalJson, JsonNumber, parseJson } from '../../../src/schemas/json/json.ts';
import type { JsonObject, JsonValue } from '../../../src/schemas/json/json.ts';
import { orderSchema } from '../../../src/description/wine/order.ts';
import { RecordCodec } from '../../../src/schemas/avro/record-codec.ts';
import { everyKind, imageSchema, nullable } from './every-type.ts';
import { inOneForm, oddRecords, turned } from './odd-records.ts';
import { scaled } from '../../support/scale.ts';

describe.each([
  ['orders', orderSchema],
  ['every kind of field', everyKind],
])('%s', (_, schema) => {
  const codec = new RecordCodec(schema);

  it('rebuilds any record', () => {
    fc.assert(
      fc.property(oddRecords(schema), (record) => {
        const before = canonicalJson(record);
        const rebuilt = codec.decode(codec.encode(record));

        expect(canonicalJson(rebuilt)).toBe(canonicalJson(inOneForm(record, schema)));
        expect(canonicalJson(record)).toBe(before); // the input is left as it was
      }),
      { seed: 1, numRuns: scaled(40, 300) },
    );
  });

  it('gives equal bytes to equal records, and only to them', () => {
    fc.assert(
      fc.property(oddRecords(schema), oddRecords(schema), (record, other) => {
        const bytes = codec.encode(record);
        expect(bytes.equals(codec.encode(turned(record) as JsonObject))).toBe(true);
        expect(bytes.equals(codec.encode(parseJson(canonicalJson(record)) as JsonObject))).toBe(
          true,
        );

        const same =
          canonicalJson(inOneForm(record, schema)) === canonicalJson(inOneForm(other, schema));
        expect(codec.encode(other).equals(bytes)).toBe(same);
      }),
      { seed: 2, numRuns: scaled(40, 100) },
    );
  });

  it('writes the very bytes that avsc does', () => {
    fc.assert(
      fc.property(oddRecords(schema), (record) => {
        const bytes = codec.encode(record);
        const value = codec.type.fromBuffer(bytes) as unknown;
        expect(codec.type.toBuffer(value).equals(bytes)).toBe(true);
      }),
      { seed: 4, numRuns: scaled(60, 200) },
    );
  });

  it('keeps the image of its image', () => {
    fc.assert(
      fc.property(oddRecords(schema), (record) => {
        const bytes = codec.encode(record);
        expect(bytes.equals(codec.encode(codec.decode(bytes)))).toBe(true);
      }),
      { seed: 3, numRuns: 100 },
    );
  });
});

describe('RecordCodec', () => {
  const codec = new RecordCodec(everyKind);
  /** The image as a reader of the topic sees it, without the fields that are null. */
  const image = (record: JsonObject): Record<string, unknown> => {
    const value = codec.type.fromBuffer(codec.encode(record)) as Record<string, unknown>;
    return Object.fromEntries(Object.entries(value).filter(([, item]) => item !== null));
  };
  const plain = (fields: object) => ({ ...fields, nulls: [], unmapped: {} });

  it('types what fits', () => {
    expect(
      image({
        flag: false,
        small: -1,
        count: 9_007_199_254_740_990,
        ratio: 0.1,
        label: 'é😀',
        price: 19.99,
        at: '1970-01-01T00:00:00.001Z',
        day: '1970-01-02',
        any: { b: [1.5, null], a: new JsonNumber('1e400') },
        times: ['1970-01-01T00:00:01Z'],
        grid: [[1], []],
        part: { '~a/b': 'x' },
      }),
    ).toEqual(
      plain({
        flag: false,
        small: -1,
        count: 9_007_199_254_740_990,
        ratio: 0.1,
        label: 'é😀',
        price: Buffer.from('030cdc', 'hex'),
        at: 1,
        day: 1,
        any: '{"a":1e400,"b":[1.5,null]}',
        times: [1_000],
        grid: [[1], []],
        part: { label: 'x' },
      }),
    );
  });

  it('tells null from absent', () => {
    expect(image({})).toEqual(plain({}));
    expect(image({ label: null, part: { '~a/b': null }, stranger: null })).toEqual({
      part: { label: null },
      nulls: ['/label', '/part/~0a~1b', '/stranger'],
      unmapped: {},
    });
  });

  it.each<[string, JsonValue]>([
    ['flag', 'true'],
    ['small', 2 ** 31],
    ['small', 1.5],
    ['count', Number.MAX_SAFE_INTEGER],
    ['count', -(2 ** 52) - 1],
    ['count', new JsonNumber('12345678901234567890')],
    ['count', '1'],
    ['count', -0],
    ['ratio', -0],
    ['ratio', new JsonNumber('1e400')],
    ['label', 'half a \ud83d pair'],
    ['label', 7],
    ['price', 0.00001],
    ['price', -0],
    ['price', 1e14],
    ['price', '19.99'],
    ['at', '2024-05-01'],
    ['at', '2024-02-30T00:00:00Z'],
    ['at', 1_714_564_800_000],
    ['day', '1980-02-30'],
    ['day', '1980-02-29T00:00:00Z'],
    ['times', 'never'],
    ['part', []],
    ['part', new JsonNumber('1e400')],
    ['parts', { 0: {} }],
    ['stranger', { z: 1, a: [new JsonNumber('1e400')] }],
  ])('keeps what %s does not hold, %j, as text alone', (name, value) => {
    expect(image({ [name]: value })).toEqual({
      nulls: [],
      unmapped: { [`/${name}`]: canonicalJson(value) },
    });
  });

  it.each([
    '2024-05-01T12:00:00.123456Z',
    '2024-05-01T14:00:00.123+02:00',
    '2024-05-01T12:00:00.123',
  ])('holds the instant of %s, and its text too', (text) => {
    expect(image({ at: text })).toEqual({
      at: Date.parse('2024-05-01T12:00:00.123Z'),
      nulls: [],
      unmapped: { '/at': `"${text}"` },
    });
    expect(codec.decode(codec.encode({ at: text }))).toEqual({ at: text });
  });

  it('gives one instant one image', () => {
    const texts = ['2024-05-01T12:00Z', '2024-05-01T12:00:00.0Z', '2024-05-01T12:00:00+00:00'];
    const images = texts.map((at) => codec.encode({ at }).toString('hex'));

    expect(new Set(images).size).toBe(1);
    expect(codec.decode(codec.encode({ at: texts[0]! }))).toEqual({
      at: '2024-05-01T12:00:00.000Z',
    });
  });

  it('puts an empty value in an array where an element is odd', () => {
    const record: JsonObject = {
      times: [null, 'never', '1970-01-01T00:00:00Z'],
      grid: [[1, null], 'x'],
      parts: [null, 7, { extra: true }],
    };

    expect(image(record)).toEqual({
      times: [0, 0, 0],
      grid: [[1, 0], []],
      parts: Array(3).fill({ proto: null, nulls: null }),
      nulls: ['/grid/0/1', '/parts/0', '/times/0'],
      unmapped: {
        '/grid/1': '"x"',
        '/parts/1': '7',
        '/parts/2/extra': 'true',
        '/times/1': '"never"',
      },
    });
  });

  it('sorts nulls and unmapped by their UTF-16 units', () => {
    const record = { z: null, b: 1, a: 1, label: null, 'a/b': 1, 'a!': 1 };
    const { nulls, unmapped } = image(record) as { nulls: string[]; unmapped: object };

    expect(nulls).toEqual(['/label', '/z']);
    expect(Object.keys(unmapped)).toEqual(['/a', '/a!', '/a~1b', '/b']);
  });

  it('keeps the whole object where a key is no text that Avro can spell', () => {
    const record = { label: 'x', part: { '\ud800': 1, '~a/b': 'y' } };

    expect(image(record)).toEqual({
      label: 'x',
      part: { label: 'y' },
      nulls: [],
      unmapped: { '/part': '{"~a/b":"y","\\ud800":1}' },
    });
    expect(codec.decode(codec.encode(record))).toEqual(record);
    expect(codec.decode(codec.encode({ '\udfff': null }))).toEqual({ '\udfff': null });
  });

  it('touches no prototype', () => {
    const record = parseJson(
      '{"__proto__":{"x":1},"constructor":null,"parts":[{"__proto__":"p"},{"__proto__":7}]}',
    ) as JsonObject;
    const rebuilt = codec.decode(codec.encode(record));

    expect(canonicalJson(rebuilt)).toBe(canonicalJson(record));
    expect(Object.getPrototypeOf(rebuilt)).toBe(Object.prototype);
    expect('x' in rebuilt).toBe(false);
  });

  it('finds no value where a record inherits one', () => {
    const inherited = {
      toString: 'string',
      constructor: 'string',
      hasOwnProperty: 'long',
    } as const;
    const part = imageSchema(inherited).fields.slice(0, -2);
    const types = imageSchema({
      ...inherited,
      part: { type: 'record', name: 'Part', fields: part },
    });
    const schema = {
      ...types,
      fields: [nullable('proto', 'string', '__proto__'), ...types.fields],
    };
    const named = new RecordCodec(schema);
    const nothing = { toString: null, constructor: null, hasOwnProperty: null };
    const rebuilt = (text: string) =>
      canonicalJson(named.decode(named.encode(parseJson(text) as JsonObject)));

    expect(named.type.fromBuffer(named.encode({ part: {} }))).toEqual({
      proto: null,
      ...nothing,
      part: nothing,
      nulls: [],
      unmapped: {},
    });
    for (const text of [
      '{"__proto__":"p","constructor":"c","hasOwnProperty":1,"toString":"a"}',
      '{"__proto__":null,"constructor":null,"part":{"hasOwnProperty":2,"toString":null}}',
      '{"__proto__":{"toString":1},"constructor":{},"part":{"__proto__":1,"valueOf":2}}',
      '{"part":{"constructor":"c"},"valueOf":null}',
    ]) {
      expect(rebuilt(text)).toBe(text);
    }
  });

  it('counts a field as there only if it has a value: what is strange is found beside it', () => {
    const record: Record<string, unknown> = { label: undefined, stranger: 1 };
    expect(image(record as JsonObject)).toEqual({ nulls: [], unmapped: { '/stranger': '1' } });
  });

  it('leaves nothing of a record that it could not encode', () => {
    const whole = codec.encode({ label: 'a' });
    const broken: JsonObject = {
      flag: true,
      get label(): string {
        throw new Error('broken');
      },
    };
    expect(() => codec.encode(broken)).toThrow('broken');
    expect(codec.encode({ label: 'a' })).toEqual(whole);
  });

  it('holds odd values of any depth', () => {
    const deep = `{"deep":${'['.repeat(50_000)}12345678901234567890${']'.repeat(50_000)}}`;
    const rebuilt = codec.decode(codec.encode(parseJson(deep) as JsonObject));

    expect(canonicalJson(rebuilt) === deep).toBe(true);
  });

  it('writes records of any size', () => {
    const record = { label: 'x'.repeat(1_000_000), stranger: 'y'.repeat(100_000) };

    expect(codec.decode(codec.encode(record)).label).toHaveLength(1_000_000);
    expect(codec.decode(codec.encode({ label: 'short' }))).toEqual({ label: 'short' });
  });

  it('gives each encoding bytes of its own', () => {
    const first = codec.encode({ label: 'a' });
    codec.encode({ label: 'b' });

    expect(codec.decode(first)).toEqual({ label: 'a' });
  });

  it('makes the way to a part that a reader with an older schema lacks', () => {
    const value = { nulls: ['/new/a'], unmapped: { '/new/b/c': '1e400' } };

    expect(codec.toJson(value)).toEqual({ new: { a: null, b: { c: new JsonNumber('1e400') } } });
  });

  it('refuses bytes that are cut off or go on', () => {
    const bytes = codec.encode({ label: 'abc' });

    expect(() => codec.decode(bytes.subarray(0, -1))).toThrow();
    expect(() => codec.decode(Buffer.concat([bytes, Buffer.of(0)]))).toThrow();
  });

  it.each<[string, AvroType]>([
    ['a field that is not nullable', 'string'],
    ['null last', ['string', 'null']],
    ['more than one type', ['null', 'string', 'long']],
    ['a type without a kind', ['null', 'float']],
    ['a named type', ['null', 'cellarstream.Other']],
    ['an array of nullables', ['null', { type: 'array', items: ['null', 'string'] }]],
    ['a decimal too long', ['null', { type: 'bytes', logicalType: 'decimal', precision: 30 }]],
  ])('refuses a schema with %s', (_, type) => {
    const schema = { ...everyKind, fields: [{ name: 'a', type }, ...everyKind.fields.slice(-2)] };

    expect(() => new RecordCodec(schema)).toThrow(TypeError);
  });

  it('refuses a field that avsc can not set', () => {
    expect(() => new RecordCodec(imageSchema({ ['__proto__']: 'string' }))).toThrow(TypeError);
    const twice = [nullable('a', 'string', 'x'), nullable('b', 'string', 'x')];
    const fields = [...twice, ...imageSchema({}).fields];
    expect(() => new RecordCodec({ ...imageSchema({}), fields })).toThrow(
      'two fields of the Avro record Value have the same name in JSON',
    );
  });

  it('refuses a schema that does not end with nulls and unmapped', () => {
    const schema = { ...everyKind, fields: everyKind.fields.slice(0, -1) };

    expect(() => new RecordCodec(schema)).toThrow(TypeError);
  });
});
