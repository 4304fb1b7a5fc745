import avro from 'avsc';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { FieldSchema, RecordSchema } from '../../../src/schemas/avro/avro-schema.ts';
import {
  createEnvelopeCodec,
  envelopeCodec,
  envelopeSchema,
} from '../../../src/schemas/events/envelope.ts';
import type { ChangeEvent, ChangeFacts, Op } from '../../../src/schemas/events/envelope.ts';
import { canonicalJson } from '../../../src/schemas/json/json.ts';
import type { JsonObject } from '../../../src/schemas/json/json.ts';
import { orderSchema } from '../../../src/description/wine/order.ts';
import { RecordCodec } from '../../../src/schemas/avro/record-codec.ts';
import { frame } from '../../../src/schemas/registry/wire.ts';
import { oddRecords } from '../avro/odd-records.ts';
import { orderSource } from '../../support/event-source.ts';

const values = new RecordCodec(orderSchema);
const codec = createEnvelopeCodec(orderSchema, 'orders');

const facts: ChangeFacts = {
  op: 'u',
  ts_ms: 1_714_564_800_000,
  changed: ['fulfillment_info[F-12].status'],
  source: orderSource(9_007_199_254_740_990),
};

const events = (): fc.Arbitrary<ChangeEvent> => {
  const image = () => fc.option(oddRecords(orderSchema));
  return fc
    .tuple(image(), image(), fc.constantFrom<Op>('r', 'c', 'u', 'd'), fc.option(fc.nat()))
    .map(([before, after, op, ts_ms]) => ({
      before,
      after,
      ...facts,
      op,
      source: { ...facts.source, ts_ms },
    }));
};

const encoded = (record: JsonObject | null) => record && values.encode(record);
const hex = (bytes: Buffer | null) => bytes?.toString('hex');
const encode = (event: ChangeEvent): Buffer =>
  codec.encode({ ...event, before: encoded(event.before), after: encoded(event.after) });

describe('createEnvelopeCodec', () => {
  it('joins images to the very bytes that avsc writes for the whole', () => {
    const type = avro.Type.forSchema(codec.schema as avro.Schema);
    const value = (record: JsonObject | null): unknown =>
      record && values.type.fromBuffer(values.encode(record));
    fc.assert(
      fc.property(events(), (event) => {
        const whole = { ...event, before: value(event.before), after: value(event.after) };
        expect(encode(event).equals(type.toBuffer(whole))).toBe(true);
      }),
      { seed: 4, numRuns: 50 },
    );
  });

  it('writes a path that has no UTF-8 as near as can be, and numbers at their ends', () => {
    const type = avro.Type.forSchema(codec.schema as avro.Schema);
    const source = { ...facts.source, ts_ms: -62_167_219_200_000, sequence: 0 };
    for (const changed of [['\ud800', 'list[\udfff].a', `${'é'.repeat(60)}\ud800`], []]) {
      const event = { ...facts, before: null, after: null, changed, source };
      const spelt = changed.map((path) => path.toWellFormed()); // avsc would write no UTF-8
      expect(hex(encode(event))).toBe(hex(type.toBuffer({ ...event, changed: spelt })));
      expect(codec.decode(encode(event)).changed).toEqual(spelt);
    }
  });

  it('reads its own events', () => {
    fc.assert(
      fc.property(events(), (event) => {
        const image = (record: JsonObject | null) => record && values.decode(values.encode(record));
        const read = codec.decode(encode(event));

        expect(canonicalJson(read as never)).toBe(
          canonicalJson({
            ...event,
            before: image(event.before),
            after: image(event.after),
          } as never),
        );
      }),
      { seed: 5, numRuns: 50 },
    );
  });

  it('writes an event framed as the value of a message', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 0xffffffff }), (schemaId) => {
        const images = { before: null, after: encoded({ order_number: 7 }) };
        const event = { ...facts, ...images };
        const framed = frame(schemaId, codec.encode(event));
        expect(hex(codec.message(schemaId, event))).toBe(hex(framed));
      }),
      { seed: 12, examples: [[0], [0x7fffffff], [0x80000000], [0xffffffff]] },
    );
  });

  it('gives the images back as they were encoded', () => {
    fc.assert(
      fc.property(events(), (event) => {
        const { before, after, op, sequence } = codec.images(encode(event));
        expect(hex(before)).toBe(hex(encoded(event.before)));
        expect(hex(after)).toBe(hex(encoded(event.after)));
        expect([op, sequence]).toEqual([event.op, event.source.sequence]);
      }),
      { seed: 6, numRuns: 50 },
    );
  });

  it('gives slices, not copies', () => {
    const bytes = encode({ ...facts, before: null, after: { order_number: 1 } });

    expect(codec.images(bytes).after?.buffer).toBe(bytes.buffer);
  });

  it('names records so that Debezium and Java find them', () => {
    const { name, namespace, fields } = envelopeSchema(orderSchema, 'wine-club-members');

    expect(`${namespace}.${name}`).toBe('cellarstream.wine_club_members.Envelope');
    expect(fields.map((field) => field.name)).toEqual([
      'before',
      'after',
      'op',
      'ts_ms',
      'changed',
      'source',
    ]);
    expect(fields[0]?.type).toEqual(['null', orderSchema]);
    expect(fields[1]?.type).toEqual(['null', 'cellarstream.orders.Value']);
  });

  it.each([0, 1, 2, 7, 30])('refuses an event that is cut off after %i bytes', (length) => {
    const bytes = encode({ ...facts, before: null, after: { order_number: 1 } });

    expect(() => codec.decode(bytes.subarray(0, length))).toThrow();
    expect(() => codec.images(bytes.subarray(0, length))).toThrow();
  });

  it('refuses bytes that are no event', () => {
    expect(() => codec.decode(Buffer.from('hello'))).toThrow(/not an event of Envelope/);
  });
});

describe('envelopeCodec', () => {
  it('is made from a schema as a registry gives it back', () => {
    const again = envelopeCodec(JSON.parse(JSON.stringify(codec.schema)) as RecordSchema);
    const bytes = encode({ ...facts, before: null, after: { order_number: 7 } });

    expect(again.decode(bytes)).toEqual({ ...facts, before: null, after: { order_number: 7 } });
    expect(again.values.schema).toEqual(orderSchema);
  });

  it('is made from a schema that a registry wrote in its own words', () => {
    // As Java's Avro prints it: no namespace where it is that of the record around it.
    const { type, name, fields: images } = orderSchema;
    const bare: RecordSchema = { type, name, fields: images };
    const fields = codec.schema.fields.map((field): FieldSchema => {
      if (field.name === 'before') return { ...field, type: ['null', bare] };
      return field.name === 'after' ? { ...field, type: ['null', 'Value'] } : field;
    });
    const again = envelopeCodec({ ...codec.schema, fields });
    const event = { ...facts, before: { notes: 'a' }, after: { order_number: 7 } };

    expect(again.decode(encode(event))).toEqual(event);
  });

  it('refuses another schema', () => {
    expect(() => envelopeCodec(orderSchema)).toThrow(TypeError);
  });
});

describe('a schema that has grown', () => {
  const grown: RecordSchema = {
    ...orderSchema,
    fields: [
      ...orderSchema.fields.slice(0, -2),
      { name: 'gift', type: ['null', 'boolean'], default: null },
      ...orderSchema.fields.slice(-2),
    ],
  };
  const newer = createEnvelopeCodec(grown, 'orders');
  const reader = (to: RecordSchema, from: RecordSchema) => {
    const type = avro.Type.forSchema(to as avro.Schema);
    const resolver = type.createResolver(avro.Type.forSchema(from as avro.Schema));
    return (bytes: Buffer) => type.fromBuffer(bytes, resolver) as { after: object };
  };

  it('is read by older readers, and reads what is older', () => {
    const old = encode({ ...facts, before: null, after: { order_number: 1, gift: true } });
    const after = newer.values.encode({ order_number: 1, gift: true });
    const recent = newer.encode({ ...facts, before: null, after });

    const [oldFromNew, newFromOld] = [
      reader(codec.schema, newer.schema)(recent).after,
      reader(newer.schema, codec.schema)(old).after,
    ];
    expect(codec.values.toJson(oldFromNew)).toEqual({ order_number: 1 });
    expect(newer.values.toJson(newFromOld)).toEqual({ order_number: 1, gift: true });
  });
});
