import { avroName, distinctName, recordName, takenNames, type FieldParent } from './avro-name.ts';
import { isUnion, jsonName, withRecords } from './avro-schema.ts';
import type { AvroType, FieldSchema, RecordSchema } from './avro-schema.ts';

/**
 * Returns `base` with each field that `described` has and `base` lacks, at any depth. Fields are matched by their names in JSON. Existing
 * fields keep their types, and new fields default to null, so `base` and the returned schema can each read data written with the other.
 *
 * @param base A schema of record images from the registry.
 * @param described A schema of images of the same resource.
 * @returns `base` itself if it lacks no field.
 */
export function addFields(base: RecordSchema, described: RecordSchema): RecordSchema {
  const own = base.fields.slice(0, -2);
  const recordNames = new Set(recordsIn(base).map(({ name }) => distinctName(name)));
  const fields = filledUp({ path: [], fields: own }, described.fields.slice(0, -2), recordNames);
  return fields === own ? base : { ...base, fields: [...fields, ...base.fields.slice(-2)] };
}

/**
 * Returns the fields of a record type, completed with those that only `described` has, also within nested record types. Returns
 * `place.fields` itself if no field is lacking.
 */
function filledUp(
  place: FieldParent,
  described: readonly FieldSchema[],
  recordNames: Set<string>,
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

/**
 * If both types are records, or arrays of records nested equally deep, returns `type` with the fields added that only `described` has.
 * Otherwise, or if there are no such fields, returns `type` itself.
 */
function grownType(
  type: AvroType,
  described: AvroType,
  path: readonly string[],
  recordNames: Set<string>,
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

/**
 * Returns the fields of `lacking` in the form in which they are added to a record type: with the default null, and another Avro name if a
 * field's name is taken.
 */
function addedFields(
  lacking: readonly FieldSchema[],
  place: FieldParent,
  recordNames: Set<string>,
): FieldSchema[] {
  const taken = takenNames(place);
  const described = new Set(lacking.map(({ name }) => name));
  return lacking.map((field): FieldSchema => {
    const key = jsonName(field);
    const name = taken.has(field.name)
      ? avroName(key, (name) => taken.has(name) || described.has(name))
      : field.name;
    taken.add(name);
    const type = addedType(field.type, [...place.path, name], recordNames);
    return { ...field, name, type, default: null, ...(name === key ? {} : { json: key }) };
  });
}

/** Returns the type of a new field. Record types in it are renamed if the schema already has a record type of the same name. */
function addedType(type: AvroType, path: readonly string[], recordNames: Set<string>): AvroType {
  return withRecords(type, (record) => {
    const name = recordName(path, recordNames, record.name);
    const fields = addedFields(record.fields, { path, fields: [] }, recordNames);
    return { ...record, name, fields };
  });
}

function recordsIn(type: AvroType): RecordSchema[] {
  if (typeof type === 'string') return [];
  if (isUnion(type)) return type.flatMap(recordsIn);
  if ('items' in type) return recordsIn(type.items);
  return 'fields' in type ? [type, ...type.fields.flatMap((field) => recordsIn(field.type))] : [];
}
