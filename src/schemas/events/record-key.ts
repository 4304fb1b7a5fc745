// Keys of records, as text and in Avro.

import avro from 'avsc';
import { avroName } from '../avro/avro-name.ts';
import { AvroOutput } from '../avro/avro-output.ts';
import type { RecordSchema } from '../avro/avro-schema.ts';
import { isFramed, unframe, writeHeader } from '../registry/wire.ts';

/** How the keys of Kafka's records are written: UTF-8 text, or an Avro record in the Confluent wire format. */
export type KeyFormat = 'text' | 'avro';

/**
 * The text of a key that is made of these parts: the only part as it is; several with `|` between, and `\` before each `|` or `\`
 * of their own.
 */
export function joinKey(parts: readonly string[]): string {
  if (parts.length === 1) return parts[0]!;
  return parts.map((part) => part.replace(/[\\|]/g, '\\$&')).join('|');
}

/** The `count` parts of a key that {@link joinKey} made. */
function splitKey(text: string, count: number): readonly string[] {
  if (count === 1) return [text];
  const parts = text.match(/(?:^|\|)(?:[^\\|]|\\.)*/gs) ?? [];
  return parts.map((part, nth) => (nth === 0 ? part : part.slice(1)).replace(/\\(.)/gs, '$1'));
}

/**
 * The schema of a list's keys in Avro: a string for each key field, under its name. They are strings whatever the fields hold, as the
 * type of a key cannot change later.
 */
export function recordKeySchema(resource: string, keyFields: readonly string[]): RecordSchema {
  const names = new Set<string>();
  return {
    type: 'record',
    name: 'Key',
    namespace: `cellarstream.${resource.replaceAll('-', '_')}`,
    doc: `The key of a record of ${resource}.`,
    fields: keyFields.map((field) => {
      const name = avroName(field, (taken) => names.has(taken));
      names.add(name);
      return { name, type: 'string', doc: `The text of ${field}.` };
    }),
  };
}

/**
 * A key in Avro.
 *
 * @param schemaId Id of the {@link recordKeySchema}.
 * @param text The key as text.
 * @param count Number of its key fields.
 */
export function avroKey(schemaId: number, text: string, count: number): Buffer {
  const out = new AvroOutput();
  writeHeader(out, schemaId);
  for (const part of splitKey(text, count)) out.string(part);
  return out.take();
}

/**
 * The text of a key that was read from Kafka, whichever {@link KeyFormat} it has. All fields of a key in Avro are strings, so that it can be read
 * without its schema.
 */
export function keyText(key: Buffer): string {
  return (isFramed(key) && stringsIn(unframe(key).payload)) || key.toString();
}

const STRING = avro.Type.forSchema('string');

/** The key of Avro strings that fill these bytes; undefined where the bytes are not whole strings, or none. */
function stringsIn(payload: Buffer): string | undefined {
  const parts: string[] = [];
  for (let at = 0; at < payload.length;) {
    const { value, offset } = STRING.decode(payload, at) as { value?: string; offset: number };
    if (value === undefined || offset <= at) return undefined;
    parts.push(value);
    at = offset;
  }
  return parts.length === 0 ? undefined : joinKey(parts);
}
