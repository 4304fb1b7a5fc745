import avro from 'avsc';
import { asBuffer } from './avro-bytes.ts';
import { AvroOutput } from './avro-output.ts';
import type { AvroType, FieldSchema, RecordSchema } from './avro-schema.ts';
import { arrayKind, Oddities, simpleKind, writeBlock } from './field-kinds.ts';
import type { AvroValue, Kind } from './field-kinds.ts';
import { isJsonObject, parseJson, setOwn } from './json.ts';
import type { JsonObject, JsonValue } from './json.ts';
import { pointerStep, withPart } from './pointer.ts';
import { speaksForAny } from './shape.ts';

/** The API's JSON to a record image in Avro, and back. */
export interface RecordCodec {
  /** The schema it was made from. */
  readonly schema: RecordSchema;
  /** The same for avsc; logical types are left as the numbers and bytes underneath. */
  readonly type: avro.Type;
  /**
   * The image as Avro bytes, without a header. Equal JSON gives equal bytes, whatever the order of
   * its keys; so do times that are the same instant. `onUnknown` is told if anything in it has no
   * field, and one could be made of it.
   */
  encode(record: JsonObject, onUnknown?: () => void): Buffer;
  /**
   * The API's JSON again, its keys in no order to rely on. A time that said no more than an instant
   * comes in one form, in UTC with ms.
   *
   * @throws Error when the bytes aren't a value of the schema.
   */
  decode(bytes: Uint8Array): JsonObject;
  /** The same from a value that {@link type} has read. */
  toJson(value: unknown): JsonObject;
}

/** The two fields at the end of every image, and of no nested record. */
const NULLS = 'nulls';
const UNMAPPED = 'unmapped';

/**
 * Compiles a schema of record images: a record of nullable fields that ends with `nulls` (array of
 * string) and `unmapped` (map of string). Fields may be boolean, int, long, double, string,
 * `decimal`, `timestamp-millis`, `date`, JSON text, records of such fields, and arrays of any of these.
 *
 * Nothing is lost: a value that its field can't hold exactly, or that has no field, is kept in
 * `unmapped` as JSON text. In an array an empty value stands in its place.
 *
 * @throws TypeError when the schema is another one.
 */
export function createRecordCodec(schema: RecordSchema): RecordCodec {
  const fields = schema.fields.slice(0, -2);
  const [nulls, unmapped] = schema.fields.slice(-2);
  if (nulls?.name !== NULLS || unmapped?.name !== UNMAPPED) {
    throw new TypeError(`${schema.name} doesn't end with the fields ${NULLS} and ${UNMAPPED}`);
  }
  const root = recordKind({ ...schema, fields });
  const type = avro.Type.forSchema(schema as avro.Schema, { omitRecordMethods: true });
  const out = new AvroOutput();

  const encode = (record: JsonObject, onUnknown?: () => void): Buffer => {
    out.length = 0; // what an error has left
    const odd = new Oddities();
    root.write(record, out, odd);
    if (odd.hasUnknown) onUnknown?.();
    writeBlock(out, odd.nulls.sort(), (pointer) => out.string(pointer));
    writeBlock(out, sorted(odd.unmapped), ([pointer, text]) => {
      out.string(pointer);
      out.string(text);
    });
    return out.take();
  };

  const toJson = (value: unknown): JsonObject => {
    const image = value as Record<string, AvroValue>;
    let record = root.toJson(image);
    for (const pointer of image[NULLS] as string[]) record = withPart(record, pointer, null);
    const texts = image[UNMAPPED] as Record<string, string>;
    // Sorted, so that what holds a part comes before the part.
    for (const pointer of Object.keys(texts).sort()) {
      record = withPart(record, pointer, parseJson(texts[pointer]!));
    }
    return record as JsonObject;
  };

  const decode = (bytes: Uint8Array): JsonObject => toJson(type.fromBuffer(asBuffer(bytes)));

  return { schema, type, encode, decode, toJson };
}

/** A field and its place in both worlds. */
interface Field {
  readonly avroName: string;
  readonly jsonName: string;
  readonly step: string;
  readonly kind: Kind;
  /** Whether every object seems to have it: `constructor`. */
  readonly isInherited: boolean;
}

/** Branches 0 and 1 of `["null", T]`, as Avro writes their index. */
const [NULL_BRANCH, VALUE_BRANCH] = [0, 2];

function recordKind({ name, fields: schemas }: RecordSchema): Kind {
  const fields = schemas.map((field) => compile(name, field));
  const known = new Set(fields.map(({ jsonName }) => jsonName));

  const write = (value: JsonValue, out: AvroOutput, odd: Oddities): boolean => {
    if (!isJsonObject(value)) return false;
    let met = 0;
    for (const { jsonName, step, kind, isInherited } of fields) {
      const item = value[jsonName];
      if (item === undefined || (isInherited && !Object.hasOwn(value, jsonName))) {
        out.byte(NULL_BRANCH);
        continue;
      }
      met += 1;
      odd.path.push(step);
      if (item === null) {
        odd.noteNull();
        out.byte(NULL_BRANCH);
      } else {
        const start = out.length;
        out.byte(VALUE_BRANCH);
        if (!kind.write(item, out, odd)) {
          out.length = start;
          out.byte(NULL_BRANCH);
          odd.noteValue(item);
        }
      }
      odd.path.pop();
    }
    const keys = Object.keys(value);
    if (keys.length !== met) {
      for (const key of keys) if (!known.has(key)) noteUnknown(value, key, odd);
    }
    return true;
  };

  const toJson = (value: AvroValue): JsonObject => {
    const held = value as Record<string, AvroValue>;
    const object: JsonObject = {};
    for (const { avroName, jsonName, kind } of fields) {
      const item = held[avroName];
      if (item !== null && item !== undefined) setOwn(object, jsonName, kind.toJson(item));
    }
    return object;
  };

  const writePlaceholder = (out: AvroOutput) => fields.forEach(() => out.byte(NULL_BRANCH));
  return { write, toJson, writePlaceholder };
}

/** Keeps what has no field. Avro can't spell a name with half a surrogate pair: then all of it. */
function noteUnknown(object: JsonObject, key: string, odd: Oddities): void {
  const item = object[key];
  if (item === undefined) return;
  if (speaksForAny(item)) odd.hasUnknown = true;
  if (!key.isWellFormed()) return odd.noteValue(object);
  odd.path.push(pointerStep(key));
  if (item === null) odd.noteNull();
  else odd.noteValue(item);
  odd.path.pop();
}

function compile(
  record: string,
  { name, type, json = name, contentMediaType }: FieldSchema,
): Field {
  const [first, second, ...others] = Array.isArray(type) ? (type as AvroType[]) : [];
  const kind = first === 'null' && second && !others.length && kindOf(second, contentMediaType);
  if (!kind || name === '__proto__')
    throw new TypeError(`${record}.${name}: no such field can be held`);
  const isInherited = json in Object.prototype;
  return { avroName: name, jsonName: json, step: pointerStep(json), kind, isInherited };
}

function kindOf(type: AvroType, contentMediaType?: string): Kind | undefined {
  if (typeof type === 'object' && 'fields' in type) return recordKind(type);
  if (typeof type === 'object' && 'items' in type) {
    const items = kindOf(type.items);
    return items && arrayKind(items);
  }
  return simpleKind(type, contentMediaType);
}

function sorted(texts: ReadonlyMap<string, string>): readonly (readonly [string, string])[] {
  return texts.size === 0 ? [] : [...texts].sort(([a], [b]) => (a < b ? -1 : 1));
}
