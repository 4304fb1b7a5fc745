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
  readonly #schemas: { text: string; schema: RecordSchema; codec?: EnvelopeCodec }[] = [];
  /** Subject and schema id of each version, in the order of registration. */
  readonly registrations: { readonly subject: string; readonly id: number }[] = [];

  /** The text of a registered schema. */
  text(id: number): string {
    return this.#known(id).text;
  }

  schema(id: number): RecordSchema {
    return this.#known(id).schema;
  }

  /** The codec of a registered schema of events. */
  codec(id: number): EnvelopeCodec {
    const known = this.#known(id);
    return (known.codec ??= compile(known.schema));
  }

  /** Schema ids of a subject's versions. */
  versions(subject: string): readonly number[] {
    return this.registrations.filter((each) => each.subject === subject).map(({ id }) => id);
  }

  register(subject: string, schema: RecordSchema): number {
    const text = JSON.stringify(schema);
    let id = this.#schemas.findIndex((known) => known.text === text) + 1;
    if (id === 0) id = this.#schemas.push({ text, schema });
    if (!this.versions(subject).includes(id)) this.registrations.push({ subject, id });
    return id;
  }

  #known(id: number) {
    const known = this.#schemas[id - 1];
    if (!known) throw new CellarstreamError('REGISTRY_REFUSED', `no schema ${id}`);
    return known;
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
