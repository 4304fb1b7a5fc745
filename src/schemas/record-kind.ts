import type { AvroOutput } from './avro-output.ts';
import type { AvroType, FieldSchema, RecordSchema } from './avro-schema.ts';
import { allOrNothing, arrayKind, readValue, simpleKind } from './field-kinds.ts';
import type { AvroValue, Kind, Read } from './field-kinds.ts';
import { CLOSE_OBJECT, COLON, COMMA, endOfString, OPEN_OBJECT } from './json-bytes.ts';
import type { JsonCursor } from './json-cursor.ts';
import { isJsonObject, setOwn } from './json.ts';
import type { JsonObject, JsonValue } from './json.ts';
import type { Oddities } from './oddities.ts';
import { pointerStep } from './pointer.ts';
import { speaksForAny } from './shape.ts';

/** A record of nullable fields. */
export interface RecordKind extends Kind {
  readonly read: Read;
  /** Where the value of a field began in what was read last; -1 where it had none. */
  readonly placeOf: (name: string) => number;
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

/** @throws TypeError when a field is none that can be held. */
export function recordKind({ name, fields: schemas }: RecordSchema): RecordKind {
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
      for (const key of keys) {
        const item = value[key];
        if (known.has(key) || item === undefined) continue;
        if (key.isWellFormed()) noteUnknown(key, item, odd);
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
  return { write, ...reader(fields), toJson, writePlaceholder };
}

/**
 * Reads members in the order in which they come, which is mostly that of the record before. Fields stand
 * in the schema's: where that is another one, they are put in order at the end.
 */
function reader(fields: readonly Field[]): Pick<RecordKind, 'read' | 'placeOf'> {
  const { length } = fields;
  const names = fields.map(({ jsonName }) => Buffer.from(JSON.stringify(jsonName)));
  const byName = new Map(names.map((name, nth) => [name.toString('latin1'), nth]));
  const byField = new Map(fields.map(({ jsonName }, nth) => [jsonName, nth]));
  /** Of each field the one that came behind it; of none, behind the last one, which came first. */
  const after = Int32Array.from({ length: length + 1 }, (_, nth) => (nth + 1) % (length + 1));
  /** Of the fields of the record that is read: which record, where the value began, and where it was written to. */
  const met = new Float64Array(length);
  const place = new Int32Array(length);
  const from = new Int32Array(length);
  const to = new Int32Array(length);
  let number = 0;

  /** Which field a name is of, with the name and its colon read; -1 where it is of none, with nothing read. */
  const fieldAt = (source: JsonCursor, previous: number): number => {
    const expected = after[previous]!;
    if (expected < length && source.takesName(names[expected]!)) return expected;
    const { page, at } = source;
    const found = byName.get(page.toString('latin1', at, endOfString(page, at)));
    if (found === undefined || !source.takesName(names[found]!)) return -1;
    after[previous] = found;
    return found;
  };

  /** What `write` does for a value that is not null. */
  const readField = ({ kind, step }: Field, source: JsonCursor, out: AvroOutput, odd: Oddities) => {
    odd.path.push(step);
    if (source.takesNull()) {
      odd.noteNull();
      out.byte(NULL_BRANCH);
    } else {
      const start = out.length;
      out.byte(VALUE_BRANCH);
      if (!readValue(kind, source, out, odd)) {
        out.length = start;
        out.byte(NULL_BRANCH);
      }
    }
    odd.path.pop();
  };

  /** A member that has no field; false where it takes the whole object to tell what it says. */
  const readUnknown = (source: JsonCursor, odd: Oddities): boolean => {
    const key = source.value();
    if (typeof key !== 'string' || !key.isWellFormed() || byField.has(key)) return false;
    if (!source.takes(COLON)) return false;
    source.skipSpace();
    return noteUnknown(key, source.value(), odd);
  };

  const leaveOut = (nth: number, out: AvroOutput) => {
    from[nth] = out.length;
    out.byte(NULL_BRANCH);
    to[nth] = out.length;
  };

  /** Puts the fields in the schema's order, as many at once as follow each other already. */
  const putInOrder = (start: number, out: AvroOutput) => {
    const end = out.length;
    let first = 0;
    for (let nth = 1; nth <= length; nth++) {
      if (nth < length && from[nth] === to[nth - 1]) continue;
      out.again(from[first]!, to[nth - 1]!);
      first = nth;
    }
    out.drop(start, end);
  };

  const read = allOrNothing((source, out, odd) => {
    if (!source.takes(OPEN_OBJECT)) return false;
    const start = out.length;
    let written = 0; // fields of the schema, those that are left out included
    let previous = length;
    let isInOrder = true;
    number += 1;
    if (!source.takes(CLOSE_OBJECT)) {
      do {
        source.skipSpace();
        const nth = fieldAt(source, previous);
        if (nth < 0) {
          if (!readUnknown(source, odd)) return false;
          continue;
        }
        if (met[nth] === number) return false; // the last of them counts
        if (nth < written) isInOrder = false;
        for (; written < nth; written++) leaveOut(written, out);
        if (nth === written) written += 1;
        source.skipSpace();
        met[nth] = number;
        place[nth] = source.at;
        from[nth] = out.length;
        readField(fields[nth]!, source, out, odd);
        to[nth] = out.length;
        previous = nth;
      } while (source.takes(COMMA));
      if (!source.takes(CLOSE_OBJECT)) return false;
    }
    for (; written < length; written++) leaveOut(written, out);
    if (!isInOrder) putInOrder(start, out);
    return true;
  });

  const placeOf = (name: string): number => {
    const nth = byField.get(name);
    return nth !== undefined && met[nth] === number ? place[nth]! : -1;
  };

  return { read, placeOf };
}

/** Keeps what has no field; false where there is such a member already. */
function noteUnknown(key: string, item: JsonValue, odd: Oddities): boolean {
  odd.hasUnknown ||= speaksForAny(item);
  odd.path.push(pointerStep(key));
  const isFirst = !odd.isNoted();
  if (item === null) odd.noteNull();
  else odd.noteValue(item);
  odd.path.pop();
  return isFirst;
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
