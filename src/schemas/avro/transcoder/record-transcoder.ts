// The transcoder: encodes records in Avro directly from the bytes of a page, without parsing them.
//
// Why: most records of a page are encoded only to be compared with their images. `JSON.parse` and the field codecs take several times as
// long as one pass over the bytes (docs/performance.md, `transcode`), and JavaScript cannot examine sixteen bytes at once, as WebAssembly
// can.
//
// Division of work: `wasm/transcode.ts` (AssemblyScript) encodes only plain values, whose meaning is beyond doubt. It leaves out strings
// with escapes, numbers of more than 15 digits, times in unusual formats, invalid UTF-8 and values of the wrong type, and writes a note for
// each: an entry with the address, the type and the path of the value. This file reads the notes, parses the described values with
// `JSON.parse` and encodes them with the codecs of their fields. So the codecs alone define how unusual values are represented, and
// `transcode` always returns the same bytes as `encode` of the parsed record; tests compare both. For an object that cannot be interpreted
// member by member (a name twice, a name with escapes), WebAssembly gives up and the caller parses it whole.
//
// Memory (`layout.ts` has the addresses). WebAssembly has one memory of 512 KiB, from low to high addresses:
//
// - the result of the last call, and the path to the value that is being read;
// - the program: the schema in binary form, with the name of each field as bytes, so that names are compared eight bytes at a time;
// - the notes about values that were left out, null fields and members without a field;
// - the output: the fields in Avro, with one byte (a hole) in place of each value that was left out;
// - the input window: up to 128 KiB of the page, followed by zeros.
//
// One call: `RecordTranscoder.read` copies the program if another schema was used last, and the next part of the page if the record is not
// in the input window yet; several records usually share an input window. WebAssembly then writes output and notes. JavaScript copies the
// output to an `AvroOutput` and fills in the holes on the way. The memory belongs to the process and its content is only a cache, so a
// call depends on no earlier one; no call yields to another before it has copied its output.

import { readFileSync } from 'node:fs';
import type { AvroOutput } from '../avro-output.ts';
import { writeItem, writeNullable, type TranscodedField } from '../field-codec.ts';
import type { Place, EncodingResidue } from '../encoding-residue.ts';
import { COLON, endOfValue } from '../../json/json-bytes.ts';
import type { JsonCursor } from '../../json/json-cursor.ts';
import * as layout from './layout.ts';

/**
 * U+FFFD, which a decoder puts in place of invalid UTF-8. Member names with different bytes can become the same text with this character.
 */
const REPLACED = '\ufffd';

export class RecordTranscoder {
  /** The schema, compiled for WebAssembly; undefined if it is too large: in that case JavaScript parses every record. */
  readonly #program: Program | undefined;
  readonly #indexes: ReadonlyMap<string, number>;

  constructor(fields: readonly TranscodedField[]) {
    const program = new Program(fields);
    this.#program = program.fits ? program : undefined;
    this.#indexes = new Map(fields.map(({ jsonName }, nth) => [jsonName, nth]));
  }

  /**
   * Encodes the fields of the object at the cursor into `out`, and moves the cursor to the end of the object. Adds to `residue` the values
   * that the fields can't represent. Returns false if the caller has to parse the whole object instead. After false or an error, cursor,
   * output and residue must not be used.
   *
   * @throws SyntaxError in some of the cases in which the object isn't JSON.
   */
  read(source: JsonCursor, out: AvroOutput, residue: EncodingResidue): boolean {
    const end = this.#program ? memory().transcode(this.#program, source.page, source.at) : NOWHERE;
    if (end < 0) return false;
    const holes: number[] = [];
    const unknown: number[] = [];
    memory().eachNote((note) => {
      const kind = memory().integer(note + layout.NOTE_KIND);
      if (kind === layout.NOTE_NULL) {
        const depth = memory().integer(note + layout.NOTE_DEPTH);
        residue.nulls.push(this.#placeAt(note, depth, residue.record));
      } else (kind === layout.NOTE_HOLE ? holes : unknown).push(note);
    });
    if (unknown.length > 0 && !this.#noteAll(unknown, source, residue)) return false;
    let from = 0;
    for (const note of holes.sort(byOut)) {
      const place = memory().integer(note + layout.NOTE_OUT);
      out.raw(memory().written(from, place));
      if (!this.#fillIn(note, source, out, residue)) return false;
      from = place + 1;
    }
    out.raw(memory().written(from, memory().size));
    source.at = end;
    return true;
  }

  /**
   * Returns the index in the page at which a field's value begins in the record that {@link read} encoded last; -1 if the record or the
   * schema lacks the field. Call it before any transcoder of the process reads another record: they share one memory.
   *
   * @param name The field's name in JSON.
   */
  placeOf(name: string): number {
    const nth = this.#indexes.get(name);
    if (nth === undefined || !this.#program) return NOWHERE;
    const at = memory().integer(this.#program.values + nth * INTEGER_BYTES);
    return at === 0 ? NOWHERE : memory().placeOf(at);
  }

  /**
   * Encodes the value that `note` describes, which WebAssembly left to JavaScript, and appends it to `out`. Returns false if WebAssembly
   * and JavaScript disagree where the value ends: in that case the whole record has to be parsed.
   */
  #fillIn(note: number, source: JsonCursor, out: AvroOutput, residue: EncodingResidue): boolean {
    const last = memory().integer(note + layout.NOTE_DEPTH) - 1;
    const step = this.#stepAt(note, last);
    residue.goTo(this.#placeAt(note, last, residue.record), step);
    begin(source, note);
    const { codec } = this.#program!.types[memory().integer(note + layout.NOTE_OF)]!;
    const write = typeof step === 'number' ? writeItem : writeNullable;
    write(codec, source.value(), out, residue);
    return hasEnded(source, note);
  }

  /**
   * Adds a record's unknown members, for which the schema has no field, to `residue`. `unknown` has the addresses of the members' notes.
   * Returns false if the whole record has to be parsed, for example because a name occurs twice.
   */
  #noteAll(unknown: readonly number[], source: JsonCursor, residue: EncodingResidue): boolean {
    const met = new Set<string>();
    for (const note of unknown) {
      const key = this.#noteUnknown(note, source, residue);
      if (key === undefined) return false;
      met.add(`${memory().integer(note + layout.NOTE_OF)} ${key}`);
    }
    return met.size === unknown.length; // false if a name occurs twice, as the last one counts
  }

  /**
   * Adds an unknown member, for which the schema has no field, to `residue`, and returns the member's name. `note` says where the member is
   * in `source`. Returns undefined if the whole record has to be parsed.
   */
  #noteUnknown(note: number, source: JsonCursor, residue: EncodingResidue): string | undefined {
    begin(source, note);
    const key = source.value();
    if (typeof key !== 'string' || key.includes(REPLACED) || !source.consume(COLON))
      return undefined;
    source.skipSpace();
    const depth = memory().integer(note + layout.NOTE_DEPTH);
    residue.goTo(this.#placeAt(note, depth, residue.record), '');
    residue.noteUnknown(key, source.value());
    return hasEnded(source, note) ? key : undefined;
  }

  /**
   * Returns the path to which the first `count` steps in a note lead, from the path `record`. `note` is the address of the note (a message
   * of the WebAssembly transcoder about one value).
   */
  #placeAt(note: number, count: number, record: Place): Place {
    let place = record;
    for (let nth = 0; nth < count; nth++) place = place.child(this.#stepAt(note, nth));
    return place;
  }

  #stepAt(note: number, nth: number): string | number {
    const step = memory().integer(note + layout.NOTE_STEPS + nth * INTEGER_BYTES);
    return step < 0 ? ~step : this.#program!.types[step]!.step;
  }
}

function begin(source: JsonCursor, note: number): void {
  source.at = memory().placeOf(memory().integer(note + layout.NOTE_FROM));
}

/**
 * Whether `source`, which has just parsed the value that `note` describes, stands where that value ends according to WebAssembly. If not,
 * the two parsers disagree.
 */
function hasEnded(source: JsonCursor, note: number): boolean {
  return source.at === memory().placeOf(memory().integer(note + layout.NOTE_TO));
}

/**
 * Compares two notes, given by their addresses, by the position in the output where their values belong. Notes are created in the order of
 * the JSON, which may differ from the order of the schema.
 */
const byOut = (one: number, other: number): number =>
  memory().integer(one + layout.NOTE_OUT) - memory().integer(other + layout.NOTE_OUT);

/**
 * Type of the values of a field or of the items of an array. `codec` encodes the values that WebAssembly has left to JavaScript. `step` is
 * the field's step in a JSON Pointer, such as `/price`, and is empty for items.
 */
type ValueType = Pick<TranscodedField, 'codec' | 'step'>;

const INTEGER_BYTES = 4;
const ROOM = layout.NOTES - layout.PROGRAM;
const ALIGNMENT = 8;

/**
 * A schema in the binary form that `wasm/transcode.ts` reads. If it does not fit into the available memory, its size is still counted, but
 * nothing is written beyond the end.
 */
class Program {
  bytes = Buffer.alloc(ROOM);
  readonly root: number;
  /** Address of the array in which WebAssembly stores where the value of each top-level field begins ({@link layout.RECORD_VALUES}). */
  readonly values: number;
  /** The types of all fields and array items of the schema; the index is the type id that the notes of WebAssembly contain. */
  readonly types: ValueType[] = [];
  /** Size of the program (the compiled schema) so far, in bytes. */
  #length = 0;

  constructor(fields: readonly TranscodedField[]) {
    this.root = this.#putRecord(fields);
    this.values = this.bytes.readInt32LE(this.root + layout.RECORD_VALUES - layout.PROGRAM);
    this.bytes = Buffer.from(this.bytes.subarray(0, this.#length)); // releases the rest of the memory
  }

  /** Whether the program (the compiled schema) fits into the memory for it, which suffices for about 1,500 fields. */
  get fits(): boolean {
    return this.#length <= ROOM;
  }

  #putRecord(members: readonly TranscodedField[]): number {
    const count = members.length;
    const at = this.#reserve(layout.RECORD_FIELDS + count * layout.TYPE_BYTES);
    const integers = (length: number) => this.#reserve(length * INTEGER_BYTES);
    const followers = integers(count + 1);
    this.#put(at + layout.RECORD_COUNT, count);
    this.#put(at + layout.RECORD_FOLLOWERS, followers);
    this.#put(at + layout.RECORD_VALUES, integers(count));
    this.#put(at + layout.RECORD_WRITTEN, integers(2 * count));
    this.#put(at + layout.RECORD_BEGINS, integers(2 * count + 1));
    this.#put(at + layout.RECORD_NEWEST, integers(count));
    for (const [nth, member] of members.entries()) {
      this.#put(followers + nth * INTEGER_BYTES, nth + 1);
      const name = Buffer.from(`${JSON.stringify(member.jsonName)}:`);
      const place = this.#reserve(name.length);
      name.copy(this.bytes, place - layout.PROGRAM);
      const field = at + layout.RECORD_FIELDS + nth * layout.TYPE_BYTES;
      this.#put(field + layout.FIELD_NAME, place);
      this.#put(field + layout.FIELD_NAME_BYTES, name.length);
      this.#putType(field, member);
    }
    return at;
  }

  #putType(at: number, type: ValueType): void {
    const { kind, fields, items, decimal } = type.codec.transcoded;
    this.#put(at + layout.TYPE_KIND, kind);
    this.#put(at + layout.TYPE_ID, this.types.length);
    this.types.push(type);
    if (fields) {
      this.#put(at + layout.TYPE_MORE, this.#putRecord(fields));
    } else if (items) {
      const place = this.#reserve(layout.TYPE_BYTES);
      this.#put(at + layout.TYPE_MORE, place);
      this.#putType(place, { codec: items, step: '' });
    } else if (decimal) {
      this.#put(at + layout.TYPE_MORE, decimal.scale);
      const limit = at + layout.TYPE_LIMIT - layout.PROGRAM;
      if (this.fits) this.bytes.writeDoubleLE(10 ** decimal.precision, limit);
    }
  }

  #reserve(size: number): number {
    const at = layout.PROGRAM + this.#length;
    this.#length += Math.ceil(size / ALIGNMENT) * ALIGNMENT;
    return at;
  }

  #put(at: number, value: number): void {
    if (this.fits) this.bytes.writeInt32LE(value, at - layout.PROGRAM);
  }
}

declare const WebAssembly: {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object) => { readonly exports: unknown };
};

interface Exports {
  readonly memory: { readonly buffer: ArrayBuffer };
  readonly transcode: (start: number, record: number) => number;
}

/**
 * Size in bytes of the last section of the input window (the part of a page that is in the memory of WebAssembly). A record that begins in
 * this section may extend beyond the window, so the window is moved to that record first.
 */
const NEAR_BYTES = 16_384;
const NOWHERE = -1;

class TranscoderMemory {
  readonly #transcode: Exports['transcode'];
  readonly #bytes: Uint8Array;
  readonly #integers: Int32Array;
  #program: Program | undefined;
  /**
   * The page (bytes of a response) of which the input window holds a part. A weak reference, so that the last page, which may have many
   * megabytes, can be freed.
   */
  #page: WeakRef<Buffer> | undefined;
  /** Index in the page of the first byte that is in the input window, the part of the page that is in the memory of WebAssembly. */
  #from = 0;
  /** Index in the page of the first byte after the part of the page that is in the input window. */
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
   * Transcodes the object that begins at index `at` of a page from JSON to Avro.
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

  placeOf(at: number): number {
    return at - layout.WINDOW + this.#from;
  }

  get size(): number {
    return this.integer(layout.RESULT + layout.RESULT_OUT);
  }

  /** Returns a view of the output between two offsets from its start. The view is valid until the next object is transcoded. */
  written(from: number, to: number): Uint8Array {
    return this.#bytes.subarray(layout.OUT + from, layout.OUT + to);
  }

  /** Calls `visit` with the address of each note (message from WebAssembly) about a value of the object that was transcoded last. */
  eachNote(visit: (note: number) => void): void {
    const end = layout.NOTES + this.integer(layout.RESULT + layout.RESULT_NOTES);
    for (let note = layout.NOTES; note < end;) {
      visit(note);
      note += layout.NOTE_STEPS + this.integer(note + layout.NOTE_DEPTH) * INTEGER_BYTES;
    }
  }
}

let instance: TranscoderMemory | undefined;

/**
 * Returns the process's {@link TranscoderMemory}, created on first use. There is only one, as V8 reserves gigabytes of address space for
 * each.
 */
const memory = (): TranscoderMemory => (instance ??= new TranscoderMemory());
