import { describe, expect, it } from 'vitest';
import { CellarstreamError } from '../../../src/core/errors.ts';
import { SchemaEvolution } from '../../../src/pipeline/codec/schema-evolution.ts';
import type { SchemaEvolutionOptions } from '../../../src/pipeline/codec/schema-evolution.ts';
import type { FieldSchema, RecordSchema } from '../../../src/schemas/avro/avro-schema.ts';
import { envelopeSchema, valueSchemaOf } from '../../../src/schemas/events/envelope.ts';
import { growSchema } from '../../../src/schemas/avro/infer.ts';
import { stringifyJson } from '../../../src/schemas/json/json.ts';
import type { JsonObject, JsonValue } from '../../../src/schemas/json/json.ts';
import type { Registry } from '../../../src/schemas/registry/registry.ts';
import { frame } from '../../../src/schemas/registry/wire.ts';

const SUBJECT = 'wine.customers-value';
const resource = 'customers';
const LIST = { name: resource, namespace: 'cellarstream.customers', types: undefined };
const keyFields = ['id'];
const ada: JsonObject = { id: 1, name: 'Ada' };
const adaWithSize: JsonObject = { ...ada, size: 2.5 };

const refused = () => new CellarstreamError('REGISTRY_REFUSED', 'not compatible');
const inferred = (...records: JsonObject[]) =>
  growSchema(undefined, records, { resource, keyFields });
const fieldNames = (schema: RecordSchema) =>
  valueSchemaOf(schema)
    .fields.map(({ name }) => name)
    .filter((name) => name !== 'nulls' && name !== 'unmapped');

/** A registry in memory: ids from 1 on; refuses what takes a field away or changes its type. */
class MemoryRegistry implements Registry {
  readonly versions: RecordSchema[] = [];
  requests = 0;
  failure: Error | undefined;

  register(_subject: string, schema: RecordSchema): Promise<number> {
    this.requests += 1;
    if (this.failure) return Promise.reject(this.failure);
    const text = JSON.stringify(schema);
    const known = this.versions.findIndex((version) => JSON.stringify(version) === text);
    if (known >= 0) return Promise.resolve(known + 1);
    if (!this.#takes(schema)) return Promise.reject(refused());
    return Promise.resolve(this.versions.push(JSON.parse(text) as RecordSchema));
  }

  latest() {
    const schema = this.versions.at(-1);
    const { length } = this.versions;
    return Promise.resolve(schema && { id: length, version: length, schema });
  }

  schemaById(id: number): Promise<RecordSchema> {
    return Promise.resolve(this.versions[id - 1]!);
  }

  compatible(_subject: string, schema: RecordSchema): Promise<boolean> {
    return Promise.resolve(this.#takes(schema));
  }

  inspect(): Promise<never> {
    return Promise.reject(new Error('only check inspects subjects'));
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  #takes(schema: RecordSchema): boolean {
    const fields = new Map(
      valueSchemaOf(schema).fields.map(({ name, type }) => [name, JSON.stringify(type)]),
    );
    return this.versions.every((version) =>
      valueSchemaOf(version).fields.every(
        ({ name, type }) => fields.get(name) === JSON.stringify(type),
      ),
    );
  }
}

const open = (
  registry: Registry,
  options: Partial<SchemaEvolutionOptions> = {},
): Promise<SchemaEvolution> =>
  SchemaEvolution.open({ registry, subject: SUBJECT, list: LIST, ...options });

describe('a book that begins with nothing', () => {
  it('has no schema until a first record has been seen, and registers none', async () => {
    const registry = new MemoryRegistry();
    const book = await open(registry);
    await book.encode([], keyFields);
    expect(book.current).toBeUndefined();
    expect(registry.versions).toEqual([]);
    expect(() => book.values.encode(ada)).toThrow(
      'the schema of customers was used before its first record was read',
    );
  });

  it('has a field for whatever was held, registered before it is used', async () => {
    const registry = new MemoryRegistry();
    const book = await open(registry);
    await book.encode([ada], keyFields);
    expect(book.current?.schemaId).toBe(1);
    expect(fieldNames(registry.versions[0]!)).toEqual(['id', 'name']);
    expect(book.values.decode(book.values.encode(ada))).toEqual(ada);
  });

  it('grows by what has no field yet, and by nothing else', async () => {
    const registry = new MemoryRegistry();
    const versions: number[] = [];
    const book = await open(registry, { onVersion: (id) => versions.push(id) });
    await book.encode([ada], keyFields);
    await book.encode([{ id: 2, name: null }, { id: 3 }], keyFields);
    expect([versions, registry.requests]).toEqual([[1], 1]);
    await book.encode([ada, adaWithSize], keyFields);
    expect(versions).toEqual([1, 2]);
    expect(fieldNames(registry.versions[1]!)).toEqual(['id', 'name', 'size']);
    expect(book.current?.schemaId).toBe(2);
  });
});

describe('a book that is opened again', () => {
  it('goes on from what was inferred before', async () => {
    const registry = new MemoryRegistry();
    await (await open(registry)).encode([adaWithSize], keyFields);
    const book = await open(registry);
    expect(book.current?.schemaId).toBe(1);
    expect(fieldNames(book.current!.codec.schema)).toEqual(['id', 'name', 'size']);
    await book.encode([ada], keyFields);
    expect(registry.versions).toHaveLength(1);
  });

  it('adds the described fields that an older version has not', async () => {
    const registry = new MemoryRegistry();
    const described = inferred(ada);
    const first = await open(registry, { list: { ...LIST, types: described } });
    expect(first.current?.schemaId).toBe(1); // before any record
    await first.encode([adaWithSize], keyFields);

    const more = inferred({ ...ada, country: 'NZ' });
    const book = await open(registry, { list: { ...LIST, types: more } });
    expect(fieldNames(book.current!.codec.schema).sort()).toEqual([
      'country',
      'id',
      'name',
      'size',
    ]);
    expect(registry.versions).toHaveLength(3);
  });

  it('takes no schema that is of another make for its own', async () => {
    const registry = new MemoryRegistry();
    registry.versions.push(inferred(ada)); // values without an envelope
    await expect(open(registry)).rejects.toMatchObject({
      code: 'REGISTRY_REFUSED',
      message: expect.stringMatching(
        new RegExp(`^version 1 of ${SUBJECT} .* was not registered by Cellarstream`),
      ) as string,
    });
  });

  it.each<[string, (fields: readonly FieldSchema[]) => readonly FieldSchema[]]>([
    [
      'behind the last',
      (fields) => [...fields, { name: 'by_hand', type: ['null', 'string'], default: null }],
    ],
    [
      'of a type that no image has',
      (fields) => [{ name: 'by_hand', type: 'string', default: '' }, ...fields],
    ],
  ])('takes no schema with a field %s for its own', async (_, change) => {
    const registry = new MemoryRegistry();
    const values = inferred(ada);
    registry.versions.push(envelopeSchema({ ...values, fields: change(values.fields) }, resource));
    await expect(open(registry)).rejects.toMatchObject({ code: 'REGISTRY_REFUSED' });
    const other = new MemoryRegistry();
    const book = await open(other);
    other.versions.push(registry.versions[0]!);
    await expect(book.load(1)).rejects.toMatchObject({ code: 'REGISTRY_REFUSED' });
  });
});

describe('another process that has grown the schema meanwhile', () => {
  it('is followed: what its field can not hold stays beside it', async () => {
    const registry = new MemoryRegistry();
    const book = await open(registry);
    await book.encode([ada], keyFields);
    const theirs = growSchema(inferred(ada), [{ ...ada, size: 'large', colour: 'red' }], {
      resource,
      keyFields,
    });
    await registry.register(SUBJECT, envelopeSchema(theirs, resource));

    await book.encode([{ ...adaWithSize, age: 36 }], keyFields); // size as a number: refused
    expect(fieldNames(book.current!.codec.schema)).toEqual(['id', 'name', 'colour', 'size', 'age']);
    expect(book.values.decode(book.values.encode(adaWithSize))).toEqual(adaWithSize);
    expect(book.current?.schemaId).toBe(3);
  });

  it('is no reason to try for ever: what is refused without it fails', async () => {
    const registry = new MemoryRegistry();
    const book = await open(registry);
    await book.encode([ada], keyFields);
    registry.failure = refused();
    await expect(book.encode([adaWithSize], keyFields)).rejects.toBe(registry.failure);
    expect(registry.requests).toBe(2); // nothing new is there to try it with
    registry.failure = new CellarstreamError('REGISTRY_UNREACHABLE', 'gone');
    await expect(book.encode([adaWithSize], keyFields)).rejects.toBe(registry.failure);
    registry.failure = undefined;
    await book.encode([adaWithSize], keyFields);
    expect(book.current?.schemaId).toBe(2);
  });
});

describe('images', () => {
  it('of an older schema are the same bytes as if they were written now', async () => {
    const registry = new MemoryRegistry();
    const book = await open(registry);
    await book.encode([ada], keyFields);
    const older = { schemaId: 1, bytes: book.values.encode(ada) };
    expect(book.inCurrent(older)).toBe(older.bytes);

    await book.encode([adaWithSize], keyFields);
    const now = book.values.encode(ada);
    expect(now.equals(older.bytes)).toBe(false);
    expect(book.inCurrent(older)).toEqual(now);

    const next = await open(registry);
    expect(() => next.inCurrent(older)).toThrow(
      'schema 1 of the registry, with which a stored record of customers was encoded, was not loaded',
    );
    await next.load(1);
    expect(next.inCurrent(older)).toEqual(now);
  });

  it('are found in events of any schema, with their sequence', async () => {
    const registry = new MemoryRegistry();
    const book = await open(registry);
    await book.encode([ada], keyFields);
    const { codec } = book.current!;
    const bytes = book.values.encode(ada);
    const source = {
      connector: 'cellarstream',
      version: '1',
      name: 'default',
      resource,
      ts_ms: null,
      snapshot: 'false',
      db: 'wine',
      table: 'orders',
    } as const;
    const facts = { ts_ms: 5, changed: [] };
    const created = codec.encode({
      ...facts,
      op: 'c',
      before: null,
      after: bytes,
      source: { ...source, sequence: 41 },
    });
    const deleted = codec.encode({
      ...facts,
      op: 'd',
      before: bytes,
      after: null,
      source: { ...source, sequence: 42 },
    });

    await book.encode([adaWithSize], keyFields);
    const next = await open(registry); // has not seen schema 1
    const found = await next.imageIn(frame(1, created));
    expect(found).toEqual({ sequence: 41, image: { schemaId: 1, bytes } });
    expect(next.inCurrent(found.image!)).toEqual(next.values.encode(ada));
    expect(await next.imageIn(frame(1, deleted))).toEqual({ sequence: 42, image: null });
  });
});

describe('a book that encodes', () => {
  const many = Array.from({ length: 600 }, (_, id) => ({ id, name: `Ada ${id}` }));

  it('pauses between some records and the next, and not for a few', async () => {
    let pauses = 0;
    const pause = () => Promise.resolve((pauses += 1));
    const book = await open(new MemoryRegistry(), { pause });
    await book.encode([ada], keyFields);
    expect(pauses).toBe(0);
    const images = await book.encode(many, keyFields);
    expect(pauses).toBe(2);
    expect(images.map((image) => book.values.decode(image))).toEqual(many);
  });

  it('has all images of one schema, though the last record makes it grow', async () => {
    const registry = new MemoryRegistry();
    const book = await open(registry);
    await book.encode([ada], keyFields);
    const images = await book.encode([...many, adaWithSize], keyFields);
    expect(registry.versions).toHaveLength(2);
    expect(images).toEqual([...many, adaWithSize].map((record) => book.values.encode(record)));
  });

  it('gives the image of a record at once, unless the schema has to grow for it', async () => {
    const book = await open(new MemoryRegistry());
    const now = (value: JsonValue) =>
      book.encodeNow(Buffer.from(` ${stringifyJson(value)},`), 1, {
        values: keyFields,
        instants: ['at'],
      });
    expect(now(ada)).toBeUndefined();
    const [image] = await book.encode([ada], keyFields);
    const end = 1 + Buffer.byteLength(stringifyJson(ada));
    expect(now(ada)).toEqual({
      ...{ image, codec: book.values, end, fields: { id: ada.id } },
      instants: [null],
    });
    expect(now(adaWithSize)).toBeUndefined();
    expect(now({ id: 2 })).toBeDefined(); // what is not there needs no field
    expect(now({ id: 2, size: null, sizes: [], sized: {} })).toBeDefined(); // nor what is empty
    expect(now([ada])).toBeUndefined();
  });
});
