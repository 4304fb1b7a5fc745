import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { AvroType, FieldSchema, RecordSchema } from '../../../src/schemas/avro/avro-schema.ts';
import { growSchema } from '../../../src/schemas/avro/infer.ts';
import { canonicalJson } from '../../../src/schemas/json/json.ts';
import type { JsonObject } from '../../../src/schemas/json/json.ts';
import { orderSchema } from '../../../src/description/wine/order.ts';
import { RecordCodec } from '../../../src/schemas/avro/record-codec.ts';
import { RECORD, RESOURCE, steps } from './infer-pages.ts';
import { inOneForm, turned } from './odd-records.ts';
import { scaled } from '../../support/scale.ts';

describe.each([
  ['a resource without a schema', undefined, scaled(20, 150)],
  ['orders', orderSchema, scaled(3, 15)],
])('%s', { timeout: 30_000 }, (_, start, numRuns) => {
  /** As the API's JSON is rebuilt: to the letter, save times that orders have always had. */
  const rebuilt = (record: JsonObject) => canonicalJson(start ? inOneForm(record, start) : record);

  it('holds every record, to the letter', () => {
    fc.assert(
      fc.property(steps(start, 3), (chain) => {
        for (const { page, schema } of chain) {
          const codec = new RecordCodec(schema);
          for (const record of page) {
            expect(canonicalJson(codec.decode(codec.encode(record)))).toBe(rebuilt(record));
          }
        }
      }),
      { seed: 11, numRuns },
    );
  });

  it('only adds, and adds nothing twice', () => {
    fc.assert(
      fc.property(steps(start, 4), (chain) => {
        let before = start;
        for (const { page, schema } of chain) {
          if (before) expectToContain(schema, before);
          expect(growSchema(schema, page, RESOURCE)).toBe(schema);
          expect(growSchema(schema, page.slice(1), RESOURCE)).toBe(schema);
          expect(growSchema(schema, [], RESOURCE)).toBe(schema);
          before = schema;
        }
      }),
      { seed: 12, numRuns },
    );
  });

  it('grows by no record of which the codec tells nothing unknown', () => {
    fc.assert(
      fc.property(steps(start, 2), RECORD, (chain, stranger) => {
        for (const { page, schema } of chain) {
          const codec = new RecordCodec(schema);
          for (const record of [...page, stranger]) {
            let isTold = false;
            codec.encode(record, () => (isTold = true));
            if (!isTold) expect(growSchema(schema, [record], RESOURCE)).toBe(schema);
          }
        }
      }),
      { seed: 17, numRuns },
    );
  });

  it('comes to the same in whatever order records and keys arrive', () => {
    fc.assert(
      fc.property(steps(start, 2), ([first, second]) => {
        const other = [...second!.page].reverse().map((record) => turned(record) as JsonObject);
        expect(growSchema(first!.schema, other, RESOURCE)).toEqual(second!.schema);
      }),
      { seed: 13, numRuns },
    );
  });

  it('names fields so that Avro takes them, and no two alike', () => {
    fc.assert(
      fc.property(steps(start, 3), (chain) => {
        const records = recordsIn(chain.at(-1)!.schema);
        for (const { fields } of records) {
          const names = fields.map(({ name }) => name);
          expect(names.every((name) => /^[A-Za-z_][A-Za-z0-9_]*$/.test(name))).toBe(true);
          expect(new Set(names).size).toBe(names.length);
          const own = fields.filter(({ default: standard }) => standard === null);
          const keys = own.map(({ name, json }) => json ?? name);
          expect(new Set(keys).size).toBe(keys.length);
        }
        const names = records.map(({ name }) => name.toLowerCase());
        expect(new Set(names).size).toBe(names.length);
      }),
      { seed: 14, numRuns },
    );
  });

  it('republishes nothing: an image of any version, rebuilt, is what the record is in a later one', () => {
    fc.assert(
      fc.property(steps(start, 3), RECORD, (chain, stranger) => {
        const codecs = chain.map(({ schema }) => new RecordCodec(schema));
        const records = [...chain.flatMap(({ page }) => page), stranger];
        forPairs(codecs, (older, newer) => {
          for (const record of records) {
            const again = newer.encode(older.decode(older.encode(record)));
            expect(again.equals(newer.encode(record))).toBe(true);
          }
        });
      }),
      { seed: 15, numRuns },
    );
  });

  it('is read across versions, both ways', () => {
    fc.assert(
      fc.property(steps(start, 4), (chain) => {
        const codecs = chain.map(({ schema }) => new RecordCodec(schema));
        const records = chain.flatMap(({ page }) => page);
        forPairs(codecs, (older, newer) => {
          const [forward, backward] = [reader(newer, older), reader(older, newer)];
          for (const record of records) {
            const old = older.encode(record);
            const recent = newer.encode(record);
            expect(canonicalJson(newer.toJson(forward(old)))).toBe(rebuilt(record));
            expect(typedPart(backward(recent))).toEqual(typedPart(older.type.fromBuffer(old)));
          }
        });
      }),
      { seed: 16, numRuns },
    );
  });
});

/** Each codec with each that came after it. */
function forPairs(
  codecs: readonly RecordCodec[],
  check: (older: RecordCodec, newer: RecordCodec) => void,
): void {
  codecs.forEach((older, at) => {
    for (const newer of codecs.slice(at + 1)) check(older, newer);
  });
}

/** What a program with one version makes of bytes of another, by the rules of Avro. */
function reader(own: RecordCodec, writer: RecordCodec): (bytes: Buffer) => unknown {
  const resolver = own.type.createResolver(writer.type);
  return (bytes) => own.type.fromBuffer(bytes, resolver) as unknown;
}

/** What an image says in its own fields. */
function typedPart(image: unknown): unknown {
  return { ...(image as object), nulls: undefined, unmapped: undefined };
}

/** That the schema has every field of the older one, unchanged but for what grew within. */
function expectToContain(schema: RecordSchema, older: RecordSchema): void {
  const { fields, ...head } = schema;
  const { fields: olderFields, ...olderHead } = older;
  expect(head).toEqual(olderHead);
  for (const field of olderFields) {
    const now = fields.find(({ name }) => name === field.name);
    const part = recordOf(field);
    expect(now && blanked(now)).toEqual(blanked(field));
    if (part) expectToContain(recordOf(now!)!, part);
  }
  const names = new Set(olderFields.map(({ name }) => name));
  const kept = fields.filter(({ name }) => names.has(name)).map(({ name }) => name);
  expect(kept).toEqual(olderFields.map(({ name }) => name)); // and in their order
}

/** A field, the fields of the record in it left out. */
function blanked(field: FieldSchema): unknown {
  return JSON.parse(
    JSON.stringify(field, (key, value: unknown) => (key === 'fields' ? [] : value)),
  );
}

/** The record in a field's type. */
function recordOf({ type }: FieldSchema): RecordSchema | undefined {
  const within = (of: AvroType): RecordSchema | undefined => {
    if (typeof of === 'string') return undefined;
    if (Array.isArray(of)) return within((of as AvroType[])[1]!);
    if ('items' in of) return within(of.items);
    return 'fields' in of ? of : undefined;
  };
  return within(type);
}

function recordsIn(schema: RecordSchema): RecordSchema[] {
  const parts = schema.fields.map(recordOf).filter((part) => part !== undefined);
  return [schema, ...parts.flatMap(recordsIn)];
}
