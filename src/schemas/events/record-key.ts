import { avroName } from '../avro/avro-name.ts';
import { AvroOutput } from '../avro/avro-output.ts';
import type { RecordSchema } from '../avro/avro-schema.ts';
import { writeHeader } from '../registry/wire.ts';

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
  return (key[0] === WIRE_MAGIC && avroKeyText(key)) || key.toString();
}

const WIRE_MAGIC = 0;
const HEADER_BYTES = 5;

/** Undefined where the bytes behind the header are not whole strings. */
function avroKeyText(key: Buffer): string | undefined {
  const parts: string[] = [];
  let at = HEADER_BYTES;
  while (at < key.length) {
    let zigzag = 0;
    let shift = 0;
    let byte;
    do {
      byte = key[at++] ?? 0;
      zigzag += (byte & 0x7f) * 2 ** shift;
      shift += 7;
    } while (byte & 0x80);
    const end = at + zigzag / 2;
    if (zigzag % 2 !== 0 || end > key.length) return undefined;
    parts.push(key.toString('utf8', at, end));
    at = end;
  }
  return parts.length === 0 ? undefined : joinKey(parts);
}
