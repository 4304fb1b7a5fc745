import type { AvroOutput } from './avro-output.ts';
import { arrayKind } from './array-kind.ts';
import type { AvroType, FieldSchema, RecordSchema } from './avro-schema.ts';
import { simpleKind } from './field-kinds.ts';
import { isJsonObject, setOwn } from '../json/json.ts';
import type { JsonObject, JsonValue } from '../json/json.ts';
import type { AvroValue, Kind } from './kind.ts';
import type { Oddities } from './oddities.ts';
import { pointerStep } from '../json/pointer.ts';
import { NULL_BRANCH, recordReader, VALUE_BRANCH } from './record-reader.ts';
import type { Field, RecordReader } from './record-reader.ts';
import { speaksForAny } from './shape.ts';

/** A record of nullable fields. */
export interface RecordKind extends Kind, RecordReader {
  readonly read: RecordReader['read'];
}

/** @throws TypeError when a field is none that can be held, or two have one name in JSON. */
export function recordKind({ name, fields: schemas }: RecordSchema): RecordKind {
  const fields = schemas.map((field) => compile(name, field));
  const known = new Set(fields.map(({ jsonName }) => jsonName));
  if (known.size < fields.length) throw new TypeError(`${name}: two fields of one name in JSON`);

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
      for (const key of keys) {
        const item = value[key];
        if (known.has(key) || item === undefined) continue;
        if (key.isWellFormed()) odd.noteUnknown(key, item);
        else {
          odd.noteValue(value); // Avro can't spell a name with half a surrogate pair
          odd.hasUnknown ||= speaksForAny(item);
        }
      }
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
  return { write, ...recordReader(fields), toJson, writePlaceholder };
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
