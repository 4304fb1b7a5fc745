// The JavaScript side of the transcoder: gives it a schema and a stretch of a page, and fills in what it has left out.

import { readFileSync } from 'node:fs';
import type { AvroOutput } from '../avro-output.ts';
import type { TranscodedField, FieldCodec } from '../field-codec.ts';
import { writeItem, writeNullable } from '../field-codec.ts';
import type { Place, Residue } from '../residue.ts';
import { COLON, endOfValue } from '../../json/json-bytes.ts';
import type { JsonCursor } from '../../json/json-cursor.ts';
import * as layout from './layout.ts';

/** Writes records from their bytes. */
export interface RecordTranscoder {
  /**
   * Writes the fields of the object that a cursor is at, and moves the cursor behind it. False where it takes the whole object,
   * parsed, to tell what it says, or it isn't JSON: then cursor, output and residue are of no use.
   *
   * @throws SyntaxError maybe, when it isn't JSON.
   */
  readonly read: (source: JsonCursor, out: AvroOutput, residue: Residue) => boolean;
  /** Where the value of a field, by its name in JSON, begins in the record that was read last by anybody; -1 where it has none. */
  readonly placeOf: (name: string) => number;
}

const ABSENT = -1;
/** What stands for bytes that are no UTF-8: two names with it may be one. */
const REPLACED = '\ufffd';

/**
 * `wasm/transcode.ts` writes what is plain. What it has left out is filled in here, by the codecs of those values: so they alone say what
 * an odd value comes to.
 */
export function recordTranscoder(fields: readonly TranscodedField[]): RecordTranscoder {
  const program = programOf(fields);
  if (!program) return { read: () => false, placeOf: () => ABSENT };
  const { values, codecs, steps } = program;
  const byName = new Map(fields.map(({ jsonName }, nth) => [jsonName, nth]));

  const stepAt = (note: number, nth: number): string | number => {
    const step = memory().integer(note + layout.NOTE_STEPS + nth * INTEGER_BYTES);
    return step < 0 ? ~step : steps[step]!;
  };
  /** Where the first so many steps of a note lead. */
  const placeAt = (note: number, count: number, record: Place): Place => {
    let place = record;
    for (let nth = 0; nth < count; nth++) place = place.part(stepAt(note, nth));
    return place;
  };
  const begin = (source: JsonCursor, note: number): void => {
    source.at = memory().placeOf(memory().integer(note + layout.NOTE_FROM));
  };
  /** Whether both ways to find the end of a value have come to the same. */
  const hasEnded = (source: JsonCursor, note: number): boolean =>
    source.at === memory().placeOf(memory().integer(note + layout.NOTE_TO));

  const fillIn = (note: number, source: JsonCursor, out: AvroOutput, residue: Residue): boolean => {
    const last = memory().integer(note + layout.NOTE_DEPTH) - 1;
    const step = stepAt(note, last);
    residue.goTo(placeAt(note, last, residue.record), step);
    begin(source, note);
    const codec = codecs[memory().integer(note + layout.NOTE_OF)]!;
    const write = typeof step === 'number' ? writeItem : writeNullable;
    write(codec, source.value(), out, residue);
    return hasEnded(source, note);
  };

  /** The name of an unknown member; undefined where it takes the whole object to tell what it says. */
  const noteUnknown = (note: number, source: JsonCursor, residue: Residue): string | undefined => {
    begin(source, note);
    const key = source.value();
    if (typeof key !== 'string' || key.includes(REPLACED) || !source.takes(COLON)) return undefined;
    source.skipSpace();
    residue.goTo(placeAt(note, memory().integer(note + layout.NOTE_DEPTH), residue.record), '');
    residue.noteUnknown(key, source.value());
    return hasEnded(source, note) ? key : undefined;
  };

  const noteAll = (unknown: readonly number[], source: JsonCursor, residue: Residue): boolean => {
    const met = new Set<string>();
    for (const note of unknown) {
      const key = noteUnknown(note, source, residue);
      if (key === undefined) return false;
      met.add(`${memory().integer(note + layout.NOTE_OF)} ${key}`);
    }
    return met.size === unknown.length; // of two of one name the last counts
  };

  const read: RecordTranscoder['read'] = (source, out, residue) => {
    const end = memory().transcode(program, source.page, source.at);
    if (end < 0) return false;
    const holes: number[] = [];
    const unknown: number[] = [];
    memory().eachNote((note) => {
      const kind = memory().integer(note + layout.NOTE_KIND);
      if (kind === layout.NOTE_NULL) {
        const depth = memory().integer(note + layout.NOTE_DEPTH);
        residue.nulls.push(placeAt(note, depth, residue.record));
      } else (kind === layout.NOTE_HOLE ? holes : unknown).push(note);
    });
    if (unknown.length > 0 && !noteAll(unknown, source, residue)) return false;
    let from = 0;
    for (const note of holes.sort(byOut)) {
      const place = memory().integer(note + layout.NOTE_OUT);
      out.raw(memory().written(from, place));
      if (!fillIn(note, source, out, residue)) return false;
      from = place + 1;
    }
    out.raw(memory().written(from, memory().size));
    source.at = end;
    return true;
  };

  const placeOf = (name: string): number => {
    const nth = byName.get(name);
    const at = nth === undefined ? 0 : memory().integer(values + nth * INTEGER_BYTES);
    return at === 0 ? ABSENT : memory().placeOf(at);
  };

  return { read, placeOf };
}

/** Notes stand in the order of the page, in which fields may have another one than in the schema. */
const byOut = (one: number, other: number): number =>
  memory().integer(one + layout.NOTE_OUT) - memory().integer(other + layout.NOTE_OUT);

/** A schema as `wasm/transcode.ts` reads it. */
interface Program {
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
const ROOM = layout.NOTES - layout.PROGRAM;
/** Where doubles may stand. */
const ALIGNMENT = 8;

/** Undefined where the schema takes more room than there is: with some 1,500 fields. */
function programOf(fields: readonly TranscodedField[]): Program | undefined {
  const bytes = Buffer.alloc(ROOM);
  const codecs: FieldCodec[] = [];
  const steps: string[] = [];
  let length = 0;

  const room = (size: number): number => {
    const at = layout.PROGRAM + length;
    length += Math.ceil(size / ALIGNMENT) * ALIGNMENT;
    return at;
  };
  const integers = (count: number): number => room(count * INTEGER_BYTES);
  const put = (at: number, value: number): void => {
    if (length <= ROOM) bytes.writeInt32LE(value, at - layout.PROGRAM);
  };

  const putType = (at: number, codec: FieldCodec, step: string): void => {
    const { transcoded } = codec;
    put(at + layout.TYPE_KIND, transcoded.kind);
    put(at + layout.TYPE_ID, codecs.length);
    codecs.push(codec);
    steps.push(step);
    if (transcoded.kind === layout.RECORD) put(at + layout.TYPE_MORE, putRecord(transcoded.fields));
    if (transcoded.kind === layout.ARRAY) {
      const items = room(layout.TYPE_BYTES);
      put(at + layout.TYPE_MORE, items);
      putType(items, transcoded.items, '');
    }
    if (transcoded.kind === layout.DECIMAL) {
      put(at + layout.TYPE_MORE, transcoded.scale);
      if (length <= ROOM)
        bytes.writeDoubleLE(10 ** transcoded.precision, at + layout.TYPE_LIMIT - layout.PROGRAM);
    }
  };
  const putRecord = (members: readonly TranscodedField[]): number => {
    const count = members.length;
    const at = room(layout.RECORD_FIELDS + count * layout.TYPE_BYTES);
    const followers = integers(count + 1);
    put(at + layout.RECORD_COUNT, count);
    put(at + layout.RECORD_FOLLOWERS, followers);
    put(at + layout.RECORD_VALUES, integers(count));
    put(at + layout.RECORD_WRITTEN, integers(2 * count));
    put(at + layout.RECORD_BEGINS, integers(2 * count + 1));
    put(at + layout.RECORD_NEWEST, integers(count));
    for (const [nth, { jsonName, codec, step }] of members.entries()) {
      put(followers + nth * INTEGER_BYTES, nth + 1);
      const name = Buffer.from(`${JSON.stringify(jsonName)}:`);
      const place = room(name.length);
      name.copy(bytes, place - layout.PROGRAM);
      const field = at + layout.RECORD_FIELDS + nth * layout.TYPE_BYTES;
      put(field + layout.FIELD_NAME, place);
      put(field + layout.FIELD_NAME_BYTES, name.length);
      putType(field, codec, step);
    }
    return at;
  };

  const root = putRecord(fields);
  if (length > ROOM) return undefined;
  const values = bytes.readInt32LE(root + layout.RECORD_VALUES - layout.PROGRAM);
  return { bytes: Buffer.from(bytes.subarray(0, length)), root, values, codecs, steps };
}

/** As much as is used of it: the types of Node have none. */
declare const WebAssembly: {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object) => { readonly exports: unknown };
};

/** What `wasm/transcode.ts` exports. */
interface Exports {
  readonly memory: { readonly buffer: ArrayBuffer };
  readonly transcode: (start: number, record: number) => number;
}

/** A record that begins so near to the end of what is in the window may not be in it whole. */
const NEAR_BYTES = 16_384;
const NOWHERE = -1;

/** What `wasm/transcode.ts` works on: a schema, a stretch of a page, and what came of it. */
class TranscoderMemory {
  readonly #transcode: Exports['transcode'];
  readonly #bytes: Uint8Array;
  readonly #integers: Int32Array;
  #program: Program | undefined;
  /** Weak: it may be of many megabytes, and be the last one for long. */
  #page: WeakRef<Buffer> | undefined;
  /** The place in the page of the first byte in the window, and of the one behind the last. */
  #from = 0;
  #to = 0;

  constructor() {
    const module = new WebAssembly.Module(
      readFileSync(new URL('transcoder.wasm', import.meta.url)),
    );
    const { transcode, memory } = new WebAssembly.Instance(module).exports as Exports;
    this.#transcode = transcode;
    this.#bytes = new Uint8Array(memory.buffer);
    this.#integers = new Int32Array(memory.buffer);
  }

  /**
   * Reads the object that begins at a place of a page.
   *
   * @returns the place behind it; -1 where it can't be read so.
   */
  transcode(program: Program, page: Buffer, at: number): number {
    if (this.#program !== program) {
      this.#bytes.set(program.bytes, layout.PROGRAM);
      this.#program = program;
    }
    const isIn = this.#page?.deref() === page && at >= this.#from && at < this.#to;
    const isNear = this.#to < page.length && at + NEAR_BYTES > this.#to;
    if (!isIn || isNear) this.#load(page, at);
    let end = this.#transcode(at - this.#from + layout.WINDOW, program.root);
    if (end === 0 && this.#from < at && endOfValue(page, at) > this.#to) {
      this.#load(page, at); // it was not in the window whole
      end = this.#transcode(layout.WINDOW, program.root);
    }
    return end === 0 ? NOWHERE : this.placeOf(end);
  }

  #load(page: Buffer, at: number): void {
    const size = Math.min(layout.WINDOW_BYTES, page.length - at);
    this.#bytes.set(page.subarray(at, at + size), layout.WINDOW);
    this.#bytes.fill(0, layout.WINDOW + size, layout.WINDOW + size + layout.PADDING);
    this.#page = new WeakRef(page);
    this.#from = at;
    this.#to = at + size;
  }

  integer(at: number): number {
    return this.#integers[at >> 2]!;
  }

  /** The place in the page of what is in the window. */
  placeOf(at: number): number {
    return at - layout.WINDOW + this.#from;
  }

  /** Bytes that were written. */
  get size(): number {
    return this.integer(layout.RESULT + layout.RESULT_OUT);
  }

  /** A stretch of them, as long as nothing else is read. */
  written(from: number, to: number): Uint8Array {
    return this.#bytes.subarray(layout.OUT + from, layout.OUT + to);
  }

  /** Tells where each note stands. */
  eachNote(tell: (note: number) => void): void {
    const end = layout.NOTES + this.integer(layout.RESULT + layout.RESULT_NOTES);
    for (let note = layout.NOTES; note < end;) {
      tell(note);
      note +=
        layout.NOTE_STEPS + this.integer(note + layout.NOTE_DEPTH) * Int32Array.BYTES_PER_ELEMENT;
    }
  }
}

let made: TranscoderMemory | undefined;

/**
 * One for the process, as V8 sets a range of gigabytes of addresses aside for each. It is made when the first record is read:
 * nobody else needs it. What is in it between two calls is a cache.
 */
const memory = (): TranscoderMemory => (made ??= new TranscoderMemory());
