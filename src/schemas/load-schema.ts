import { readFileSync } from 'node:fs';
import type { RecordSchema } from './avro-schema.ts';

/** A schema that lies beside the code, as `./order.avsc`. */
export function loadSchema(file: string): RecordSchema {
  return JSON.parse(readFileSync(new URL(file, import.meta.url), 'utf8')) as RecordSchema;
}
