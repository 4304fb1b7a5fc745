// Lossless conversion between the API's JSON and record images (records as published) in Avro.

import avro from 'avsc';
import { asBuffer, AvroOutput } from './avro-output.ts';
import { isUnion, type AvroType, type FieldSchema, type RecordSchema } from './avro-schema.ts';
import { OPEN_OBJECT, parsedElement } from '../json/json-bytes.ts';
import { JsonCursor } from '../json/json-cursor.ts';
import { parseJson, setOwn, isJsonObject, withValueAt, pointerStep } from '../json/json.ts';
import type { JsonObject, JsonValue } from '../json/json.ts';
import { writeItem, writeNullable, type AvroValue, type FieldCodec } from './field-codec.ts';
import { instantAt, instantOf } from './instant.ts';
import { PathTree, EncodingResidue } from './encoding-residue.ts';
import { RecordTranscoder } from './transcoder/record-transcoder.ts';
import { simpleFieldCodec } from './field-codecs.ts';
import { NULL_BRANCH, RECORD, ARRAY } from './transcoder/layout.ts';
import { isTypable } from './shape.ts';

/** JSON names of top-level fields that the caller needs besides the image: `values` as JSON values, `instants` as times in epoch ms. */
export interface WantedFields {
  readonly values: readonly string[];
  readonly instants: readonly string[];
}

/** A record that was encoded in Avro from the bytes of a page. */
export interface Transcoded {
  readonly image: Buffer;
  /** Index of the page's first byte after the record. */
  readonly end: number;
  /**
   * The requested fields ({@link WantedFields.values}) that the record and the schema have, with their values. If the record could not be
   * transcoded and was parsed instead: all members of the record.
   */
  readonly fields: JsonObject;
  /**
   * Times of the fields in {@link WantedFields.instants}, in the same order, in epoch ms. Null for a field that the record lacks or that
   * holds no time. Usually also null for a field that the schema lacks.
   */
  readonly instants: readonly (number | null)[];
}

/** Name of the last but one top-level field of every image. It holds the JSON Pointers of the record's null values. */
const NULLS = 'nulls';
/** Name of the last top-level field of every image. It holds the values that have no field, or that their field can't represent. */
const UNMAPPED = 'unmapped';

/**
 * Converts the API's JSON to record images in Avro, and back. No value is dropped: a value that its field can't represent exactly, or that
 * has no field, is stored in `unmapped` as JSON text.
 *
 * The schema of the images is a record of nullable fields that ends with `nulls` (array of string) and `unmapped` (map of string). Fields
 * may be JSON text, boolean, int, long, double, string, `decimal`, `timestamp-millis`, `date`, records of such fields, and arrays of all
 * these types except JSON text.
 */
export class RecordCodec {
  /** The schema that the codec was made from. */
  readonly schema: RecordSchema;
  /** The schema compiled by the library avsc; logical types are left as the underlying numbers and bytes. */
  readonly type: avro.Type;
  readonly #record: FieldCodec;
  readonly #out = new AvroOutput();
  readonly #paths = new PathTree();
  /** Transcoder, created on first use: a codec that only decodes needs none. */
  #transcoder: RecordTranscoder | undefined;

  /**
   * Creates the codec of a schema of images.
   *
   * @throws TypeError if the schema does not end with the fields `nulls` and `unmapped`, a field's type or name is not supported, or two
   * fields have the same name in JSON.
   */
  constructor(schema: RecordSchema) {
    const [nulls, unmapped] = schema.fields.slice(-2);
    if (nulls?.name !== NULLS || unmapped?.name !== UNMAPPED) {
      throw new TypeError(
        `the Avro schema ${schema.name} must end with the fields ${NULLS} and ${UNMAPPED}`,
      );
    }
    this.schema = schema;
    this.#record = recordFieldCodec({ ...schema, fields: schema.fields.slice(0, -2) });
    this.type = avro.Type.forSchema(schema as avro.Schema, { omitRecordMethods: true });
  }

  /**
   * Encodes a record as Avro bytes, without a header. Equal JSON gives equal bytes, whatever the order of keys.
   *
   * @param onUnknown Called if a member of the record has no field in the schema, and the member's value may show a type. Null, for
   * example, shows no type.
   */
  encode(record: JsonObject, onUnknown?: () => void): Buffer {
    const residue = new EncodingResidue(this.#paths.root);
    this.#out.length = 0; // discards the remains of a failed encoding
    this.#record.write(record, this.#out, residue);
    return this.#image(residue, onUnknown);
  }

  /**
   * Encodes the record that begins at index `at` of a page from its bytes; parses the record only if necessary. Returns undefined if the
   * value at `at` isn't an object.
   *
   * @param page Must not change between calls: parts of it are cached.
   * @throws SyntaxError when the value isn't JSON.
   */
  transcode(
    page: Buffer,
    at: number,
    wanted: WantedFields,
    onUnknown?: () => void,
  ): Transcoded | undefined {
    if (page[at] !== OPEN_OBJECT) return undefined;
    this.#transcoder ??= new RecordTranscoder(this.#record.transcoded.fields!);
    const transcoder = this.#transcoder;
    const source = new JsonCursor(page, at);
    const residue = new EncodingResidue(this.#paths.root);
    this.#out.length = 0;
    if (!transcoder.read(source, this.#out, residue)) {
      const { value, end } = parsedElement(page, at);
      const fields = value as JsonObject;
      const instants = wanted.instants.map((name) => instantOf(fields, name));
      return { image: this.encode(fields, onUnknown), end, fields, instants };
    }
    const end = source.at;
    const fields: JsonObject = {};
    for (const name of wanted.values) {
      source.at = transcoder.placeOf(name);
      if (source.at >= 0) setOwn(fields, name, source.value());
    }
    const instants = wanted.instants.map((name) => {
      source.at = transcoder.placeOf(name);
      return source.at >= 0 ? instantAt(source) : null;
    });
    return { image: this.#image(residue, onUnknown), end, fields, instants };
  }

  /**
   * Decodes an image to the API's JSON; the order of keys is unspecified. A time whose original text isn't stored is returned in UTC with
   * ms.
   *
   * @throws Error when the bytes aren't a value of the schema.
   */
  decode(bytes: Uint8Array): JsonObject {
    return this.toJson(this.type.fromBuffer(asBuffer(bytes)));
  }

  /** Converts an image that {@link type} has decoded to the API's JSON. */
  toJson(value: unknown): JsonObject {
    const image = value as Record<string, AvroValue>;
    let record = this.#record.toJson(image);
    for (const pointer of image[NULLS] as string[]) record = withValueAt(record, pointer, null);
    const texts = image[UNMAPPED] as Record<string, string>;
    // Sorted, so that a containing value is set before its parts.
    for (const pointer of Object.keys(texts).sort()) {
      record = withValueAt(record, pointer, parseJson(texts[pointer]!));
    }
    return record as JsonObject;
  }

  /**
   * Appends the last two fields, `nulls` and `unmapped`, to the image (encoded record) in the output, and returns the image. Calls
   * `onUnknown` if the schema may need a new field.
   */
  #image(residue: EncodingResidue, onUnknown: (() => void) | undefined): Buffer {
    const out = this.#out;
    if (residue.hasUnknown) onUnknown?.();
    this.#paths.writeNulls(residue.nulls, out);
    const texts = [...(residue.unmapped ?? [])].sort(([a], [b]) => (a < b ? -1 : 1));
    out.block(texts, ([pointer, text]) => {
      out.string(pointer);
      out.string(text);
    });
    return out.take();
  }
}

/**
 * Returns the codec of a record type whose fields are all nullable.
 *
 * @throws TypeError when a field's type or name isn't supported, or two fields share a JSON name.
 */
function recordFieldCodec({ name, fields: schemas }: RecordSchema): FieldCodec {
  const fields = schemas.map((field) => compile(name, field));
  const known = new Set(fields.map(({ jsonName }) => jsonName));
  if (known.size < fields.length)
    throw new TypeError(
      `two fields of the Avro record ${name} have the same name in JSON: give one of them another attribute "json" (without this attribute, a field has its Avro name in JSON, too)`,
    );

  const write = (value: JsonValue, out: AvroOutput, residue: EncodingResidue): boolean => {
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
    let isUnspeakable = false; // Avro can't represent a name with a lone surrogate
    const keys = Object.keys(value);
    if (keys.length !== met) {
      for (const key of keys) {
        const item = value[key];
        if (known.has(key) || item === undefined) continue;
        if (key.isWellFormed()) residue.noteUnknown(key, item);
        else {
          isUnspeakable = true;
          residue.hasUnknown ||= isTypable(item);
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
  return { write, transcoded: { kind: RECORD, fields }, toJson, writePlaceholder };
}

function compile(record: string, { name, type, json = name, contentMediaType }: FieldSchema) {
  const [first, second, ...others] = isUnion(type) ? type : [];
  const codec = first === 'null' && second && !others.length && codecOf(second, contentMediaType);
  if (!codec)
    throw new TypeError(
      `${record}.${name}: the Avro type of this field is not supported: it must be a union of two types, first null, then boolean, int, long, double, string, decimal (bytes), date (int), timestamp-millis (long), a record or an array`,
    );
  if (name === '__proto__')
    throw new TypeError(
      `the Avro record ${record} has a field with the name ${name}, which JavaScript reserves: give the field another name`,
    );
  const isInherited = json in Object.prototype; // whether every object inherits such a property, as `constructor`
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
