import { randomUUID } from 'node:crypto';
import { afterAll, describe, expect, inject, it } from 'vitest';
import { CellarstreamError } from '../../src/core/errors.ts';
import type { AvroType, RecordSchema } from '../../src/schemas/avro/avro-schema.ts';
import { deadLetterCodec } from '../../src/schemas/events/own-records.ts';
import { orderStatusChangeCodec } from '../../src/description/wine/order-status.ts';
import { envelopeCodec, envelopeSchema } from '../../src/schemas/events/envelope.ts';
import { orderSchema } from '../../src/description/wine/order.ts';
import { createRegistry } from '../../src/schemas/registry/registry.ts';

const url = inject('registryUrl');
const registry = createRegistry({ url });
afterAll(() => registry.close());

/** A subject of one test. */
const subject = () => `test.${randomUUID()}-value`;

/** The orders' envelope, with a field more in the image. */
function envelope(...extra: { readonly name: string; readonly type: AvroType }[]): RecordSchema {
  const added = extra.map((field) => ({ ...field, default: null, json: `the ${field.name}` }));
  const fields = [...orderSchema.fields.slice(0, -2), ...added, ...orderSchema.fields.slice(-2)];
  return envelopeSchema({ ...orderSchema, fields }, 'orders');
}

describe('a real schema registry', () => {
  it.each([
    ['the envelope', envelope()],
    ['the status changes', orderStatusChangeCodec.schema],
    ['the dead letters', deadLetterCodec.schema],
  ])('takes %s, and gives the schema back as it was', async (_, schema) => {
    const name = subject();
    expect(await registry.latest(name)).toBeUndefined();
    expect(await registry.compatible(name, schema)).toBe(true);

    const id = await registry.register(name, schema);

    expect(await registry.schemaById(id)).toEqual(schema);
    expect(await registry.latest(name)).toEqual({ id, version: 1, schema });
  });

  it('keeps what a codec needs', async () => {
    const id = await registry.register(
      subject(),
      envelope({ name: 'gift', type: ['null', 'boolean'] }),
    );
    const { values } = envelopeCodec(await registry.schemaById(id));

    const record = { 'the gift': true, order_edit: [{ summary: { b: 1, a: 2 } }] };
    expect(values.decode(values.encode(record))).toEqual(record);
  });

  it('gives a schema the same id again, also to another client', async () => {
    const name = subject();
    const [first, second] = await Promise.all([
      registry.register(name, envelope()),
      registry.register(name, envelope()),
    ]);
    const another = createRegistry({ url });
    const third = await another.register(name, envelope());
    await another.close();

    expect([second, third]).toEqual([first, first]);
    expect((await registry.latest(name))?.version).toBe(1);
  });

  it('takes a schema from several clients that make the subject at the same moment', async () => {
    const clients = Array.from({ length: 4 }, () => createRegistry({ url }));
    for (let round = 0; round < 10; round++) {
      const name = subject();
      const ids = await Promise.all(clients.map((client) => client.register(name, envelope())));
      expect(new Set(ids).size).toBe(1);
      expect((await registry.latest(name))?.version).toBe(1);
    }
    await Promise.all(clients.map((client) => client.close()));
  });

  it('has the subject FULL_TRANSITIVE', async () => {
    const name = subject();
    await registry.register(name, envelope());
    const answer = await fetch(`${url.replace(/\/$/, '')}/config/${name}`);

    expect(await answer.json()).toMatchObject({ compatibilityLevel: 'FULL_TRANSITIVE' });
  });

  it('takes a nullable field more', async () => {
    const name = subject();
    const grown = envelope({ name: 'gift', type: ['null', 'string'] });
    await registry.register(name, envelope());

    expect(await registry.compatible(name, grown)).toBe(true);
    const id = await registry.register(name, grown);
    expect(await registry.latest(name)).toEqual({ id, version: 2, schema: grown });
  });

  it('refuses a field of another type than any version had, in one line', async () => {
    const name = subject();
    const conflicting = envelope({ name: 'gift', type: ['null', 'long'] });
    await registry.register(name, envelope({ name: 'gift', type: ['null', 'string'] }));
    await registry.register(name, envelope()); // the newest lacks the field: it is the older that decides

    expect(await registry.compatible(name, conflicting)).toBe(false);
    const error = await registry.register(name, conflicting).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(CellarstreamError);
    expect(error).toMatchObject({ code: 'REGISTRY_REFUSED', context: { status: 409 } });
    expect((error as Error).message).toMatch(new RegExp(`^${name}: .*[Ii]ncompatible.*$`));
    expect((error as Error).message).not.toContain('\n');
  });
});
