import fc from 'fast-check';
import type { AvroType, FieldSchema, RecordSchema } from '../../../src/schemas/avro/avro-schema.ts';
import { isJsonObject, JsonNumber } from '../../../src/schemas/json/json.ts';
import type { JsonObject, JsonValue } from '../../../src/schemas/json/json.ts';

/**
 * Records of a schema of images as a careless API might send them: in any field, at any depth, what
 * belongs there, null, nothing, or anything else; and fields that no schema has.
 */
export function oddRecords(schema: RecordSchema): fc.Arbitrary<JsonObject> {
  return recordOf(schema.fields.slice(0, -2));
}

function recordOf(fields: readonly FieldSchema[]): fc.Arbitrary<JsonObject> {
  const members = fields.map((field) =>
    fc.option(
      fc.tuple(fc.constant(field.json ?? field.name), valueOf((field.type as AvroType[])[1]!)),
      { freq: 3 },
    ),
  );
  const strangers = fc.array(fc.tuple(strangeKey(), ODD_VALUE), { maxLength: 1 });
  return fc.tuple(fc.tuple(...members), strangers, fc.boolean()).map(([known, unknown, turn]) => {
    const entries = [...known.filter((entry) => entry !== null), ...unknown];
    return Object.fromEntries<JsonValue>(turn ? entries.reverse() : entries);
  });
}

function valueOf(type: AvroType): fc.Arbitrary<JsonValue> {
  return fc.oneof(
    { weight: 12, arbitrary: fitting(type) },
    { weight: 2, arbitrary: fc.constant(null) },
    { weight: 2, arbitrary: ODD_VALUE },
  );
}

function fitting(type: AvroType): fc.Arbitrary<JsonValue> {
  if (typeof type === 'object' && 'fields' in type) return recordOf(type.fields);
  if (typeof type === 'object' && 'items' in type) {
    return fc.array(valueOf(type.items), { maxLength: 3 });
  }
  const name = typeof type === 'object' && 'logicalType' in type ? type.logicalType : type;
  switch (name) {
    case 'timestamp-millis':
      return fc.oneof(times(), oddTime());
    case 'date':
      return times().map((text) => text.slice(0, 10));
    case 'decimal':
      return fc.oneof(
        fc.integer({ min: -1e7, max: 1e7 }).map((cents) => cents / 100),
        fc.double({ noNaN: true, noDefaultInfinity: true }),
      );
    case 'long':
      return fc.maxSafeInteger();
    case 'double':
      return fc.double({ noNaN: true, noDefaultInfinity: true });
    case 'boolean':
      return fc.boolean();
    default:
      return fc.string({ unit: 'binary', maxLength: 12 });
  }
}

const times = () =>
  fc
    .date({
      min: new Date('0000-01-01T00:00:00.000Z'),
      max: new Date('9999-12-31T23:59:59.999Z'),
      noInvalidDate: true,
    })
    .map((date) => date.toISOString());

const oddTime = () =>
  fc.constantFrom(
    '2024-05-01T12:00:00Z',
    '2024-05-01T12:00Z',
    '2024-05-01T12:00:00.5+00:00',
    '2024-05-01T12:00:00.123456Z',
    '2024-05-01T12:00:00+02:00',
    '2024-05-01T12:00:00',
    '2024-05-01 12:00:00',
    '2024-05-01',
    '2024-02-30T00:00:00Z',
    '1980-02-30',
    'tomorrow',
    '',
  );

const oddNumber = (): fc.Arbitrary<JsonValue> =>
  fc.constantFrom<JsonValue>(
    -0,
    0,
    0.00001,
    1.5,
    2 ** 31,
    2 ** 53,
    -(2 ** 53),
    Number.MAX_SAFE_INTEGER,
    1e21,
    1e300,
    5e-324,
    new JsonNumber('12345678901234567890'),
    new JsonNumber('1e400'),
    new JsonNumber('0.12345678901234567890'),
  );

const KEYS = ['', '/', '~', 'a/b', '~1', '0', 'nulls', 'unmapped', 'constructor', 'toString'];
const strangeKey = () =>
  fc.oneof(fc.constantFrom(...KEYS, '__proto__', '\ud800', 'a\udfffb'), fc.string());

const loneSurrogates = () =>
  fc
    .array(fc.integer({ min: 0xd7fe, max: 0xe001 }), { minLength: 1, maxLength: 4 })
    .map((codes) => String.fromCharCode(...codes));

/** Any JSON, with a taste for the awkward. */
const ODD_VALUE: fc.Arbitrary<JsonValue> = fc.letrec<{ value: JsonValue }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    oddNumber(),
    fc.constantFrom<JsonValue>(null, true, false, 'x', [], {}),
    loneSurrogates(),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.array(fc.tuple(strangeKey(), tie('value')), { maxLength: 3 }).map(Object.fromEntries),
  ),
})).value;

/** The same record with the keys of every object the other way round. */
export function turned(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(turned);
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, item]) => [key, turned(item)]),
  );
}

/**
 * The record with each of its timestamps, where it says no more than an instant in UTC of at most
 * ms, in the one form in which it is rebuilt. Nothing else is touched.
 */
export function inOneForm(record: JsonObject, schema: RecordSchema): JsonObject {
  return formOf(record, { ...schema, fields: schema.fields.slice(0, -2) }) as JsonObject;
}

const PLAIN_UTC = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|\+00:00)$/;

function formOf(value: JsonValue, type: AvroType): JsonValue {
  if (typeof type === 'object' && 'items' in type && Array.isArray(value)) {
    return value.map((item) => formOf(item, type.items));
  }
  if (typeof type === 'object' && 'fields' in type && isJsonObject(value)) {
    // An object with a key that Avro can't spell is kept as text, times and all.
    if (!Object.keys(value).every((key) => key.isWellFormed())) return value;
    const types = new Map(type.fields.map((field) => [field.json ?? field.name, field.type]));
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) => {
        const known = types.get(key) as AvroType[] | undefined;
        return [key, known ? formOf(item, known[1]!) : item];
      }),
    );
  }
  const isTime = typeof type === 'object' && 'logicalType' in type && type.type === 'long';
  if (!isTime || typeof value !== 'string' || !PLAIN_UTC.test(value)) return value;
  const date = new Date(value);
  const exists =
    !Number.isNaN(date.getTime()) && date.toISOString().slice(0, 10) === value.slice(0, 10);
  return exists ? date.toISOString() : value;
}
