import type { ListDescription } from '../description/description.ts';
import { fieldType, withoutNull } from '../schemas/avro/avro-schema.ts';
import type { AvroType } from '../schemas/avro/avro-schema.ts';

/**
 * Returns the type of a field according to the list's documented schema; for an array, the type of its elements. Undefined if the list has
 * no documented schema, or the schema lacks the field.
 */
export function describedType(
  { types }: Pick<ListDescription, 'types'>,
  path: readonly string[],
): AvroType | undefined {
  let type: AvroType | undefined = types;
  for (const name of path) {
    const field = fieldType(type, name);
    type = field && valueType(field);
  }
  return type;
}

function valueType(type: AvroType): AvroType {
  const value = withoutNull(type);
  return typeof value === 'object' && 'items' in value ? valueType(value.items) : value;
}
