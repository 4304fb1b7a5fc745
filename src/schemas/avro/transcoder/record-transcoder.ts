// The JavaScript side of the transcoder: passes a schema and part of a page to WebAssembly, and encodes the values that WebAssembly leaves
// out.

import { readFileSync } from 'node:fs';
import type { AvroOutput } from '../avro-output.ts';
import type { TranscodedField, FieldCodec } from '../field-codec.ts';
import { writeItem, writeNullable } from '../field-codec.ts';
import type { Place, EncodingResidue } from '../encoding-residue.ts';
import { COLON, endOfValue } from '../../json/json-bytes.ts';
import type { JsonCursor } from '../../json/json-cursor.ts';
import * as layout from './layout.ts';

/** Encodes records in Avro directly from their JSON bytes. */
export interface RecordTranscoder {
  /**
   * Encodes the fields of the object at the cursor, and moves the cursor after it. Returns false if the object has to be parsed as a whole
   * to interpret it, or isn't JSON: the state of cursor, output and residue is then undefined.
   *
   * @throws SyntaxError possibly, when the object isn't JSON.
   */
  readonly read: (source: JsonCursor, out: AvroOutput, residue: EncodingResidue) => boolean;
  /**
   * Index in the page at which the value of a field begins, by its name in JSON; -1 if the record lacks the field. Refers to the last
   * record that any transcoder of the process has read.
   */
  readonly placeOf: (name: string) => number;
}

const ABSENT = -1;
/** U+FFFD, which replaces invalid UTF-8: two different names that contain it may decode to the same text. */
const REPLACED = '\ufffd';

/**
 * Creates a transcoder for a schema. `wasm/transcode.ts` encodes the plain values. The values that it leaves out are encoded by the codecs
 * of the fields, in JavaScript, so these codecs alone define how unusual values are represented.
 */
export function recordTranscoder(fields: readonly TranscodedField[]): RecordTranscoder {
  const program = compileProgram(fields);
  if (!program) return { read: () => false, placeOf: () => ABSENT };
  const { values, codecs, steps } = program;
  const byName = new Map(fields.map(({ jsonName }, nth) => [jsonName, nth]));

  const stepAt = (note: number, nth: number): string | number => {
    const step = memory().integer(note + layout.NOTE_STEPS + nth * INTEGER_BYTES);
    return step < 0 ? ~step : steps[step]!;
  };
  /** Returns the path that the first `count` steps in a note lead to. */
  const placeAt = (note: number, count: number, record: Place): Place => {
    let place = record;
    for (let nth = 0; nth < count; nth++) place = place.child(stepAt(note, nth));
    return place;
  };
  const begin = (source: JsonCursor, note: number): void => {
    source.at = memory().placeOf(memory().integer(note + layout.NOTE_FROM));
  };
  /** Whether JavaScript and WebAssembly have determined the same end of the noted value. */
  const hasEnded = (source: JsonCursor, note: number): boolean =>
    source.at === memory().placeOf(memory().integer(note + layout.NOTE_TO));

  const fillIn = (
    note: number,
    source: JsonCursor,
    out: AvroOutput,
    residue: EncodingResidue,
  ): boolean => {
    const last = memory().integer(note + layout.NOTE_DEPTH) - 1;
    const step = stepAt(note, last);
    residue.goTo(placeAt(note, last, residue.record), step);
    begin(source, note);
    const codec = codecs[memory().integer(note + layout.NOTE_OF)]!;
    const write = typeof step === 'number' ? writeItem : writeNullable;
    write(codec, source.value(), out, residue);
    return hasEnded(source, note);
  };

  /**
   * Adds a member for which the schema has no field to `residue`, and returns the member's name; undefined if the whole object has to be
   * parsed.
   */
  const noteUnknown = (
    note: number,
    source: JsonCursor,
    residue: EncodingResidue,
  ): string | undefined => {
    begin(source, note);
    const key = source.value();
    if (typeof key !== 'string' || key.includes(REPLACED) || !source.consume(COLON))
      return undefined;
    source.skipSpace();
    residue.goTo(placeAt(note, memory().integer(note + layout.NOTE_DEPTH), residue.record), '');
    residue.noteUnknown(key, source.value());
    return hasEnded(source, note) ? key : undefined;
  };

  const noteAll = (
    unknown: readonly number[],
    source: JsonCursor,
    residue: EncodingResidue,
  ): boolean => {
    const met = new Set<string>();
    for (const note of unknown) {
      const key = noteUnknown(note, source, residue);
      if (key === undefined) return false;
      met.add(`${memory().integer(note + layout.NOTE_OF)} ${key}`);
    }
    return met.size === unknown.length; // false if a name occurs twice, as the last one counts
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

/**
 * Compares the notes at two addresses by their output offset. Notes are listed in the order of the page, which may differ from the order of
 * fields in the schema.
 */
const byOut = (one: number, other: number): number =>
  memory().integer(one + layout.NOTE_OUT) - memory().integer(other + layout.NOTE_OUT);

/** A schema in the binary form that `wasm/transcode.ts` reads. */
interface Program {
  /** The schema's bytes, to be copied to the address `layout.PROGRAM`. */
  readonly bytes: Buffer;
  /** Address of the top-level record's type. */
  readonly root: number;
  /** Address of the array that holds the window address of each top-level field's value, by field index. */
  readonly values: number;
  /** Field codecs by type id, used for values that WebAssembly has left out. */
  readonly codecs: readonly FieldCodec[];
  /** JSON Pointer steps by type id: the step to a field; empty for the items of an array. */
  readonly steps: readonly string[];
}

const INTEGER_BYTES = 4;
const ROOM = layout.NOTES - layout.PROGRAM;
/** Alignment in bytes that doubles need. */
const ALIGNMENT = 8;

/** Compiles a schema for WebAssembly; undefined if it exceeds the available memory, at about 1,500 fields. */
function compileProgram(fields: readonly TranscodedField[]): Program | undefined {
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

/** Type of the part of WebAssembly's API that this file uses; Node's types lack it. */
declare const WebAssembly: {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object) => { readonly exports: unknown };
};

/** Exports of the WebAssembly module that is compiled from `wasm/transcode.ts`. */
interface Exports {
  readonly memory: { readonly buffer: ArrayBuffer };
  readonly transcode: (start: number, record: number) => number;
}

/**
 * The window (part of a page in WebAssembly's memory) is reloaded for a record that begins within this many bytes of the window's end, as
 * the record may extend beyond it.
 */
const NEAR_BYTES = 16_384;
const NOWHERE = -1;

/** The WebAssembly instance and its memory: a schema, part of a page (the window), and the results. */
class TranscoderMemory {
  readonly #transcode: Exports['transcode'];
  readonly #bytes: Uint8Array;
  readonly #integers: Int32Array;
  #program: Program | undefined;
  /** The page of which a part is in the window. A weak reference, as a page may have many megabytes and may stay the last one for long. */
  #page: WeakRef<Buffer> | undefined;
  /** Range of the page that is in the window: index of its first byte, and of the byte after the last. */
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
   * Transcodes the object that begins at index `at` of a page.
   *
   * @returns the index after the object; -1 if the object can't be transcoded.
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
      this.#load(page, at); // the object extended beyond the window
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

  /** Converts an address in the window to an index in the page. */
  placeOf(at: number): number {
    return at - layout.WINDOW + this.#from;
  }

  /** Number of bytes of output for the object that was transcoded last. */
  get size(): number {
    return this.integer(layout.RESULT + layout.RESULT_OUT);
  }

  /** A view of part of the output, valid until the next object is transcoded. */
  written(from: number, to: number): Uint8Array {
    return this.#bytes.subarray(layout.OUT + from, layout.OUT + to);
  }

  /** Calls `tell` with the address of each note about the object that was transcoded last. */
  eachNote(tell: (note: number) => void): void {
    const end = layout.NOTES + this.integer(layout.RESULT + layout.RESULT_NOTES);
    for (let note = layout.NOTES; note < end;) {
      tell(note);
      note +=
        layout.NOTE_STEPS + this.integer(note + layout.NOTE_DEPTH) * Int32Array.BYTES_PER_ELEMENT;
    }
  }
}

let instance: TranscoderMemory | undefined;

/**
 * Returns the process's only {@link TranscoderMemory}, as V8 reserves gigabytes of address space for each. It is created on first use,
 * since many processes never need it. Its content between two calls is only a cache.
 */
const memory = (): TranscoderMemory => (instance ??= new TranscoderMemory());
