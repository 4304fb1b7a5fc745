import { isUnion, jsonName, withRecords } from './avro-schema.ts';
import type { AvroType, FieldSchema, RecordSchema } from './avro-schema.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../json/json.ts';
import { avroName, distinctName, isAvroName, listNamespace } from './avro-name.ts';
import { recordName, takenNames, type FieldParent } from './avro-name.ts';
import { fieldsWithin, keyShape, MAX_PART_FIELDS, noteValue, shapeOf } from './shape.ts';
import type { Shape, TypedShape } from './shape.ts';

/**
 * The list whose records are examined: its name, from which the namespace of a new schema is derived, and the JSON names of its key fields.
 */
interface GrowOptions {
  readonly resource: string;
  /** Avro namespace of a schema that is created. Default `cellarstream.<resource>`, with underscores in place of hyphens. */
  readonly namespace?: string | undefined;
  readonly keyFields: readonly string[];
}

/** Maximum number of fields in a schema, including nested ones. */
export const MAX_FIELDS = 500;

/**
 * Returns `schema` with new fields for those members of the records that have none, at any depth. New fields are nullable, and existing
 * fields are unchanged. So every version of the schema can read data written with any other.
 *
 * - {@link shapeOf} determines the type of a new field.
 * - A member gets no field if its values show no type, or if its key is longer than 200 UTF-16 code units.
 * - Fields are added up to a total of 500 in the schema and of 150 in a nested object. Key fields take precedence, then the most frequent
 *   members.
 *
 * The order of the records and of their keys doesn't matter.
 *
 * @param schema The schema to extend: the result of an earlier call, or one of this package or of a registry. Undefined to create one.
 * @returns `schema` itself if nothing is added.
 */
export function growSchema(
  schema: RecordSchema | undefined,
  records: readonly JsonObject[],
  { resource, namespace = listNamespace(resource), keyFields }: GrowOptions,
): RecordSchema {
  const base = schema ?? emptySchema(resource, namespace);
  const places: RecordNode[] = [];
  const root = recordNode({ ...base, fields: base.fields.slice(0, -2) }, ROOT, places);
  for (const record of records) visit(record, root, 0);
  if (places.every(({ newMembers }) => newMembers.size === 0)) return base;

  const recordNames = new Set(places.map(({ record }) => distinctName(record.name)));
  const { fields } = grow(root, MAX_FIELDS - fieldCount(root.record.fields), {
    recordNames,
    keyFields: new Set(keyFields),
  });
  if (fields === root.record.fields) return base;
  return { ...base, fields: [...fields, ...base.fields.slice(-2)] };
}

/** The fields `nulls` and `unmapped`, which are the last two in the schema of every image. */
const IMAGE_FIELDS: readonly FieldSchema[] = [
  {
    name: 'nulls',
    // No default, as Kafka Connect's JDBC sink can't set the default of an array column.
    type: { type: 'array', items: 'string' },
    doc: 'Where the API sent null, by JSON Pointer, sorted. Any other null field was absent.',
  },
  {
    name: 'unmapped',
    type: { type: 'map', values: 'string' },
    default: {},
    doc: "What the fields can't hold exactly, as JSON text, by JSON Pointer, sorted. It replaces what they say.",
  },
];

/**
 * Returns the schema with the current form of its last two fields, `nulls` and `unmapped`. In schemas that older versions of this package
 * registered, `nulls` has a default.
 */
export function withImageFields(schema: RecordSchema): RecordSchema {
  return { ...schema, fields: [...schema.fields.slice(0, -IMAGE_FIELDS.length), ...IMAGE_FIELDS] };
}

function emptySchema(resource: string, namespace: string): RecordSchema {
  return {
    type: 'record',
    name: 'Value',
    namespace,
    doc: `A record of ${resource} as the API showed it. Fields, nulls and unmapped together rebuild its JSON.`,
    fields: IMAGE_FIELDS,
  };
}

/** A record type at its location in the schema, with the values that need new fields there. */
interface RecordNode extends SchemaLocation {
  readonly record: RecordSchema;
  /** Nested record types by the JSON name of the field that contains them; null for a field without a record type. */
  readonly parts: ReadonlyMap<string, RecordNode | null>;
  /** Values of the JSON members that have no field in the record type, by the member's name. They are collected from all records. */
  readonly newMembers: Map<string, JsonValue[]>;
}

interface SchemaLocation {
  /** Avro names of the fields that lead to the record type from the root of the schema. */
  readonly path: readonly string[];
  /** Depth of this record type in objects and arrays: 1 for the root, 2 for an object in the root, 3 for one in an array in the root. */
  readonly depth: number;
  /** Number of nested arrays around the record type in its field: 0 if the field is a record, 2 if it is an array of arrays of records. */
  readonly arrays: number;
}

const ROOT: SchemaLocation = { path: [], depth: 1, arrays: 0 };

/**
 * Returns the tree of record types from `record` downwards, and appends every node of the tree to `places`. `at` is the location of
 * `record` in the schema.
 */
function recordNode(record: RecordSchema, at: SchemaLocation, places: RecordNode[]): RecordNode {
  const partOf = ({ name, type }: FieldSchema): RecordNode | null => {
    const within = recordWithin(type);
    if (!within) return null;
    const { arrays } = within;
    const depth = at.depth + arrays + 1;
    return recordNode(within.record, { path: [...at.path, name], depth, arrays }, places);
  };
  const parts = new Map(record.fields.map((field) => [jsonName(field), partOf(field)]));
  const place: RecordNode = { ...at, record, parts, newMembers: new Map() };
  places.push(place);
  return place;
}

function visit(value: JsonValue, place: RecordNode, arrays: number): void {
  if (arrays > 0) {
    if (Array.isArray(value)) for (const item of value) visit(item, place, arrays - 1);
  } else if (isJsonObject(value)) {
    for (const key of Object.keys(value)) {
      const part = place.parts.get(key);
      if (part) visit(value[key]!, part, part.arrays);
      else if (part === undefined) noteValue(place.newMembers, key, value[key]);
    }
  }
}

interface Growth {
  readonly keyFields: ReadonlySet<string>;
  readonly recordNames: Set<string>;
}

/**
 * Returns the Avro record type `place.record` with fields for its new members and for those of nested record types, at most `fieldBudget`
 * in total. Returns `place.record` itself if no field is added.
 */
function grow(place: RecordNode, fieldBudget: number, growth: Growth): RecordSchema {
  const { record, path, parts } = place;
  const added = fieldsOf(
    admittedMembers(place, fieldBudget, growth),
    { path, fields: record.fields },
    growth.recordNames,
  );
  let left = fieldBudget - fieldCount(added);
  let hasGrown = added.length > 0;
  const fields = record.fields.map((field): FieldSchema => {
    const part = parts.get(jsonName(field));
    if (!part) return field;
    const before = fieldCount(part.record.fields);
    const grown = grow(part, Math.min(left, MAX_PART_FIELDS - before), growth);
    if (grown === part.record) return field;
    left -= fieldCount(grown.fields) - before;
    hasGrown = true;
    return { ...field, type: withRecords(field.type, () => grown) };
  });
  return hasGrown ? { ...record, fields: [...fields, ...added] } : record;
}

/**
 * Selects the new members of an object that get a field, and returns their inferred types by the members' names. Key fields come first,
 * then the most frequent members. The selected members get at most `room` fields in total, including nested ones.
 */
function admittedMembers(
  place: RecordNode,
  room: number,
  { keyFields }: Growth,
): Map<string, Shape> {
  const isKey = (key: string) => place.path.length === 0 && keyFields.has(key);
  const ranked = [...place.newMembers].sort(
    ([a, ofA], [b, ofB]) =>
      Number(isKey(b)) - Number(isKey(a)) || ofB.length - ofA.length || (a < b ? -1 : 1),
  );
  const shapes = new Map<string, Shape>();
  let left = room;
  for (const [key, values] of ranked) {
    if (left <= 0) break;
    const shape = (isKey(key) ? keyShape(values) : undefined) ?? shapeOf(values, place.depth);
    if (!shape) continue;
    // A member that needs more fields than are left becomes JSON text, which needs one.
    const isTooLarge = 1 + fieldsWithin(shape) > left;
    shapes.set(key, isTooLarge ? { kind: 'text' } : shape);
    left -= isTooLarge ? 1 : 1 + fieldsWithin(shape);
  }
  return shapes;
}

/** Returns the record type within a field's type, and the number of nested arrays around it; undefined if there is no record type. */
function recordWithin(type: AvroType): { record: RecordSchema; arrays: number } | undefined {
  if (typeof type === 'string') return undefined;
  if (isUnion(type)) return recordWithin(type.at(-1)!);
  if ('fields' in type) return { record: type, arrays: 0 };
  const within = 'items' in type ? recordWithin(type.items) : undefined;
  return within && { record: within.record, arrays: within.arrays + 1 };
}

function fieldCount(fields: readonly FieldSchema[]): number {
  let count = fields.length;
  for (const { type } of fields) count += fieldCount(recordWithin(type)?.record.fields ?? []);
  return count;
}

/**
 * Returns a nullable Avro field for each new member of a JSON object, sorted by the member's name. The fields get Avro names that are not
 * taken yet.
 *
 * @param shapes Inferred type of each new member, by the member's name.
 * @param place The record type that gets the fields.
 * @param recordNames Names of all record types. Those of new nested record types are added.
 */
function fieldsOf(
  shapes: ReadonlyMap<string, Shape>,
  place: FieldParent,
  recordNames: Set<string>,
): FieldSchema[] {
  const names = fieldNames(shapes.keys(), place);
  return [...names.keys()].sort().map((key): FieldSchema => {
    const name = names.get(key)!;
    const shape = shapes.get(key)!;
    return {
      name,
      ...(shape.kind === 'text'
        ? { type: ['null', 'string'], contentMediaType: 'application/json' }
        : { type: ['null', typeOf(shape, [...place.path, name], recordNames)] }),
      default: null,
      doc: 'Inferred from what the API sent.',
      ...(name === key ? {} : { json: key }),
    };
  });
}

/**
 * Assigns Avro names to the JSON names of new fields. JSON names that are valid in Avro are assigned first, so that they remain unchanged.
 */
function fieldNames(keys: Iterable<string>, place: FieldParent): Map<string, string> {
  const taken = takenNames(place);
  const names = new Map<string, string>();
  const sorted = [...keys].sort();
  for (const key of [...sorted.filter(isAvroName), ...sorted.filter((key) => !isAvroName(key))]) {
    const name = avroName(key, (name) => taken.has(name));
    taken.add(name);
    names.set(key, name);
  }
  return names;
}

function typeOf(shape: TypedShape, path: readonly string[], names: Set<string>): AvroType {
  if (shape.kind === 'plain') return shape.type;
  if (shape.kind === 'array') return { type: 'array', items: typeOf(shape.items, path, names) };
  return {
    type: 'record',
    name: recordName(path, names),
    doc: 'Inferred from what the API sent.',
    fields: fieldsOf(shape.members, { path, fields: [] }, names),
  };
}
