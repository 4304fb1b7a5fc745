import { avroName, isAvroName, recordName } from './avro-name.ts';
import type { AvroType, FieldSchema, RecordSchema } from './avro-schema.ts';
import type { Shape, TypedShape } from './shape.ts';

/** Where fields are added, in the schema and in the record there. */
export interface FieldPlace {
  /** The names in Avro of the fields that lead to the record. */
  readonly path: readonly string[];
  /** The fields that it has. */
  readonly fields: readonly FieldSchema[];
}

/** Names in the schema that no other record may have, as {@link distinctName} has them. */
export type RecordNames = Set<string>;

/** Names are distinct whatever their namespace or case: in Java a class has a file of its name. */
export function distinctName({ name }: Pick<RecordSchema, 'name'>): string {
  return name.slice(name.lastIndexOf('.') + 1).toLowerCase();
}

/**
 * Nullable fields of these shapes, sorted by their names in JSON, under names that no field of the
 * place has. The names of the records in them are added to `recordNames`.
 */
export function fieldsOf(
  shapes: ReadonlyMap<string, Shape>,
  place: FieldPlace,
  recordNames: RecordNames,
): FieldSchema[] {
  const names = fieldNames(shapes.keys(), place);
  return [...names.keys()].sort().map((key): FieldSchema => {
    const name = names.get(key)!;
    return {
      name,
      ...fieldType(shapes.get(key)!, [...place.path, name], recordNames),
      default: null,
      doc: 'Inferred from what the API sent.',
      ...(name === key ? {} : { json: key }),
    };
  });
}

/** Names in Avro by those in JSON. What is a name already gets it, whatever else is spelled so. */
function fieldNames(keys: Iterable<string>, { path, fields }: FieldPlace): Map<string, string> {
  const taken = new Set(fields.map(({ name }) => name));
  if (path.length === 0) taken.add('nulls').add('unmapped'); // ours, at the end of the record itself
  const isTaken = (name: string) => taken.has(name) || isInherited(name);
  const names = new Map<string, string>();
  const sorted = [...keys].sort();
  for (const key of [...sorted.filter(isAvroName), ...sorted.filter((key) => !isAvroName(key))]) {
    const name = avroName(key, isTaken);
    taken.add(name);
    names.set(key, name);
  }
  return names;
}

/** avsc looks fields up by name in plain objects: of `toString` it finds what every object has. */
export function isInherited(name: string): boolean {
  return name in Object.prototype;
}

function fieldType(
  shape: Shape,
  path: readonly string[],
  names: RecordNames,
): Pick<FieldSchema, 'type' | 'contentMediaType'> {
  if (shape.kind !== 'text') return { type: ['null', typeOf(shape, path, names)] };
  return { type: ['null', 'string'], contentMediaType: 'application/json' };
}

function typeOf(shape: TypedShape, path: readonly string[], names: RecordNames): AvroType {
  if (shape.kind === 'plain') return shape.type;
  if (shape.kind === 'array') return { type: 'array', items: typeOf(shape.items, path, names) };
  const name = recordName(path, (name) => names.has(distinctName({ name })));
  names.add(distinctName({ name }));
  return {
    type: 'record',
    name,
    doc: 'Inferred from what the API sent.',
    fields: fieldsOf(shape.members, { path, fields: [] }, names),
  };
}
