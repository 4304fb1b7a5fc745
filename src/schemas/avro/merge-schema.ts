// Adds the fields of a described schema to one that a registry has.

import { avroName, distinctName, isInherited, recordName } from './avro-name.ts';
import type { FieldPlace, RecordNames } from './avro-name.ts';
import { isUnion, jsonName } from './avro-schema.ts';
import type { AvroType, FieldSchema, RecordSchema } from './avro-schema.ts';

/**
 * The schema with a field more for each field of `described` that it lacks, at any depth: behind
 * those that it has, in the order of `described`; at the root, before `nulls` and `unmapped`. What
 * is there stays as it is, whatever its type, and what is added is null by default, so each of the
 * two schemas reads what the other has written.
 *
 * Fields are the same when their names in JSON are. One whose name in Avro is taken gets another,
 * as in `growSchema`; so does a record whose name another record has.
 *
 * @param base Of record images, as a registry gave it.
 * @param described Of images of the same resource.
 * @returns The very same schema when nothing is missing.
 */
export function addFields(base: RecordSchema, described: RecordSchema): RecordSchema {
  const own = base.fields.slice(0, -2);
  const recordNames = new Set(recordsIn(base).map(distinctName));
  const fields = filledUp({ path: [], fields: own }, described.fields.slice(0, -2), recordNames);
  return fields === own ? base : { ...base, fields: [...fields, ...base.fields.slice(-2)] };
}

/** The fields of the place and what they lack of those described; the very same if nothing. */
function filledUp(
  place: FieldPlace,
  described: readonly FieldSchema[],
  recordNames: RecordNames,
): readonly FieldSchema[] {
  const { path, fields } = place;
  const lacking = new Map(described.map((field) => [jsonName(field), field]));
  const grown = fields.map((field): FieldSchema => {
    const description = lacking.get(jsonName(field));
    if (!description) return field;
    lacking.delete(jsonName(field));
    const type = grownType(field.type, description.type, [...path, field.name], recordNames);
    return type === field.type ? field : { ...field, type };
  });
  if (lacking.size === 0 && grown.every((field, at) => field === fields[at])) return fields;
  return [...grown, ...addedFields([...lacking.values()], place, recordNames)];
}

/** Fills up the record in a type, if both types have one, in as many arrays. */
function grownType(
  type: AvroType,
  described: AvroType,
  path: readonly string[],
  recordNames: RecordNames,
): AvroType {
  if (typeof type === 'string' || typeof described === 'string') return type;
  if (isUnion(type)) {
    const [branch, other] = [type.at(-1)!, isUnion(described) ? described.at(-1)! : described];
    const grown = grownType(branch, other, path, recordNames);
    return grown === branch ? type : [...type.slice(0, -1), grown];
  }
  if ('items' in type && 'items' in described) {
    const items = grownType(type.items, described.items, path, recordNames);
    return items === type.items ? type : { ...type, items };
  }
  if ('fields' in type && 'fields' in described) {
    const fields = filledUp({ path, fields: type.fields }, described.fields, recordNames);
    return fields === type.fields ? type : { ...type, fields };
  }
  return type;
}

/** The fields, under names that no field of the place has. */
function addedFields(
  lacking: readonly FieldSchema[],
  { path, fields }: FieldPlace,
  recordNames: RecordNames,
): FieldSchema[] {
  const taken = new Set(fields.map(({ name }) => name));
  if (path.length === 0) taken.add('nulls').add('unmapped'); // at the end of the record itself
  const isTaken = (name: string) => taken.has(name) || isInherited(name);
  const described = new Set(lacking.map(({ name }) => name));
  return lacking.map((field): FieldSchema => {
    const key = jsonName(field);
    const name = isTaken(field.name)
      ? avroName(key, (name) => isTaken(name) || described.has(name))
      : field.name;
    taken.add(name);
    const type = addedType(field.type, [...path, name], recordNames);
    return { ...field, name, type, default: null, ...(name === key ? {} : { json: key }) };
  });
}

/** The type, its records under names that no other record has. */
function addedType(type: AvroType, path: readonly string[], recordNames: RecordNames): AvroType {
  if (typeof type === 'string') return type;
  if (isUnion(type)) return type.map((branch) => addedType(branch, path, recordNames));
  if ('items' in type) return { ...type, items: addedType(type.items, path, recordNames) };
  if (!('fields' in type)) return type;
  const isTaken = (name: string) => recordNames.has(distinctName({ name }));
  const name = isTaken(type.name) ? recordName(path, isTaken) : type.name;
  recordNames.add(distinctName({ name }));
  return { ...type, name, fields: addedFields(type.fields, { path, fields: [] }, recordNames) };
}

/** The record in a type, and those in its fields. */
function recordsIn(type: AvroType): RecordSchema[] {
  if (typeof type === 'string') return [];
  if (isUnion(type)) return type.flatMap(recordsIn);
  if ('items' in type) return recordsIn(type.items);
  return 'fields' in type ? [type, ...type.fields.flatMap((field) => recordsIn(field.type))] : [];
}
