import type { AvroOutput } from './avro-output.ts';
import { arrayCodec } from './array-codec.ts';
import type { AvroType, FieldSchema, RecordSchema } from './avro-schema.ts';
import { simpleFieldCodec } from './field-codecs.ts';
import { isJsonObject, setOwn } from '../json/json.ts';
import type { JsonObject, JsonValue } from '../json/json.ts';
import type { AvroValue, FieldCodec, TranscodedField } from './field-codec.ts';
import type { Residue } from './residue.ts';
import { pointerStep } from '../json/pointer.ts';
import { writeNullable } from './nullable.ts';
import { NULL_BRANCH, RECORD } from './transcoder/layout.ts';
import { speaksForAny } from './shape.ts';

/** A record of nullable fields. */
export interface RecordFieldCodec extends FieldCodec {
  readonly fields: readonly Field[];
}

/** A field and its place in both worlds. */
interface Field extends TranscodedField {
  readonly avroName: string;
  /** Whether every object seems to have it: `constructor`. */
  readonly isInherited: boolean;
}

/** @throws TypeError when a field is none that can be held, or two have one name in JSON. */
export function recordFieldCodec({ name, fields: schemas }: RecordSchema): RecordFieldCodec {
  const fields = schemas.map((field) => compile(name, field));
  const known = new Set(fields.map(({ jsonName }) => jsonName));
  if (known.size < fields.length) throw new TypeError(`${name}: two fields of one name in JSON`);

  const write = (value: JsonValue, out: AvroOutput, residue: Residue): boolean => {
    if (!isJsonObject(value)) return false;
    let met = 0;
    residue.enter();
    for (const { jsonName, step, codec, isInherited } of fields) {
      const item = value[jsonName];
      if (item === undefined || (isInherited && !Object.hasOwn(value, jsonName))) {
        out.byte(NULL_BRANCH);
        continue;
      }
      met += 1;
      residue.step = step;
      writeNullable(codec, item, out, residue);
    }
    let isUnspeakable = false; // Avro can't spell a name with half a surrogate pair
    const keys = Object.keys(value);
    if (keys.length !== met) {
      for (const key of keys) {
        const item = value[key];
        if (known.has(key) || item === undefined) continue;
        if (key.isWellFormed()) residue.noteUnknown(key, item);
        else {
          isUnspeakable = true;
          residue.hasUnknown ||= speaksForAny(item);
        }
      }
    }
    residue.leave();
    if (isUnspeakable) residue.noteValue(value);
    return true;
  };

  const toJson = (value: AvroValue): JsonObject => {
    const held = value as Record<string, AvroValue>;
    const object: JsonObject = {};
    for (const { avroName, jsonName, codec } of fields) {
      const item = held[avroName];
      if (item !== null && item !== undefined) setOwn(object, jsonName, codec.toJson(item));
    }
    return object;
  };

  const writePlaceholder = (out: AvroOutput) => fields.forEach(() => out.byte(NULL_BRANCH));
  return { write, transcoded: { kind: RECORD, fields }, toJson, writePlaceholder, fields };
}

function compile(
  record: string,
  { name, type, json = name, contentMediaType }: FieldSchema,
): Field {
  const [first, second, ...others] = Array.isArray(type) ? (type as AvroType[]) : [];
  const codec = first === 'null' && second && !others.length && codecOf(second, contentMediaType);
  if (!codec || name === '__proto__')
    throw new TypeError(`${record}.${name}: no such field can be held`);
  const isInherited = json in Object.prototype;
  return { avroName: name, jsonName: json, step: pointerStep(json), codec, isInherited };
}

function codecOf(type: AvroType, contentMediaType?: string): FieldCodec | undefined {
  if (typeof type === 'object' && 'fields' in type) return recordFieldCodec(type);
  if (typeof type === 'object' && 'items' in type) {
    const items = codecOf(type.items);
    return items && arrayCodec(items);
  }
  return simpleFieldCodec(type, contentMediaType);
}
