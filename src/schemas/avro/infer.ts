// Grows a schema by fields for whatever records hold.

import { isUnion, jsonName } from './avro-schema.ts';
import type { AvroType, FieldSchema, RecordSchema } from './avro-schema.ts';
import { isJsonObject } from '../json/json.ts';
import type { JsonObject, JsonValue } from '../json/json.ts';
import { avroName, distinctName, isAvroName, isInherited, recordName } from './avro-name.ts';
import type { FieldPlace, RecordNames } from './avro-name.ts';
import { fieldsWithin, keyShape, MAX_PART_FIELDS, noteValue, shapeOf } from './shape.ts';
import type { Shape, TypedShape } from './shape.ts';

/** What {@link growSchema} must know of a resource. */
interface GrowOptions {
  /** As in the API's path: `wine-clubs`. Names the schema where there is none yet. */
  readonly resource: string;
  /** The fields of the record, by their names in JSON, that its key is made of. */
  readonly keyFields: readonly string[];
}

/** Fields in a schema, those of all its records together. */
export const MAX_FIELDS = 500;

/**
 * The schema of images that has a field for whatever these records hold: the one given, with a
 * nullable field more for each member that has none, at any depth. What is there stays as it is, so
 * every version reads what any other has written; what a field can't hold is the codec's affair.
 *
 * `shapeOf` says what type a new field gets. None is made of what was only null or empty, nor
 * for a key longer than 200; nor beyond 500 fields in a schema or 150 in a part of it, the most
 * frequent coming first. All that stays in `nulls` and `unmapped`.
 *
 * The order of the records doesn't matter, nor that of their keys. For records that need no field
 * it costs a look at each of their keys, so ask it of every page before encoding it.
 *
 * @param schema As it was made here, lies beside the code or came from a registry; undefined where
 * there is none yet.
 * @returns The very same schema when nothing is to be added.
 */
export function growSchema(
  schema: RecordSchema | undefined,
  records: readonly JsonObject[],
  { resource, keyFields }: GrowOptions,
): RecordSchema {
  const base = schema ?? emptySchema(resource);
  const places: Place[] = [];
  const root = placeOf({ ...base, fields: base.fields.slice(0, -2) }, ROOT, places);
  for (const record of records) visit(record, root, 0);
  if (places.every(({ newcomers }) => newcomers.size === 0)) return base;

  const recordNames = new Set(places.map(({ record }) => distinctName(record)));
  const { fields } = grow(root, MAX_FIELDS - fieldCount(root.record.fields), {
    recordNames,
    keyFields: new Set(keyFields),
  });
  if (fields === root.record.fields) return base;
  return { ...base, fields: [...fields, ...base.fields.slice(-2)] };
}

/** The two fields at the end of every image. */
const OWN_FIELDS: readonly FieldSchema[] = [
  {
    name: 'nulls',
    // Without a default, which Kafka Connect's JDBC sink cannot give a column.
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

/** Replaces the last two fields of a registered schema by {@link OWN_FIELDS}: older versions registered `nulls` with a default. */
export function withOwnFields(schema: RecordSchema): RecordSchema {
  return { ...schema, fields: [...schema.fields.slice(0, -OWN_FIELDS.length), ...OWN_FIELDS] };
}

function emptySchema(resource: string): RecordSchema {
  return {
    type: 'record',
    name: 'Value',
    namespace: `cellarstream.${resource.replaceAll('-', '_')}`,
    doc: `A record of ${resource} as the API showed it. Fields, nulls and unmapped together rebuild its JSON.`,
    fields: OWN_FIELDS,
  };
}

/** A record within the schema, and what was met there that it has no field for. */
interface Place extends PlaceInSchema {
  readonly record: RecordSchema;
  /** By the names in JSON; null for a field without a record in it. */
  readonly parts: ReadonlyMap<string, Place | null>;
  readonly newcomers: Map<string, JsonValue[]>;
}

interface PlaceInSchema {
  /** The names in Avro of the fields that lead to it. */
  readonly path: readonly string[];
  /** Objects and arrays down to it, itself among them. */
  readonly depth: number;
  /** Arrays between the last field and the record. */
  readonly arrays: number;
}

const ROOT: PlaceInSchema = { path: [], depth: 1, arrays: 0 };

/** Lays out the records of a schema. Each goes into `places` too. */
function placeOf(record: RecordSchema, at: PlaceInSchema, places: Place[]): Place {
  const partOf = ({ name, type }: FieldSchema): Place | null => {
    const within = recordWithin(type);
    if (!within) return null;
    const { arrays } = within;
    const depth = at.depth + arrays + 1;
    return placeOf(within.record, { path: [...at.path, name], depth, arrays }, places);
  };
  const parts = new Map(record.fields.map((field) => [jsonName(field), partOf(field)]));
  const place: Place = { ...at, record, parts, newcomers: new Map() };
  places.push(place);
  return place;
}

function visit(value: JsonValue, place: Place, arrays: number): void {
  if (arrays > 0) {
    if (Array.isArray(value)) for (const item of value) visit(item, place, arrays - 1);
  } else if (isJsonObject(value)) {
    for (const key of Object.keys(value)) {
      const part = place.parts.get(key);
      if (part) visit(value[key]!, part, part.arrays);
      else if (part === undefined) noteValue(place.newcomers, key, value[key]);
    }
  }
}

interface Growth {
  readonly keyFields: ReadonlySet<string>;
  readonly recordNames: RecordNames;
}

/** The record of a place with at most `room` fields more; the same one where there are none. */
function grow(place: Place, room: number, growth: Growth): RecordSchema {
  const { record, path, parts } = place;
  const added = fieldsOf(
    admitted(place, room, growth),
    { path, fields: record.fields },
    growth.recordNames,
  );
  let left = room - fieldCount(added);
  let hasGrown = added.length > 0;
  const fields = record.fields.map((field): FieldSchema => {
    const part = parts.get(jsonName(field));
    if (!part) return field;
    const before = fieldCount(part.record.fields);
    const grown = grow(part, Math.min(left, MAX_PART_FIELDS - before), growth);
    if (grown === part.record) return field;
    left -= fieldCount(grown.fields) - before;
    hasGrown = true;
    return { ...field, type: withRecord(field.type, grown) };
  });
  return hasGrown ? { ...record, fields: [...fields, ...added] } : record;
}

/** The newcomers that there is room for: first the key's, then what came most often. */
function admitted(place: Place, room: number, { keyFields }: Growth): Map<string, Shape> {
  const isKey = (key: string) => place.path.length === 0 && keyFields.has(key);
  const ranked = [...place.newcomers].sort(
    ([a, ofA], [b, ofB]) =>
      Number(isKey(b)) - Number(isKey(a)) || ofB.length - ofA.length || (a < b ? -1 : 1),
  );
  const shapes = new Map<string, Shape>();
  let left = room;
  for (const [key, values] of left > 0 ? ranked : []) {
    if (left === 0) break;
    const shape = (isKey(key) ? keyShape(values) : undefined) ?? shapeOf(values, place.depth);
    if (!shape) continue;
    const isTooLarge = 1 + fieldsWithin(shape) > left;
    shapes.set(key, isTooLarge ? { kind: 'text' } : shape);
    left -= isTooLarge ? 1 : 1 + fieldsWithin(shape);
  }
  return shapes;
}

/** The record in a field's type, be it in arrays; undefined where there is none. */
function recordWithin(type: AvroType): { record: RecordSchema; arrays: number } | undefined {
  if (typeof type === 'string') return undefined;
  if (isUnion(type)) return recordWithin(type.at(-1)!);
  if ('fields' in type) return { record: type, arrays: 0 };
  const within = 'items' in type ? recordWithin(type.items) : undefined;
  return within && { record: within.record, arrays: within.arrays + 1 };
}

/** The type with another record in the place of its own. */
function withRecord(type: AvroType, record: RecordSchema): AvroType {
  if (typeof type === 'string') return type;
  if (isUnion(type)) return type.map((branch) => withRecord(branch, record));
  if ('items' in type) return { ...type, items: withRecord(type.items, record) };
  return record;
}

/** Fields, those of the records in them included. */
function fieldCount(fields: readonly FieldSchema[]): number {
  let count = fields.length;
  for (const { type } of fields) count += fieldCount(recordWithin(type)?.record.fields ?? []);
  return count;
}

/**
 * Nullable fields of these shapes, sorted by their names in JSON, under names that no field of the
 * place has. The names of the records in them are added to `recordNames`.
 */
function fieldsOf(
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
