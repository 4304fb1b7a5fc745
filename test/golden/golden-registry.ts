import type { RecordSchema } from '../../src/schemas/avro/avro-schema.ts';
import type { Registry } from '../../src/schemas/registry/registry.ts';

/** A schema registry in memory that accepts every schema. */
export class GoldenRegistry {
  readonly #texts: string[] = [];
  /** Subject and id of each registration, in order. */
  readonly versions: { readonly subject: string; readonly id: number }[] = [];

  /** The text of a registered schema. */
  text(id: number): string {
    const text = this.#texts[id - 1];
    if (text === undefined) throw new Error(`there is no schema ${id}`);
    return text;
  }

  schema(id: number): RecordSchema {
    return JSON.parse(this.text(id)) as RecordSchema;
  }

  /** The registry as one process sees it; after `isAlive` has become false it does not answer. */
  client(isAlive: () => boolean): Registry {
    const whileAlive = <T>(value: () => T): Promise<T> =>
      isAlive() ? Promise.resolve().then(value) : new Promise(() => undefined);
    return {
      register: (subject, schema) => whileAlive(() => this.#register(subject, schema)),
      latest: (subject) =>
        whileAlive(() => {
          const versions = this.versions.filter((each) => each.subject === subject);
          const newest = versions.at(-1);
          if (!newest) return undefined;
          const { id } = newest;
          return { id, version: versions.length, schema: this.schema(id) };
        }),
      schemaById: (id) => whileAlive(() => this.schema(id)),
      compatible: () => Promise.resolve(true),
      inspect: () => Promise.reject(new Error('the service does not inspect subjects')),
      close: () => Promise.resolve(),
    };
  }

  #register(subject: string, schema: RecordSchema): number {
    const text = JSON.stringify(schema);
    const id = this.#texts.includes(text) ? this.#texts.indexOf(text) + 1 : this.#texts.push(text);
    const isKnown = this.versions.some((each) => each.subject === subject && each.id === id);
    if (!isKnown) this.versions.push({ subject, id });
    return id;
  }
}
