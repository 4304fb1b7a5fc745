// The API's JSON to a record image in Avro, and back, without loss.

import avro from 'avsc';
import { asBuffer, AvroOutput } from './avro-output.ts';
import type { RecordSchema, AvroType, FieldSchema } from './avro-schema.ts';
import { OPEN_OBJECT, parsedElement } from '../json/json-bytes.ts';
import { JsonCursor } from '../json/json-cursor.ts';
import { parseJson, setOwn, isJsonObject, withPart, pointerStep } from '../json/json.ts';
import type { JsonObject, JsonValue } from '../json/json.ts';
import type { AvroValue, FieldCodec, TranscodedField } from './field-codec.ts';
import { instantAt, instantOf } from './instant.ts';
import { Places, Residue } from './residue.ts';
import { recordTranscoder } from './transcoder/record-transcoder.ts';
import type { RecordTranscoder } from './transcoder/record-transcoder.ts';
import { simpleFieldCodec } from './field-codecs.ts';
import { writeItem, writeNullable } from './field-codec.ts';
import { NULL_BRANCH, RECORD, ARRAY } from './transcoder/layout.ts';
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
   * The same of the record that begins at a place of a page, from its bytes: they are parsed only where they
   * have to be. Undefined where another value than an object stands.
   *
   * @param page Its bytes must not change while anybody holds it.
   * @param at The first byte of it, no white space.
   * @throws SyntaxError when it isn't JSON.
   */
  transcode(
    page: Buffer,
    at: number,
    wanted: WantedFields,
    onUnknown?: () => void,
  ): Transcoded | undefined;
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

/** Names, in JSON, of fields of a record itself that are needed beside its image. */
export interface WantedFields {
  /** As they are. */
  readonly values: readonly string[];
  /** As instants. */
  readonly instants: readonly string[];
}

/** A record that was read from a page. */
export interface Transcoded {
  readonly image: Buffer;
  /** The place behind it. */
  readonly end: number;
  /** Values of those that were wanted, as far as the record has them and the schema a field; of one that was parsed, of all. */
  readonly fields: JsonObject;
  /** Likewise, in the order in which they were wanted: ms since 1970, null where there is none. */
  readonly instants: readonly (number | null)[];
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
  const root = recordFieldCodec({ ...schema, fields });
  const type = avro.Type.forSchema(schema as avro.Schema, { omitRecordMethods: true });
  const out = new AvroOutput();
  const places = new Places();

  /** The image, once the fields are written: what was noted of them stands behind them. */
  const image = (residue: Residue, onUnknown: (() => void) | undefined): Buffer => {
    if (residue.hasUnknown) onUnknown?.();
    places.writeNulls(residue.nulls, out);
    out.block(sorted(residue.unmapped), ([pointer, text]) => {
      out.string(pointer);
      out.string(text);
    });
    return out.take();
  };

  const encode = (record: JsonObject, onUnknown?: () => void): Buffer => {
    const residue = new Residue(places.root);
    out.length = 0; // what an error has left
    root.write(record, out, residue);
    return image(residue, onUnknown);
  };

  /** Made with the first record that is transcoded: who only decodes needs none. */
  let transcoder: RecordTranscoder | undefined;

  const transcode: RecordCodec['transcode'] = (page, at, wanted, onUnknown) => {
    if (page[at] !== OPEN_OBJECT) return undefined;
    transcoder ??= recordTranscoder(root.fields);
    const source = new JsonCursor(page, at);
    const residue = new Residue(places.root);
    out.length = 0;
    if (!transcoder.read(source, out, residue)) {
      const { value, end } = parsedElement(page, at);
      const fields = value as JsonObject;
      const instants = wanted.instants.map((name) => instantOf(fields, name));
      return { image: encode(fields, onUnknown), end, fields, instants };
    }
    const end = source.at;
    const fields: JsonObject = {};
    const { placeOf } = transcoder;
    for (const name of wanted.values) {
      source.at = placeOf(name);
      if (source.at >= 0) setOwn(fields, name, source.value());
    }
    const instants = wanted.instants.map((name) => {
      source.at = placeOf(name);
      return source.at >= 0 ? instantAt(source) : null;
    });
    return { image: image(residue, onUnknown), end, fields, instants };
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

  return { schema, type, encode, transcode, decode, toJson };
}

function sorted(texts: ReadonlyMap<string, string> = NO_TEXTS): (readonly [string, string])[] {
  return texts.size === 0 ? [] : [...texts].sort(([a], [b]) => (a < b ? -1 : 1));
}

const NO_TEXTS: ReadonlyMap<string, string> = new Map();

/** A record of nullable fields. */
interface RecordFieldCodec extends FieldCodec {
  readonly fields: readonly Field[];
}

/** A field and its place in both worlds. */
interface Field extends TranscodedField {
  readonly avroName: string;
  /** Whether every object seems to have it: `constructor`. */
  readonly isInherited: boolean;
}

/** @throws TypeError when a field is none that can be held, or two have one name in JSON. */
function recordFieldCodec({ name, fields: schemas }: RecordSchema): RecordFieldCodec {
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

/** An array of values of one type. */
function arrayCodec(items: FieldCodec): FieldCodec {
  return {
    write: (value, out, residue) => {
      if (!Array.isArray(value)) return false;
      residue.enter();
      out.block(value, (item, index) => {
        residue.step = index;
        writeItem(items, item, out, residue);
      });
      residue.leave();
      return true;
    },
    transcoded: { kind: ARRAY, items },
    toJson: (value) => (value as AvroValue[]).map(items.toJson),
    writePlaceholder: (out) => out.long(0),
  };
}
