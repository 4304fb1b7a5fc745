import { CellarstreamError } from '../../src/core/errors.ts';
import type { RecordSchema } from '../../src/schemas/avro/avro-schema.ts';
import { envelopeCodec } from '../../src/schemas/events/envelope.ts';
import type { EnvelopeCodec } from '../../src/schemas/events/envelope.ts';
import type { Registry } from '../../src/schemas/registry/registry.ts';

/** Compiling is most of the work of a start, and the runs' schemas are few: each is compiled once. */
const compiled = new Map<string, EnvelopeCodec>();

/** {@link envelopeCodec}, with what it has made before. */
export function compile(schema: RecordSchema): EnvelopeCodec {
  const text = JSON.stringify(schema);
  const codec = compiled.get(text) ?? envelopeCodec(schema);
  compiled.set(text, codec);
  return codec;
}

/** A schema registry that remembers, and takes whatever it is given. */
export class SimRegistry {
  readonly #schemas: { readonly text: string; readonly codec: EnvelopeCodec }[] = [];
  readonly #subjects = new Map<string, number[]>();

  schema(id: number): RecordSchema {
    return this.codec(id).schema;
  }

  codec(id: number): EnvelopeCodec {
    const known = this.#schemas[id - 1];
    if (!known) throw new CellarstreamError('REGISTRY_REFUSED', `no schema ${id}`);
    return known.codec;
  }

  versions(subject: string): readonly number[] {
    return this.#subjects.get(subject) ?? [];
  }

  register(subject: string, schema: RecordSchema): number {
    const text = JSON.stringify(schema);
    const versions = this.#subjects.get(subject) ?? [];
    this.#subjects.set(subject, versions);
    let id = this.#schemas.findIndex((known) => known.text === text) + 1;
    if (id === 0) id = this.#schemas.push({ text, codec: compile(schema) });
    if (!versions.includes(id)) versions.push(id);
    return id;
  }
}

/** The registry as one process sees it. */
export function registryOf(registry: SimRegistry, step: (what: string) => Promise<void>): Registry {
  return {
    register: async (subject, schema) => {
      await step('register');
      const id = registry.register(subject, schema);
      await step('registered');
      return id;
    },
    latest: async (subject) => {
      await step('latest');
      const versions = registry.versions(subject);
      const id = versions.at(-1);
      if (id === undefined) return undefined;
      return { id, version: versions.length, schema: registry.schema(id) };
    },
    schemaById: async (id) => {
      await step('schema');
      return registry.schema(id);
    },
    compatible: () => Promise.resolve(true),
    inspect: () => Promise.reject(new Error('only check inspects subjects')),
    close: () => Promise.resolve(),
  };
}
