import { describe, expect, it } from 'vitest';
import type { FieldSchema, RecordSchema } from '../../../src/schemas/avro/avro-schema.ts';
import {
  createEnvelopeCodec,
  envelopeSchema,
  valueSchemaOf,
} from '../../../src/schemas/events/envelope.ts';
import { growSchema, MAX_FIELDS } from '../../../src/schemas/avro/infer.ts';
import { JsonNumber, parseJson } from '../../../src/schemas/json/json.ts';
import type { JsonObject, JsonValue } from '../../../src/schemas/json/json.ts';
import { orderSchema } from '../../../src/description/wine/order.ts';
import { RecordCodec } from '../../../src/schemas/avro/record-codec.ts';
import { MAX_PART_FIELDS } from '../../../src/schemas/avro/shape.ts';

const options = { resource: 'wine-clubs', keyFields: ['id'] };

const grown = (records: readonly JsonObject[], schema?: RecordSchema): RecordSchema =>
  growSchema(schema, records, options);

/** The schema of records that differ in one field. */
const grownBy = (...values: JsonValue[]): RecordSchema => grown(values.map((a) => ({ a })));

const INSTANT = { type: 'long', logicalType: 'timestamp-millis', exact: true };
const DATE = { type: 'int', logicalType: 'date' };

/** The fields of an inferred record: name, type in short, name in JSON where it differs. */
function fieldsIn({ fields }: RecordSchema): Record<string, unknown> {
  const own = fields.filter(({ default: standard }) => standard === null);
  return Object.fromEntries(own.map((field) => [field.json ?? field.name, typeIn(field)]));
}

function typeIn({ type, contentMediaType }: FieldSchema): unknown {
  const short = (of: unknown): unknown => {
    if (typeof of === 'object' && 'fields' in of!) return fieldsIn(of as RecordSchema);
    return typeof of === 'object' && 'items' in of! ? [short(of.items)] : of;
  };
  expect((type as unknown[])[0]).toBe('null');
  return contentMediaType ?? short((type as unknown[])[1]);
}

const nameOf = (schema: RecordSchema, key: string) =>
  schema.fields.find(({ name, json }) => (json ?? name) === key)?.name;

const unmappedOf = (schema: RecordSchema, record: JsonObject): unknown => {
  const codec = new RecordCodec(schema);
  return (codec.type.fromBuffer(codec.encode(record)) as { unmapped: object }).unmapped;
};

describe('the type of a field', () => {
  it.each<[string, unknown, JsonValue[]]>([
    ['numbers, whole or not', 'double', [1, 2, 3]],
    ['booleans', 'boolean', [true, false, null]],
    ['texts', 'string', ['a', '', '2024']],
    ['instants', INSTANT, ['2024-05-01T12:00:00.000Z', null, '0000-01-01T00:00:00.001Z']],
    ['dates', DATE, ['2024-02-29', '1900-01-01']],
    ['instants, one of another form', 'string', ['2024-05-01T12:00:00.000Z', '2024-05-01T12:00Z']],
    ['times with a zone', 'string', ['2024-05-01T12:00:00.000+02:00']],
    ['times without seconds', 'string', ['2024-05-01T12:00Z']],
    ['instants, one that does not exist', 'string', ['2024-02-30T00:00:00.000Z']],
    ['instants and an empty text', 'string', ['2024-05-01T12:00:00.000Z', '']],
    [
      'instants and a number',
      'string',
      ['2024-05-01T12:00:00.000Z', '2024-05-01T12:00:00.000Z', 1],
    ],
    ['dates and instants', 'string', ['2024-05-01', '2024-05-01T12:00:00.000Z']],
    ['dates, one that does not exist', 'string', ['2024-02-29', '2023-02-29']],
    ['lists', ['double'], [[1], [], [2, null]]],
    ['lists of instants', [INSTANT], [['2024-05-01T12:00:00.000Z'], []]],
    ['lists of lists', [['string']], [[['a'], []], []]],
    ['objects', { b: 'double', c: 'string' }, [{ b: 1 }, { c: 'x' }, {}]],
    [
      'lists of objects',
      [{ b: ['boolean'], c: { d: DATE } }],
      [[{ b: [true] }, { c: { d: '2024-05-01' } }]],
    ],
  ])('%s', (_, type, values) => {
    expect(fieldsIn(grownBy(...values))).toEqual({ a: type });
  });

  it.each<[string, JsonValue[]]>([
    ['null', [null]],
    ['empty lists', [[], [[]], [null]]],
    ['empty objects', [{}, { b: null }, { b: { c: [] } }]],
    ['numbers beyond a double', [new JsonNumber('12345678901234567890'), -0]],
    ['half a surrogate pair', ['\ud800']],
    ['an object whose keys can not be spelled', [{ '\ud800': 1 }]],
  ])('is not known from %s', (_, values) => {
    expect(fieldsIn(grownBy(...values))).toEqual({});
  });

  it('comes when a value says it', () => {
    const before = grownBy(null, [], {}, new JsonNumber('1e400'));
    const after = grown([{ a: 'b' }], before);

    expect(fieldsIn(after)).toEqual({ a: 'string' });
    expect(unmappedOf(before, { a: 'b' })).toEqual({ '/a': '"b"' });
    expect(unmappedOf(after, { a: 'b' })).toEqual({});
  });

  it('is that of most values; the others are unmapped', () => {
    expect(fieldsIn(grownBy('a', 1, 2, {}, [], null, true))).toEqual({ a: 'double' });
    expect(unmappedOf(grownBy('a', 1, 2), { a: 'a' })).toEqual({ '/a': '"a"' });
    expect(fieldsIn(grownBy([1, 'a', 'b'], ['c']))).toEqual({ a: ['string'] });
  });

  it('does not hang on the order of equally many', () => {
    const values: JsonValue[] = [true, 1, 'a', [1], { b: 1 }];

    expect(fieldsIn(grownBy(...values))).toEqual({ a: { b: 'double' } });
    expect(grownBy(...values.reverse())).toEqual(grownBy(...values));
  });

  it('never changes', () => {
    const schema = grown([{ a: 1, b: { c: 'x' }, d: [1], e: '2024-05-01T12:00:00.000Z' }]);
    const records = [
      { a: 'x', b: 7, d: {}, e: 'never' },
      { b: { c: {} }, d: [['y'], { z: 1 }] },
    ];

    expect(grown(records, schema)).toBe(schema);
    const part = grown([{ list: [{ a: 1 }], part: { a: 1 } }]);
    const turned = [{ list: { b: 1 } }, { list: [[{ b: 1 }]] }, { part: [{ b: 1 }] }];
    expect(grown(turned, part)).toBe(part);
    const codec = new RecordCodec(schema);
    for (const record of records) {
      expect(codec.decode(codec.encode(record))).toEqual(record);
    }
  });

  it.each(['2024-05-01T12:00:00Z', '2024-05-01T12:00:00.5Z', '2024-05-01T12:00:00.000+00:00'])(
    'an instant that later comes as %s keeps its text',
    (a) => {
      const codec = new RecordCodec(grownBy('2024-05-01T12:00:00.000Z'));

      expect(codec.decode(codec.encode({ a }))).toEqual({ a });
      expect(codec.type.fromBuffer(codec.encode({ a }))).toMatchObject({
        a: Date.parse(a),
        unmapped: { '/a': `"${a}"` },
      });
    },
  );
});

describe('a field of the key', () => {
  const keyOf = (...values: JsonValue[]) => fieldsIn(grown(values.map((id) => ({ id }))));

  it('is a long where all numbers are whole, else a double', () => {
    expect(keyOf(1, 2 ** 52, -1)).toEqual({ id: 'long' });
    expect(keyOf(1, 'x', 2, null)).toEqual({ id: 'long' });
    expect(keyOf(1, 1.5)).toEqual({ id: 'double' });
    expect(keyOf(1, 2 ** 53)).toEqual({ id: 'double' });
  });

  it('is text where it is text, whatever it looks like', () => {
    expect(keyOf('2024-05-01', '2024-05-02')).toEqual({ id: 'string' });
  });

  it('is one in the record itself only', () => {
    expect(fieldsIn(grown([{ part: { id: 1 } }]))).toEqual({ part: { id: 'double' } });
    const schema = grown([{ part: { id: 1 } }], grown([{ part: { a: 1 } }]));
    expect(fieldsIn(schema)).toEqual({ part: { a: 'double', id: 'double' } });
  });
});

describe('names', () => {
  it('keep the original where it is none in Avro', () => {
    const record = parseJson(
      '{"first name":1,"2nd":1,"":1,"é":1,"__proto__":1,"nulls":1,"unmapped":1,"toString":1,"ok":1,"part":{"nulls":1}}',
    ) as JsonObject;
    const { fields } = grown([record]);
    const names = Object.fromEntries(fields.map(({ json, name }) => [name, json]));

    expect(names).toMatchObject({ first_name: 'first name', _2nd: '2nd', _: '', e: 'é' });
    expect('ok' in names && names.ok === undefined).toBe(true);
    expect(
      fields
        .map(({ json }) => json)
        .filter(Boolean)
        .sort(),
    ).toEqual(['2nd', '__proto__', 'first name', 'nulls', 'toString', 'unmapped', 'é'].sort());
    expect(fieldsIn({ ...orderSchema, fields })).toMatchObject({ part: { nulls: 'double' } });
    expect(unmappedOf(grown([record]), record)).toEqual({});
  });

  it('go to what is a name already, and are told apart by the text alone', () => {
    const together = grown([{ 'a b': 1, 'a.b': 1 }, { a_b: 1 }]);

    expect(nameOf(together, 'a_b')).toBe('a_b');
    expect(nameOf(together, 'a b')).toMatch(/^a_b_[0-9a-f]{8}$/);
    const later = grown([{ 'a b': 1, a_b: 1 }], grown([{ 'a.b': 1 }]));
    expect(nameOf(later, 'a.b')).toBe('a_b'); // it was there first
    expect(nameOf(later, 'a b')).toBe(nameOf(together, 'a b'));
    expect(nameOf(later, 'a_b')).toMatch(/^a_b_[0-9a-f]{8}$/);
    const oftener = grown([{ 'a.b': 1 }, { 'a.b': 1 }, { 'a b': 1 }]);
    expect(nameOf(oftener, 'a b')).toBe('a_b');
  });

  it('stand in the order of the keys', () => {
    const record = { 'b c': 1, a: 1, z: { y: 1, 'x y': 1 }, B: 1 };
    const { fields } = grown([record, { z: {}, a: 1 }]);
    const named = [...JSON.stringify(fields).matchAll(/"json":"(.*?)"/g)].map(([, key]) => key);

    expect(fields.slice(0, -2).map(({ name }) => name)).toEqual(['B', 'a', 'b_c', 'z']);
    expect(named).toEqual(['b c', 'x y']);
  });

  it('of records are of the way to them, and no two alike, whatever the case', () => {
    const part = { c: 1 };
    const page = { a_b: part, a: [{ b: part }], geo: part, GEO: part, value: part };
    const { fields } = grown([page], grown([{ A: { B: part } }]));
    const found = [...JSON.stringify(fields).matchAll(/"record","name":"(\w+)"/g)];
    const names = found.map(([, name]) => name!);

    expect(names).toHaveLength(8);
    expect(new Set(names.map((name) => name.toLowerCase())).size).toBe(8);
    expect(names.slice(0, 2)).toEqual(['A', 'AB']);
    expect(names).not.toContain('Value');
  });
});

describe('limits', () => {
  const many = (count: number, value: JsonValue = 1): JsonObject =>
    Object.fromEntries(Array.from({ length: count }, (_, n) => [`k${n}`, value]));
  const count = (schema: RecordSchema) => JSON.stringify(schema).split('"default":null').length - 1;

  it('a map in disguise is JSON text', () => {
    const records = Array.from({ length: MAX_PART_FIELDS + 1 }, (_, n) => ({
      stock: { [`warehouse-${n}`]: n },
      rows: [{ [`column-${n}`]: n }],
    }));
    const schema = grown(records);

    expect(fieldsIn(schema)).toEqual({ stock: 'application/json', rows: 'application/json' });
    expect(grown([{ stock: { another: [] } }, { stock: 'none' }], schema)).toBe(schema);
    expect(unmappedOf(schema, { stock: { b: 1, a: new JsonNumber('1e400') } })).toEqual({});
    expect(fieldsIn(grown(records.slice(1))).stock).toHaveProperty('warehouse-7', 'double');
  });

  it('counts what is within the parts of a part', () => {
    const table = many(15, many(9)); // 15 x (1 + 9) fields

    expect(fieldsIn(grown([{ table }])).table).toMatchObject({ k14: { k8: 'double' } });
    expect(fieldsIn(grown([{ table: { ...table, more: 1 } }])).table).toBe('application/json');
  });

  it('a part gives up the one part that makes it too large', () => {
    const part = { small: { b: 1 }, table: many(15, many(9)) };

    expect(fieldsIn(grown([{ part }]))).toEqual({
      part: { small: { b: 'double' }, table: 'application/json' },
    });
    expect(fieldsIn(grown([{ part: many(30, many(9)) }]))).toEqual({ part: 'application/json' });
  });

  it('a part grows to its limit, and no further', () => {
    let schema = grown([{ a: { first: 1 } }]);
    for (let n = 0; n < 200; n += 25) {
      const keys = Array.from({ length: 25 }, (_, at) => [`k${n + at}`, 1]);
      schema = grown([{ a: Object.fromEntries(keys) as JsonObject }], schema);
    }
    expect(count(schema)).toBe(MAX_PART_FIELDS + 1);
    expect(fieldsIn(grown([{ b: 1 }], schema))).toHaveProperty('b', 'double');
  });

  it('so does the schema, with the key and the most frequent first', () => {
    const records: JsonObject[] = [many(600), { zebra: 1 }, { zebra: 2 }, { zoo: 1 }];
    const schema = growSchema(undefined, records, { ...options, keyFields: ['zoo'] });

    expect(count(schema)).toBe(MAX_FIELDS);
    expect(fieldsIn(schema)).toMatchObject({ zoo: 'long', zebra: 'double' });
    expect(grown([{ more: 1 }, { more: { b: 1 } }], schema)).toBe(schema);
    expect(unmappedOf(schema, { more: 1 })).toEqual({ '/more': '1' });
  });

  it('several parts share what room there is', () => {
    const schema = grown([{ ...many(MAX_FIELDS - 10), a: { first: 1 }, b: { first: 1 } }]);
    const full = grown([{ a: many(9), b: many(9) }], schema);

    expect(count(full)).toBe(MAX_FIELDS);
    expect(grown([{ a: many(9), b: many(9), c: 1 }], full)).toBe(full);
  });

  it('what there is no room for in parts is JSON text', () => {
    const schema = grown([many(MAX_FIELDS - 2)]);

    expect(fieldsIn(grown([{ a: { b: 1 } }], schema)).a).toEqual({ b: 'double' });
    expect(fieldsIn(grown([{ a: { b: 1, c: 1 } }], schema)).a).toBe('application/json');
  });

  it('what lies too deep is JSON text, however deep it is', () => {
    const nested = (depth: number): JsonValue => (depth === 0 ? 1 : { a: nested(depth - 1) });
    const typed = (depth: number): unknown => (depth === 0 ? 'double' : { a: typed(depth - 1) });

    expect(fieldsIn(grownBy(nested(9)))).toEqual({ a: typed(9) });
    const text = { a: { a: { a: { a: { a: { a: { a: { a: { a: 'application/json' } } } } } } } } };
    expect(fieldsIn(grownBy(nested(10)))).toEqual({ a: text });
    const deep = parseJson(`${'['.repeat(50_000)}1${']'.repeat(50_000)}`);
    expect(fieldsIn(grownBy(deep))).toEqual({ a: 'application/json' });
  });

  it('hold for what is added in the depth', () => {
    const nested = (depth: number, within: JsonValue): JsonValue =>
      depth === 0 ? within : { a: nested(depth - 1, within) };
    const schema = grownBy(nested(8, { x: 1 }));
    const added = nested(8, { list: [1], lists: [[1]], part: { a: 1 } });

    expect(
      JSON.stringify(fieldsIn(grown([{ a: nested(7, { list: [1], lists: [[1]] }) }], schema))),
    ).toContain('"list":["double"],"lists":"application/json"');
    expect(JSON.stringify(fieldsIn(grown([{ a: added }], schema)))).toContain(
      '"list":"application/json","lists":"application/json","part":"application/json"',
    );
    const inLists = (part: JsonObject): JsonObject => ({ a: [[[[[[[[part]]]]]]]] }); // the 10th
    const schemaOfLists = grown([inLists({ y: [1] })], grown([inLists({ x: 1 })]));
    expect(JSON.stringify(fieldsIn(schemaOfLists))).toContain(
      '{"x":"double","y":"application/json"}',
    );
  });

  it('keys of more than 200 characters are no fields', () => {
    const record = { ['x'.repeat(200)]: 1, ['y'.repeat(201)]: 1 };

    expect(Object.keys(fieldsIn(grown([record])))).toEqual(['x'.repeat(200)]);
  });
});

describe('growSchema', () => {
  it('starts with what every image ends with', () => {
    const { fields, ...head } = growSchema(undefined, [], options);

    expect(head).toMatchObject({ name: 'Value', namespace: 'cellarstream.wine_clubs' });
    expect(fields).toEqual(orderSchema.fields.slice(-2));
  });

  it('leaves what it is given as it was', () => {
    const before = structuredClone(orderSchema);
    const record = { order_number: 1, gift: { note: 'x' }, tender_info: [{ tip: 1 }] };
    const recordBefore = structuredClone(record);
    grown([record], orderSchema);

    expect(orderSchema).toEqual(before);
    expect(record).toEqual(recordBefore);
  });

  it('adds to orders what is not described, in its place', () => {
    const schema = growSchema(
      orderSchema,
      [
        { order_number: 'x', total_price: 'much', gift: true, order_items: [{ vintage: 2019 }] },
        {
          fulfillment_info: [{ tracking: { eta: '2024-05-01' } }],
          order_edit: [{ summary: { a: 1 } }],
        },
      ],
      { resource: 'orders', keyFields: ['order_number'] },
    );
    const before = fieldsIn(orderSchema) as Record<string, [object]>;
    const after = fieldsIn(schema) as Record<string, [object]>;
    const [fulfillment] = before.fulfillment_info as [{ tracking: object }];

    expect(after).toEqual({
      ...before,
      gift: 'boolean',
      order_items: [{ ...before.order_items![0], vintage: 'double' }],
      fulfillment_info: [{ ...fulfillment, tracking: { ...fulfillment.tracking, eta: DATE } }],
    });
    expect(schema.fields.slice(-3).map(({ name }) => name)).toEqual(['gift', 'nulls', 'unmapped']);
  });

  it('goes on from what a registry gives back', () => {
    const schema = grown([{ id: 1, 'a b': [{ c: '2024-05-01T12:00:00.000Z' }] }]);
    const text = JSON.stringify(envelopeSchema(schema, 'wine-clubs'));
    const again = valueSchemaOf(JSON.parse(text) as RecordSchema);
    const record = { id: 2, 'a b': [{ c: '2024-05-02T12:00:00.000Z', d: 1 }] };

    expect(grown([{ id: 3 }], again)).toBe(again);
    expect(grown([record], again)).toEqual(grown([record], schema));
  });

  it('goes on from a schema without its namespace, as Java writes it', () => {
    const { namespace, ...bare } = grown([{ id: 1 }]);
    const schema = grown([{ part: { a: 1 } }], bare);
    const codec = createEnvelopeCodec(schema, 'wine-clubs');

    expect(namespace).toBe('cellarstream.wine_clubs');
    expect(fieldsIn(schema)).toEqual({ id: 'long', part: { a: 'double' } });
    expect(codec.values.decode(codec.values.encode({ part: { a: 1 } }))).toEqual({
      part: { a: 1 },
    });
  });
});
