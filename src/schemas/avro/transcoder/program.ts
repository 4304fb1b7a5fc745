import type { FieldCodec, TranscodedField } from '../field-codec.ts';
import {
  ARRAY,
  DECIMAL,
  FIELD_NAME,
  FIELD_NAME_BYTES,
  NOTES,
  PROGRAM,
  RECORD,
  RECORD_BEGINS,
  RECORD_COUNT,
  RECORD_FIELDS,
  RECORD_FOLLOWERS,
  RECORD_NEWEST,
  RECORD_VALUES,
  RECORD_WRITTEN,
  TYPE_BYTES,
  TYPE_ID,
  TYPE_KIND,
  TYPE_LIMIT,
  TYPE_MORE,
} from './layout.ts';

/** A schema as `wasm/transcode.ts` reads it. */
export interface Program {
  /** What stands from PROGRAM on. */
  readonly bytes: Buffer;
  /** Where the record itself stands. */
  readonly root: number;
  /** Address of the list of places where the record's values begin, by field. */
  readonly values: number;
  /** By id: how values are written that were left out. */
  readonly codecs: readonly FieldCodec[];
  /** By id: the step to a field; of items it is empty. */
  readonly steps: readonly string[];
}

const INTEGER_BYTES = 4;
const ROOM = NOTES - PROGRAM;
/** Where doubles may stand. */
const ALIGNMENT = 8;

/** Undefined where the schema takes more room than there is: with some 1,500 fields. */
export function programOf(fields: readonly TranscodedField[]): Program | undefined {
  const bytes = Buffer.alloc(ROOM);
  const codecs: FieldCodec[] = [];
  const steps: string[] = [];
  let length = 0;

  const room = (size: number): number => {
    const at = PROGRAM + length;
    length += Math.ceil(size / ALIGNMENT) * ALIGNMENT;
    return at;
  };
  const integers = (count: number): number => room(count * INTEGER_BYTES);
  const put = (at: number, value: number): void => {
    if (length <= ROOM) bytes.writeInt32LE(value, at - PROGRAM);
  };

  const putType = (at: number, codec: FieldCodec, step: string): void => {
    const { transcoded } = codec;
    put(at + TYPE_KIND, transcoded.kind);
    put(at + TYPE_ID, codecs.length);
    codecs.push(codec);
    steps.push(step);
    if (transcoded.kind === RECORD) put(at + TYPE_MORE, putRecord(transcoded.fields));
    if (transcoded.kind === ARRAY) {
      const items = room(TYPE_BYTES);
      put(at + TYPE_MORE, items);
      putType(items, transcoded.items, '');
    }
    if (transcoded.kind === DECIMAL) {
      put(at + TYPE_MORE, transcoded.scale);
      if (length <= ROOM)
        bytes.writeDoubleLE(10 ** transcoded.precision, at + TYPE_LIMIT - PROGRAM);
    }
  };
  const putRecord = (members: readonly TranscodedField[]): number => {
    const count = members.length;
    const at = room(RECORD_FIELDS + count * TYPE_BYTES);
    const followers = integers(count + 1);
    put(at + RECORD_COUNT, count);
    put(at + RECORD_FOLLOWERS, followers);
    put(at + RECORD_VALUES, integers(count));
    put(at + RECORD_WRITTEN, integers(2 * count));
    put(at + RECORD_BEGINS, integers(2 * count + 1));
    put(at + RECORD_NEWEST, integers(count));
    for (const [nth, { jsonName, codec, step }] of members.entries()) {
      put(followers + nth * INTEGER_BYTES, nth + 1);
      const name = Buffer.from(`${JSON.stringify(jsonName)}:`);
      const place = room(name.length);
      name.copy(bytes, place - PROGRAM);
      const field = at + RECORD_FIELDS + nth * TYPE_BYTES;
      put(field + FIELD_NAME, place);
      put(field + FIELD_NAME_BYTES, name.length);
      putType(field, codec, step);
    }
    return at;
  };

  const root = putRecord(fields);
  if (length > ROOM) return undefined;
  const values = bytes.readInt32LE(root + RECORD_VALUES - PROGRAM);
  return { bytes: Buffer.from(bytes.subarray(0, length)), root, values, codecs, steps };
}
