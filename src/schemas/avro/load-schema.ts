import { readFileSync } from 'node:fs';
import type { RecordSchema } from './avro-schema.ts';

/** A schema that lies beside the code that asks for it. */
export function loadSchema(file: URL): RecordSchema {
  return JSON.parse(readFileSync(file, 'utf8')) as RecordSchema;
}
