import avro from 'avsc';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { RecordSchema } from '../../../src/schemas/avro/avro-schema.ts';
import { createEnvelopeCodec, toJson } from '../../../src/schemas/events/envelope.ts';
import type { ChangeFacts, EnvelopeCodec } from '../../../src/schemas/events/envelope.ts';
import { canonicalJson, parseJson } from '../../../src/schemas/json/json.ts';
import type { JsonObject } from '../../../src/schemas/json/json.ts';
import { orderSchema } from '../../../src/description/wine/order.ts';
import { RESOURCE, steps } from '../avro/infer-pages.ts';
import { inOneForm, oddRecords } from '../avro/odd-records.ts';
import { scaled } from '../../support/scale.ts';
import { orderSource } from '../../support/event-source.ts';

const facts: ChangeFacts = {
  op: 'u',
  ts_ms: 1_714_564_800_000,
  changed: [],
  source: orderSource(),
};

interface Records {
  readonly before?: JsonObject | null;
  readonly after?: JsonObject | null;
}

function encode(codec: EnvelopeCodec, { before, after }: Records): Buffer {
  const { values } = codec;
  return codec.encode({
    ...facts,
    before: before ? values.encode(before) : null,
    after: after ? values.encode(after) : null,
  });
}

/** A consumer with nothing but avsc and what the registry holds: the schema's text. */
function stranger(registered: RecordSchema) {
  const schema = JSON.parse(JSON.stringify(registered)) as RecordSchema;
  const type = avro.Type.forSchema(schema as avro.Schema);
  return {
    schema,
    read: (bytes: Buffer) => type.fromBuffer(bytes) as { before: unknown; after: unknown },
  };
}

/** The text, whatever the order of its keys: every number in it has the spelling that it has there. */
const sorted = (text: string | null) => (text === null ? null : canonicalJson(parseJson(text)));

const codec = createEnvelopeCodec(orderSchema, 'orders');
const consumer = stranger(codec.schema);

/** Both ways to it. */
const ways: [string, (bytes: Buffer) => string | null][] = [
  ['an event that the codec decoded', (bytes) => toJson(codec.decode(bytes))],
  ['an event that avsc decoded', (bytes) => toJson(consumer.read(bytes), consumer.schema)],
];

describe.each(ways)('toJson of %s', (_, textOf) => {
  const text = (records: Records) => textOf(encode(codec, records));

  it('has every number as it was sent', () => {
    for (const sent of [
      '{"order_number":9223372036854775807}',
      '{"order_number":-0}',
      '{"subtotal_price":1e400}',
      '{"tip":0.12345678901234567890}',
      '{"new":[12345678901234567890,-0,1e400]}',
    ]) {
      expect(text({ after: parseJson(sent) as JsonObject })).toBe(sent);
    }
  });

  it('is the record before the change where there is none after it', () => {
    const [before, after] = [{ order_number: 1 }, { order_number: 2 }];
    expect(text({ before, after })).toBe('{"order_number":2}');
    expect(text({ before, after: null })).toBe('{"order_number":1}');
    expect(text({ before: null, after })).toBe('{"order_number":2}');
  });

  it('is null where neither is there', () => {
    expect(text({})).toBeNull();
  });

  it('rebuilds any order', () => {
    fc.assert(
      fc.property(oddRecords(orderSchema), (record) => {
        const expected = canonicalJson(inOneForm(record, orderSchema));
        expect(sorted(text({ after: record }))).toBe(expected);
      }),
      { seed: 21, numRuns: scaled(25, 100) },
    );
  });
});

describe('toJson', () => {
  it('rebuilds any record of a schema that grows, whatever its names in Avro are', () => {
    fc.assert(
      fc.property(steps(undefined, 3), (chain) => {
        for (const { page, schema } of chain) {
          const envelopes = createEnvelopeCodec(schema, RESOURCE.resource);
          const { schema: registered, read } = stranger(envelopes.schema);
          for (const record of page) {
            const bytes = encode(envelopes, { after: record });
            expect(sorted(toJson(envelopes.decode(bytes)))).toBe(canonicalJson(record));
            expect(sorted(toJson(read(bytes), registered))).toBe(canonicalJson(record));
          }
        }
      }),
      { seed: 22, numRuns: scaled(25, 100) },
    );
  });

  it('leaves the event as it was', () => {
    const event = consumer.read(encode(codec, { after: { order_number: 1, new: [null, -0] } }));
    const before = JSON.stringify(event);
    expect(toJson(event, consumer.schema)).toBe(toJson(event, consumer.schema));
    expect(JSON.stringify(event)).toBe(before);
  });

  it('compiles a schema once', () => {
    const event = consumer.read(encode(codec, { after: { order_number: 1 } }));
    let looks = 0;
    const watched = new Proxy(consumer.schema, {
      get: (schema, name) => {
        looks += 1;
        return Reflect.get(schema, name) as unknown;
      },
    });
    toJson(event, watched);
    const first = looks;
    expect(first).toBeGreaterThan(0);
    toJson(event, watched);
    expect(looks).toBe(first);
  });

  it('refuses a schema that is not of an envelope', () => {
    expect(() => toJson({ before: null, after: {} }, orderSchema)).toThrow(TypeError);
  });
});
