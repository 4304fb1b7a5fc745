import type { Resource } from './resources.ts';
import { RULES } from './rules.ts';
import { isUnion, jsonName } from '../schemas/avro/avro-schema.ts';
import type { AvroType, RecordSchema } from '../schemas/avro/avro-schema.ts';

/**
 * Returns the type of a field according to the list's documented schema; for an array, the type of its elements. Undefined if the list has
 * no documented schema, or the schema lacks the field.
 */
export function describedType(resource: Resource, path: readonly string[]): AvroType | undefined {
  let type: AvroType | undefined = RULES[resource].described;
  for (const name of path) {
    const fields: RecordSchema['fields'] =
      typeof type === 'object' && 'fields' in type ? type.fields : [];
    const field = fields.find((each) => jsonName(each) === name);
    type = field && valueType(field.type);
  }
  return type;
}

function valueType(type: AvroType): AvroType | undefined {
  if (isUnion(type)) return valueType(type.find((each) => each !== 'null') ?? 'null');
  return typeof type === 'object' && 'items' in type ? valueType(type.items) : type;
}
