import { randomUUID } from 'node:crypto';
import avro from 'avsc';
import fc from 'fast-check';
import { afterAll, describe, expect, inject, it } from 'vitest';
import type { RecordSchema } from '../../src/schemas/avro/avro-schema.ts';
import { envelopeCodec, envelopeSchema, valueSchemaOf } from '../../src/schemas/events/envelope.ts';
import type { ChangeEvent, EnvelopeCodec } from '../../src/schemas/events/envelope.ts';
import { growSchema } from '../../src/schemas/avro/infer.ts';
import { canonicalJson } from '../../src/schemas/json/json.ts';
import type { JsonObject } from '../../src/schemas/json/json.ts';
import { orderSchema } from '../../src/description/wine/order.ts';
import { createRegistry } from '../../src/schemas/registry/registry.ts';
import { steps } from '../schemas/avro/infer-pages.ts';
import { inOneForm } from '../schemas/avro/odd-records.ts';

const registry = createRegistry({ url: inject('registryUrl') });
afterAll(() => registry.close());

/** What a resource comes to send: each adds something to what was there. */
const PAGES: readonly (readonly JsonObject[])[] = [
  [
    { id: 1, name: 'Reserve', joined_at: '2024-05-01T12:00:00.000Z', tags: [] },
    { id: 2, name: null, address: { city: 'Napa' }, packages: [{ price: 99.5 }] },
  ],
  [{ id: 3, 'first name': 'Ada', '2nd': true, birthday: '1980-02-29', nulls: 1 }],
  [{ id: 4, address: { city: 'Sonoma', geo: { lat: 38.3 } }, tags: ['vip'] }],
  [{ id: 5, packages: [{ price: 1, items: [{ sku: 'A', years: [[2019]] }] }] }],
  [{ id: 6, address: { geo: { lat: 1, 名: 'x', toString: 'y' } as JsonObject } }],
  [
    Object.fromEntries([['__proto__', { a: 1 }]]),
    { packages: [{ 'a.b': 1, 'a b': 2, items: [{ at: '2024-05-01T12:00:00.000Z' }] }] },
  ],
];

/** Things that cannot be typed, or not as before. */
const ODD: JsonObject = {
  id: 'x',
  name: 7,
  address: [],
  packages: [{ price: 'much' }],
};

const facts = {
  op: 'u',
  ts_ms: 0,
  changed: [],
  source: {
    connector: 'cellarstream',
    version: '0.0.0',
    name: 'default',
    resource: 'wine-club-members',
    ts_ms: null,
    snapshot: 'false',
    db: 'wine',
    table: 'orders',
    sequence: 1,
  },
} as const;

const eventOf = (codec: EnvelopeCodec, record: JsonObject): Buffer =>
  codec.encode({ ...facts, before: null, after: codec.values.encode(record) });

describe.each<[string, RecordSchema | undefined]>([
  ['wine-club-members', undefined],
  ['orders', orderSchema],
])('%s grow, and a real schema registry', (resource, start) => {
  const options = { resource, keyFields: ['id'] };
  const subject = () => `test.${randomUUID()}-value`;
  const rebuilt = (record: JsonObject | null) =>
    canonicalJson(start && record ? inOneForm(record, start) : record);

  it('takes every version; each goes on from what it gives back', async () => {
    const name = subject();
    const ids = new Set<number>();
    let schema = start;
    for (const [index, page] of PAGES.entries()) {
      const grown = growSchema(schema, page, options);
      expect(grown).not.toBe(schema);
      ids.add(await registry.register(name, envelopeSchema(grown, resource)));
      const latest = await registry.latest(name);

      expect(latest?.version).toBe(index + 1);
      schema = valueSchemaOf(latest!.schema);
      expect(schema).toEqual(grown);
      expect(growSchema(schema, [...PAGES.slice(0, index + 1).flat(), ODD], options)).toBe(schema);
    }
    expect(ids.size).toBe(PAGES.length);
  });

  it('has every version read every other', async () => {
    const name = subject();
    const codecs: EnvelopeCodec[] = [];
    let schema = start;
    for (const page of PAGES) {
      schema = growSchema(schema, page, options);
      const id = await registry.register(name, envelopeSchema(schema, resource));
      codecs.push(envelopeCodec(await registry.schemaById(id)));
    }
    const records = [...PAGES.flat(), ODD];

    for (const writer of codecs) {
      for (const reader of codecs) {
        const read = byAvro(reader, writer);
        for (const record of records) {
          const bytes = eventOf(writer, record);
          expect(canonicalJson(writer.decode(bytes).after)).toBe(canonicalJson(record));
          const { after } = read(bytes);
          const isOlder = codecs.indexOf(reader) < codecs.indexOf(writer);
          const json = canonicalJson(reader.values.toJson(after));
          if (!isOlder) expect(json).toBe(canonicalJson(record));
          else expect(reader.values.toJson(after).id).toEqual(record.id);
        }
      }
    }
  });

  it('takes whatever grows from pages of any kind', async () => {
    const chains = fc.sample(steps(start, 5), { seed: 21, numRuns: 3 });
    for (const chain of chains) {
      const name = subject();
      for (const { page, schema } of chain) {
        const id = await registry.register(name, envelopeSchema(schema, resource));
        const codec = envelopeCodec(await registry.schemaById(id));
        for (const record of page) {
          expect(canonicalJson(codec.decode(eventOf(codec, record)).after)).toBe(rebuilt(record));
        }
      }
      const schemas = chain.map(({ schema }) => JSON.stringify(schema));
      expect((await registry.latest(name))?.version).toBe(new Set(schemas).size);
    }
  });
});

/** What a program with one version of the schema makes of events of another, by the rules of Avro. */
function byAvro(own: EnvelopeCodec, writer: EnvelopeCodec): (bytes: Buffer) => ChangeEvent<object> {
  const [to, from] = [own, writer].map(({ schema }) => avro.Type.forSchema(schema as avro.Schema));
  const resolver = to!.createResolver(from!);
  return (bytes) => to!.fromBuffer(bytes, resolver) as ChangeEvent<object>;
}

/** The schema as it was registered before `source` had `db` and `table`, and while `nulls` had a default. */
function asRegisteredBefore(schema: RecordSchema): RecordSchema {
  const text = JSON.stringify(schema, (_, part: unknown) => {
    if (typeof part !== 'object' || part === null || Array.isArray(part)) return part;
    const { name, fields } = part as Partial<RecordSchema>;
    if (name === 'nulls') return { ...part, default: [] };
    if (name !== 'Source') return part;
    return {
      ...part,
      name: 'cellarstream.Source',
      namespace: undefined,
      fields: fields!.slice(0, -2),
    };
  });
  return JSON.parse(text) as RecordSchema;
}

it('is registered over a schema without db and table, and each reads the other', async () => {
  const subject = `test.${randomUUID()}-value`;
  const after = envelopeSchema(orderSchema, 'orders');
  const before = asRegisteredBefore(after);
  expect(before).not.toEqual(after);
  const ids = [
    await registry.register(subject, before),
    await registry.register(subject, after),
  ] as const;
  const [older, newer] = await Promise.all(
    ids.map(async (id) => avro.Type.forSchema((await registry.schemaById(id)) as avro.Schema)),
  );
  const event = eventOf(envelopeCodec(after), { order_number: 1, note: null });
  const old = older!.fromBuffer(event, older!.createResolver(newer!)) as ChangeEvent;
  expect(old.source).not.toHaveProperty('db');
  const bytes = older!.toBuffer(old);
  expect(newer!.fromBuffer(bytes, newer!.createResolver(older!))).toMatchObject({
    source: { db: '', table: '' },
  });
  expect(envelopeCodec(before).decode(bytes).source).toMatchObject({ db: '', table: '' });
});
