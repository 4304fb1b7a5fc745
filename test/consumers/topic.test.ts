import avro from 'avsc';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readAs, readEventsAs } from '../../src/consumers/topic.ts';
import type { AvroType, FieldSchema, RecordSchema } from '../../src/schemas/avro/avro-schema.ts';
import { createEnvelopeCodec } from '../../src/schemas/events/envelope.ts';
import { orderSchema } from '../../src/description/wine/order.ts';
import { oddRecords } from '../schemas/avro/odd-records.ts';
import { orderSource } from '../support/event-source.ts';

const DECIMAL = { type: 'bytes', logicalType: 'decimal', precision: 18, scale: 4 } as const;
const DATE = { type: 'int', logicalType: 'date' } as const;
const TIME = { type: 'long', logicalType: 'timestamp-millis' } as const;

const field = (name: string, type: AvroType): FieldSchema => ({ name, type });
const maybe = (name: string, type: AvroType): FieldSchema => ({
  name,
  type: ['null', type],
  default: null,
});
const record = (name: string, ...fields: FieldSchema[]): RecordSchema => ({
  type: 'record',
  name,
  fields,
});

/** A value in bytes as any other program would write it: decimals and dates by their bytes and days. */
function written(schema: RecordSchema, value: object): Buffer {
  return avro.Type.forSchema(schema as avro.Schema).toBuffer(value);
}

describe('readAs', () => {
  it('reads decimals as numbers, dates as texts, times as ms', () => {
    const schema = record(
      'Value',
      field('price', DECIMAL),
      maybe('tip', DECIMAL),
      field('born', DATE),
      maybe('died', DATE),
      field('at', TIME),
      maybe('paid', 'boolean'),
    );
    const value = {
      price: Buffer.of(0xff, 0x38), // -200
      tip: Buffer.of(0x01, 0xe2, 0x40), // 123456
      born: -1,
      died: 19_844,
      at: 1_714_564_800_000,
      paid: true,
    };
    expect(readAs(schema)(schema)(written(schema, value))).toEqual({
      price: -0.02,
      tip: 12.3456,
      born: '1969-12-31',
      died: '2024-05-01',
      at: 1_714_564_800_000,
      paid: true,
    });
  });

  it('fills what an older writer did not have with its default', () => {
    const older = record('Value', maybe('a', 'string'));
    const newer = record(
      'Value',
      maybe('b', DECIMAL),
      maybe('a', 'string'),
      { name: 'list', type: { type: 'array', items: 'string' }, default: [] },
      { name: 'map', type: { type: 'map', values: 'string' }, default: {} },
      maybe('part', record('Part', maybe('born', DATE))),
    );
    const read = readAs<{ list: string[] }>(newer)(older);
    const first = read(written(older, { a: 'x' }));
    expect(first).toEqual({ a: 'x', b: null, list: [], map: {}, part: null });
    first.list.push('mine'); // defaults are not shared
    expect(read(written(older, { a: 'x' })).list).toEqual([]);
  });

  it('leaves out what only a newer writer has, wherever it is', () => {
    const reader = record('Value', maybe('a', 'string'), maybe('z', 'long'));
    const writer = record(
      'Value',
      maybe('price', DECIMAL),
      maybe('a', 'string'),
      maybe('parts', { type: 'array', items: record('Part', maybe('born', DATE)) }),
      maybe('z', 'long'),
      maybe('last', 'string'),
    );
    const value = {
      price: Buffer.of(1),
      a: 'x',
      parts: [{ born: 1 }, { born: null }],
      z: 7,
      last: 'gone',
    };
    expect(readAs(reader)(writer)(written(writer, value))).toEqual({ a: 'x', z: 7 });
  });

  it('goes by the names of fields, in whichever order they were written', () => {
    const reader = record('Value', maybe('a', 'string'), maybe('b', DECIMAL), maybe('c', DATE));
    const writer = { ...reader, fields: [...reader.fields].reverse() };
    const value = { a: 'x', b: Buffer.of(10), c: 0 };
    expect(readAs(reader)(writer)(written(writer, value))).toEqual({
      a: 'x',
      b: 0.001,
      c: '1970-01-01',
    });
  });

  it('resolves records in records, arrays of them, and types named before', () => {
    const born = maybe('born', DATE);
    const part = (...fields: FieldSchema[]) => record('Part', maybe('n', 'long'), ...fields);
    const shape = (inner: RecordSchema) =>
      record(
        'Value',
        maybe('part', inner),
        maybe('parts', { type: 'array', items: 'Part' }),
        maybe('dates', { type: 'array', items: DATE }),
      );
    const writer = shape(part(maybe('price', DECIMAL), born));
    const reader = shape(part(born, maybe('tip', DECIMAL)));
    const value = {
      part: { n: 1, price: Buffer.of(1), born: 0 },
      parts: [
        { n: 2, price: null, born: 1 },
        { n: 3, price: Buffer.of(2), born: null },
      ],
      dates: [0, 31],
    };
    expect(readAs(reader)(writer)(written(writer, value))).toEqual({
      part: { n: 1, born: '1970-01-01', tip: null },
      parts: [
        { n: 2, born: '1970-01-02', tip: null },
        { n: 3, born: null, tip: null },
      ],
      dates: ['1970-01-01', '1970-02-01'],
    });
  });

  it('reads a decimal of another scale as the number that was written', () => {
    const reader = record('Value', maybe('price', DECIMAL));
    const writer = record('Value', maybe('price', { ...DECIMAL, scale: 2 }));
    expect(readAs(reader)(writer)(written(writer, { price: Buffer.of(0x7d) }))).toEqual({
      price: 1.25,
    });
  });

  it('takes an int for a long, and what could have been null', () => {
    const reader = record('Value', maybe('n', 'long'));
    const writer = record('Value', field('n', 'int'));
    expect(readAs(reader)(writer)(written(writer, { n: 3 }))).toEqual({ n: 3 });
  });

  it.each<[string, AvroType, AvroType]>([
    ['text as a decimal', ['null', 'string'], ['null', DECIMAL]],
    ['bytes as a decimal', ['null', 'bytes'], ['null', DECIMAL]],
    ['a number as a date', 'int', DATE],
    ['null as a date', ['null', DATE], DATE],
    ['text as a number', ['null', 'string'], ['null', 'long']],
    ['a decimal beyond 18 digits', { ...DECIMAL, precision: 38 }, DECIMAL],
  ])('refuses a writer that has %s, by its name', (_, wrote, wanted) => {
    const writer = record('wine.Value', field('a', wrote));
    const reader = record('wine.Value', field('a', wanted));
    expect(() => readAs(reader)(writer)).toThrow(
      new TypeError(
        "messages written with the Avro schema wine.Value can't be read with the schema wine.Value",
      ),
    );
  });

  it('refuses a writer of another name, and one that lacks a field without a default', () => {
    const reader = record('wine.Value', field('a', 'string'));
    const other = { ...reader, name: 'Other', namespace: 'beer' };
    expect(() => readAs(reader)(other)).toThrow(
      new TypeError(
        "messages written with the Avro schema beer.Other can't be read with the schema wine.Value",
      ),
    );
    expect(() => readAs(reader)(record('wine.Value'))).toThrow(TypeError);
  });
});

describe('readEventsAs', () => {
  const codec = createEnvelopeCodec(orderSchema, 'orders');
  const read = readEventsAs(orderSchema, 'orders')(codec.schema);
  const facts = {
    op: 'u',
    ts_ms: 1_714_564_800_000,
    changed: ['tip'],
    source: orderSource(9_007_199_254_740_990),
  } as const;
  const images = fc.option(oddRecords(orderSchema).map((json) => codec.values.encode(json)));

  it('gives the facts as they are, and of the images every value that was written', () => {
    fc.assert(
      fc.property(images, images, (before, after) => {
        const event = read(codec.encode({ before, after, ...facts }));
        const plain = (image: Buffer | null) =>
          image && spelled(codec.values.type.fromBuffer(image), orderSchema);
        expect(event).toEqual({ ...facts, before: plain(before), after: plain(after) });
      }),
      { seed: 5, numRuns: 100 },
    );
  });

  it('throws for bytes that are cut off, anywhere, and for more bytes than a value has', () => {
    const [image] = fc.sample(oddRecords(orderSchema), { seed: 9, numRuns: 1 });
    const bytes = codec.encode({ before: null, after: codec.values.encode(image!), ...facts });
    expect(() => read(bytes)).not.toThrow();
    for (let length = 0; length < bytes.length; length++) {
      expect(() => read(bytes.subarray(0, length))).toThrow(
        /the Avro schema cellarstream\.orders\.Envelope/,
      );
    }
    expect(() => read(Buffer.concat([bytes, Buffer.of(0)]))).toThrow(
      'extra bytes after a value of the Avro schema cellarstream.orders.Envelope',
    );
  });
});

/** A value as avsc reads it, with decimals and dates worked out from the schema in another way. */
function spelled(value: unknown, type: AvroType): unknown {
  if (value === null) return null;
  if (Array.isArray(type)) return spelled(value, (type as AvroType[])[1]!);
  if (typeof type === 'string') return value;
  if ('fields' in type) {
    const held = value as Record<string, unknown>;
    return Object.fromEntries(
      type.fields.map(({ name, type }) => [name, spelled(held[name], type)]),
    );
  }
  if ('items' in type) return (value as unknown[]).map((item) => spelled(item, type.items));
  if ('logicalType' in type && type.logicalType === 'decimal') {
    const bytes = value as Buffer;
    const hex = bytes.toString('hex') || '0';
    const unscaled = BigInt.asIntN(bytes.length * 8, BigInt(`0x${hex}`));
    return Number(`${unscaled}e-${type.scale ?? 0}`);
  }
  if ('logicalType' in type && type.logicalType === 'date') {
    return new Date((value as number) * 86_400_000).toISOString().slice(0, 10);
  }
  return value;
}
