import avro from 'avsc';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { AvroType, FieldSchema, RecordSchema } from '../../../src/schemas/avro/avro-schema.ts';
import { growSchema } from '../../../src/schemas/avro/infer.ts';
import { canonicalJson } from '../../../src/schemas/json/json.ts';
import type { JsonObject } from '../../../src/schemas/json/json.ts';
import { addFields } from '../../../src/schemas/avro/merge-schema.ts';
import { orderSchema } from '../../../src/description/wine/order.ts';
import { RecordCodec } from '../../../src/schemas/avro/record-codec.ts';
import { RESOURCE, steps } from './infer-pages.ts';
import { inOneForm, oddRecords } from './odd-records.ts';
import { scaled } from '../../support/scale.ts';

const ENDS: readonly FieldSchema[] = [
  { name: 'nulls', type: { type: 'array', items: 'string' }, default: [] },
  { name: 'unmapped', type: { type: 'map', values: 'string' }, default: {} },
];

const image = (...fields: FieldSchema[]): RecordSchema => ({
  type: 'record',
  name: 'Value',
  namespace: 'cellarstream.test',
  fields: [...fields, ...ENDS],
});
const field = (name: string, type: AvroType, json?: string): FieldSchema => ({
  name,
  type: ['null', type],
  default: null,
  ...(json === undefined ? {} : { json }),
});
const record = (name: string, ...fields: FieldSchema[]): RecordSchema => ({
  type: 'record',
  name,
  fields,
});
const array = (items: AvroType): AvroType => ({ type: 'array', items });

describe('addFields', () => {
  it('adds what is missing behind what is there, before nulls and unmapped', () => {
    const described = image(field('c', 'string'), field('b', 'long'), field('a', 'double'));
    expect(addFields(image(field('b', 'long')), described)).toEqual(
      image(field('b', 'long'), field('c', 'string'), field('a', 'double')),
    );
  });

  it('adds at any depth, in records and in arrays of them', () => {
    const schema = (...more: FieldSchema[]) =>
      image(
        field('part', record('Part', field('inner', record('Inner', field('x', 'long'), ...more)))),
        field('grid', array(array(record('Cell', field('x', 'long'), ...more)))),
      );
    const gift = field('gift', 'boolean');
    expect(addFields(schema(), schema(gift))).toEqual(schema(gift));
  });

  it('is the very same schema when nothing is missing', () => {
    expect(addFields(orderSchema, orderSchema)).toBe(orderSchema);
    const fewer = { ...orderSchema, fields: orderSchema.fields.slice(3) };
    expect(addFields(orderSchema, fewer)).toBe(orderSchema);
    expect(addFields(image(), image())).toEqual(image());
  });

  it.each<[string, AvroType, AvroType]>([
    ['a plain type', 'long', 'double'],
    ['a text', 'string', record('Part', field('x', 'long'))],
    ['a record', record('Part', field('x', 'long')), 'string'],
    [
      'a record, not in an array',
      record('Part', field('x', 'long')),
      array(record('P', field('y', 'long'))),
    ],
    ['an array', array(record('Part', field('x', 'long'))), record('P', field('y', 'long'))],
    ['a logical type', { type: 'long', logicalType: 'timestamp-millis', exact: true }, 'string'],
  ])('leaves %s that is there as it is, whatever is described', (_, type, described) => {
    const base = image(field('a', type));
    expect(addFields(base, image(field('a', described)))).toBe(base);
  });

  it('knows fields by their names in JSON', () => {
    const base = image(field('a_b', 'string', 'a b'));
    expect(addFields(base, image(field('aSpaceB', 'string', 'a b')))).toBe(base);
  });

  it('gives a field another name where its own is taken', () => {
    const base = image(field('a_b', 'string', 'a b'), field('status', 'string', 'Status!'));
    const described = image(
      field('a_b', 'long', 'a.b'),
      field('status', 'long'),
      field('unmapped_', 'string', 'unmapped'),
    );
    const added = addFields(base, described).fields.slice(2, -2);
    expect(added).toEqual([
      field('a_b_2e7336dc', 'long', 'a.b'),
      field('status_073c1634', 'long', 'status'),
      field('unmapped_', 'string', 'unmapped'),
    ]);
    // As it would be named if it was inferred.
    const inferred = growSchema(base, [{ 'a.b': 1, status: 1 }], RESOURCE).fields.slice(2, -2);
    expect(added.slice(0, 2).map(({ name }) => name)).toEqual(inferred.map(({ name }) => name));
  });

  it.each(['nulls', 'unmapped', 'toString', 'constructor'])(
    'gives a field another name than %s, which avsc or an image has for itself',
    (name) => {
      const [added] = addFields(image(), image(field(name, 'string'))).fields;
      expect(added).toMatchObject({ name: expect.stringMatching(`^${name}_`), json: name });
      const part = (...fields: FieldSchema[]) => image(field('part', record('Part', ...fields)));
      const within = addFields(part(), part(field('nulls', 'long'))); // there it is a name as any
      expect(within).toEqual(part(field('nulls', 'long')));
    },
  );

  it('takes no name that another described field comes with', () => {
    const name = addFields(image(field('a', 'long', 'A')), image(field('a', 'long'))).fields[1]!
      .name;
    const base = image(field('a', 'long', 'A'));
    const both = addFields(base, image(field('a', 'long'), field(name, 'long', 'other')));
    const names = both.fields.map((one) => one.name);
    expect(new Set(names).size).toBe(names.length);
    expect(both.fields.find(({ json }) => json === 'other')?.name).toBe(name);
  });

  it('makes no name twice', () => {
    const base = image(field('x', 'long', 'X'), field('y', 'long', 'Y'));
    const described = image(field('x', 'long', 'a.b'), field('y', 'long', 'a-b'));
    const names = addFields(base, described).fields.map(({ name }) => name);
    expect(names.slice(2, -2)).toEqual(['a_b', expect.stringMatching(/^a_b_/)]);

    const parts = image(field('first', record('Part')), field('second', record('First')));
    expect(addFields(image(field('part', record('Part'))), parts).fields.slice(1, -2)).toEqual([
      field('first', record('First')),
      field('second', record('Second')),
    ]);
  });

  it('gives a record another name where its own is taken, at whatever depth', () => {
    const base = image(
      field('a', array(record('A', field('b', record('cellarstream.test.Part'))))),
    );
    const described = image(
      field('first', array(record('part', field('x', 'long')))),
      field('second', record('Second', field('a', record('A', field('x', 'long'))))),
      field('third', record('VALUE')),
    );
    expect(addFields(base, described).fields.slice(1, -2)).toEqual([
      field('first', array(record('First', field('x', 'long')))),
      field('second', record('Second', field('a', record('SecondA', field('x', 'long'))))),
      field('third', record('Third')),
    ]);
  });

  it('makes what it adds null by default', () => {
    const bare: FieldSchema = { name: 'b', type: ['null', 'long'] };
    expect(addFields(image(field('a', 'long')), image(bare)).fields[1]).toEqual(field('b', 'long'));
  });

  it('changes neither schema', () => {
    const [base, described] = [image(field('a', record('A'))), image(field('b', record('A')))];
    const before = JSON.stringify([base, described]);
    addFields(base, described);
    expect(JSON.stringify([base, described])).toBe(before);
  });
});

/** Two schemas of one resource that nothing has kept in step. */
const pairs = fc.oneof(
  fc.tuple(grown(undefined), grown(undefined)),
  fc.tuple(grown(undefined), grown(orderSchema)),
  fc.tuple(grown(orderSchema), grown(orderSchema)),
  fc.tuple(grown(orderSchema), fc.constant(orderSchema)),
);

function grown(start: RecordSchema | undefined): fc.Arbitrary<RecordSchema> {
  return steps(start, start ? 1 : 2).map((chain) => chain.at(-1)!.schema);
}

describe('any two schemas', { timeout: 30_000 }, () => {
  const check = (seed: number, test: (base: RecordSchema, described: RecordSchema) => void) => {
    fc.assert(
      fc.property(pairs, ([base, described]) => {
        // As a registry gives it.
        test(JSON.parse(JSON.stringify(base)) as RecordSchema, described);
      }),
      { seed, numRuns: scaled(15, 80) },
    );
  };

  it('become one with the fields of both, those of the base as they were', () => {
    check(31, (base, described) => {
      const both = addFields(base, described);
      expectToHold(own(both), own(base));
      expectToHold(own(both), own(described));
      const names = own(base).map(({ name }) => name);
      expect(both.fields.slice(0, names.length).map(({ name }) => name)).toEqual(names);
      expect(both.fields.slice(-2)).toEqual(base.fields.slice(-2));
      const keys = new Set([...own(base), ...own(described)].map(keyOf));
      expect(own(both).map(keyOf).sort()).toEqual([...keys].sort());
      expect(addFields(both, described)).toBe(both);
      expect(addFields(both, base)).toBe(both);
    });
  });

  it('become one that reads what the base has written, and is read by it', () => {
    check(32, (base, described) => {
      const [older, newer] = [base, addFields(base, described)].map((schema) =>
        avro.Type.forSchema(schema as avro.Schema),
      );
      expect(() => newer!.createResolver(older!)).not.toThrow();
      expect(() => older!.createResolver(newer!)).not.toThrow();
    });
  });

  it('become one that holds every record of either, and rebuilds what the base has written', () => {
    const records = pairs.chain(([base, described]) =>
      fc.tuple(
        fc.constant([base, addFields(base, described)] as const),
        fc.array(fc.oneof(oddRecords(base), oddRecords(described)), { minLength: 1, maxLength: 3 }),
      ),
    );
    fc.assert(
      fc.property(records, ([[base, both], page]) => {
        const [older, newer] = [new RecordCodec(base), new RecordCodec(both)];
        const resolver = newer.type.createResolver(older.type);
        const back = older.type.createResolver(newer.type);
        for (const one of page) {
          const bytes = newer.encode(one);
          expect(text(newer.decode(bytes), both)).toBe(text(one, both));
          expect(newer.encode(older.decode(older.encode(one))).equals(bytes)).toBe(true);
          expect(newer.type.fromBuffer(older.encode(one), resolver)).toBeTruthy();
          expect(older.type.fromBuffer(bytes, back)).toBeTruthy();
        }
      }),
      { seed: 33, numRuns: scaled(15, 80) },
    );
  });
});

const text = (json: JsonObject, schema: RecordSchema) => canonicalJson(inOneForm(json, schema));

const own = ({ fields }: RecordSchema) => fields.slice(0, -2);

const keyOf = ({ name, json = name }: FieldSchema) => json;

/** That there is a field for each of the others, at any depth at which both have records. */
function expectToHold(fields: readonly FieldSchema[], others: readonly FieldSchema[]): void {
  const byKey = new Map(fields.map((one) => [keyOf(one), one]));
  expect(byKey.size).toBe(fields.length);
  for (const other of others) {
    const one = byKey.get(keyOf(other));
    expect(one).toBeDefined();
    const [within, otherWithin] = [recordIn(one!.type), recordIn(other.type)];
    if (within && within.arrays === otherWithin?.arrays) {
      expectToHold(within.fields, otherWithin.fields);
    }
  }
}

/** The fields of the record in a type, and the arrays around it. */
function recordIn(type: AvroType): { fields: readonly FieldSchema[]; arrays: number } | undefined {
  if (typeof type === 'string') return undefined;
  if (Array.isArray(type)) return recordIn((type as AvroType[])[1]!);
  if ('fields' in type) return { fields: type.fields, arrays: 0 };
  const within = 'items' in type ? recordIn(type.items) : undefined;
  return within && { ...within, arrays: within.arrays + 1 };
}
