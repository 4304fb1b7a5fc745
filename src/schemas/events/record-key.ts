import avro from 'avsc';
import { avroName, listNamespace } from '../avro/avro-name.ts';
import { AvroOutput } from '../avro/avro-output.ts';
import type { RecordSchema } from '../avro/avro-schema.ts';
import { isFramed, unframe, writeHeader } from '../registry/wire.ts';

/** Format of message keys: UTF-8 text, or an Avro record in the Confluent wire format. */
export type KeyFormat = 'text' | 'avro';

/**
 * Joins the parts of a key to the key's text. A single part is unchanged. Several parts are separated by `|`, with `\` before each `|` or
 * `\` within a part.
 */
export function joinKey(parts: readonly string[]): string {
  if (parts.length === 1) return parts[0]!;
  return parts.map((part) => part.replace(/[\\|]/g, '\\$&')).join('|');
}

/** Splits a key that {@link joinKey} made into its `count` parts. */
function splitKey(text: string, count: number): readonly string[] {
  if (count === 1) return [text];
  const parts = text.match(/(?:^|\|)(?:[^\\|]|\\.)*/gs) ?? [];
  return parts.map((part, nth) => (nth === 0 ? part : part.slice(1)).replace(/\\(.)/gs, '$1'));
}

/**
 * Returns the Avro schema of a list's keys: a string for each key field, whatever the field's type, because the type of a key cannot change
 * later.
 */
export function recordKeySchema(
  resource: string,
  keyFields: readonly string[],
  namespace = listNamespace(resource),
): RecordSchema {
  const names = new Set<string>();
  return {
    type: 'record',
    name: 'Key',
    namespace,
    doc: `The key of a record of ${resource}.`,
    fields: keyFields.map((field) => {
      const name = avroName(field, (isUsed) => names.has(isUsed));
      names.add(name);
      return { name, type: 'string', doc: `The text of ${field}.` };
    }),
  };
}

/**
 * Encodes a key as an Avro record in the Confluent wire format.
 *
 * @param schemaId Registry id of the {@link recordKeySchema}.
 * @param text The key as text, as {@link joinKey} made it.
 * @param count Number of fields of which the key consists.
 */
export function avroKey(schemaId: number, text: string, count: number): Buffer {
  const out = new AvroOutput();
  writeHeader(out, schemaId);
  for (const part of splitKey(text, count)) out.string(part);
  return out.take();
}

/**
 * Returns the text of a message key in either {@link KeyFormat}. A key in Avro is decoded without its schema, as all its fields are
 * strings.
 */
export function keyText(key: Buffer): string {
  return (isFramed(key) && stringsIn(unframe(key).payload)) || key.toString();
}

const STRING = avro.Type.forSchema('string');

/** Decodes one or more Avro strings, and joins them to the text of a key; undefined if the bytes are anything else. */
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
