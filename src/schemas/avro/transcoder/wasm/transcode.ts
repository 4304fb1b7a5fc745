// The WebAssembly side of the transcoder, in AssemblyScript, a variant of TypeScript that `scripts/build-transcoder.mjs` compiles. The head of
// `record-transcoder.ts` explains the whole.

import {
  ARRAY,
  BOOLEAN,
  DATE,
  DECIMAL,
  DOUBLE,
  EXACT_TIMESTAMP,
  INT,
  LONG,
  MAX_DEPTH,
  MEMORY_BYTES,
  NOTES,
  NULL_BRANCH,
  OUT,
  RECORD,
  RECORD_BEGINS,
  RECORD_COUNT,
  RECORD_NEWEST,
  RECORD_VALUES,
  RECORD_WRITTEN,
  RESULT,
  RESULT_NOTES,
  RESULT_OUT,
  STEPS,
  STRING,
  TIMESTAMP,
  TYPE_ID,
  TYPE_KIND,
  TYPE_MORE,
  VALUE_BRANCH,
  WASM_PAGE,
} from '../layout.ts';
import { CLOSE_ARRAY, CLOSE_OBJECT, COMMA, Here, OPEN_ARRAY, OPEN_OBJECT } from './window.ts';
import { fieldHere, fieldOf } from './names.ts';
import { leaveHole, moveNotes, noteNull, noteUnknown } from './notes.ts';
import { readDate, readNumber, readText, readTimestamp, writeLong } from './values.ts';

/** The JSON literal `null` as a 32-bit little-endian integer. */
const NULL: u32 = 0x6c6c756e;
/** The JSON literal `true` as a 32-bit little-endian integer. */
const TRUE: u32 = 0x65757274;
/** The first four letters of the JSON literal `false` as a 32-bit little-endian integer. */
const FALS: u32 = 0x736c6166;
/** The last letter of the JSON literal `false`. */
const E: u8 = 0x65;

if (memory.grow(MEMORY_BYTES / WASM_PAGE - memory.size()) < 0) unreachable();

/**
 * Transcodes the object at the address `start` of the input window. `record` is the address of its record type's entry in the program.
 * Returns the address after the object; 0 if the object can't be transcoded.
 */
export function transcode(start: i32, record: i32): i32 {
  Here.at = start;
  Here.out = OUT;
  Here.note = NOTES;
  Here.depth = 0;
  if (!readRecord(record)) return 0;
  store<i32>(RESULT + RESULT_OUT, Here.size);
  store<i32>(RESULT + RESULT_NOTES, Here.note - NOTES);
  return Here.at;
}

/**
 * Reads a JSON object and writes it as an Avro record, with the fields in the schema's order. Returns false if the object can't be
 * transcoded; the read and write positions are unspecified then.
 */
function readRecord(record: i32): bool {
  const start = Here.at;
  if (Here.depth == MAX_DEPTH || !Here.takes(OPEN_OBJECT)) return false;
  const count = load<i32>(record, RECORD_COUNT);
  const values = load<i32>(record, RECORD_VALUES);
  const notes = Here.note;
  const step = STEPS + (Here.depth << 2);
  Here.depth += 1;
  memory.fill(values, 0, count << 2);
  let written = 0; // entries so far: a field that comes after a later one has two entries, the first of them null
  let next = 0; // all fields with a lower index are written
  let previous = count;
  if (!Here.takes(CLOSE_OBJECT)) {
    do {
      Here.skipSpace();
      const nth = fieldHere(record, previous);
      if (nth < 0) {
        if (!noteUnknown(start)) return false;
        continue;
      }
      if (load<i32>(values + (nth << 2)) != 0) return false; // duplicate name: the last one would count
      Here.skipSpace();
      store<i32>(values + (nth << 2), Here.at);
      if (!Here.hasRoom(count)) return false;
      for (; next < nth; next++) leaveOut(record, written++, next);
      if (next == nth) next += 1;
      begin(record, written++, nth);
      const field = fieldOf(record, nth);
      store<i32>(step, load<i32>(field, TYPE_ID));
      if (!readField(field)) return false;
      previous = nth;
    } while (Here.takes(COMMA));
    if (!Here.takes(CLOSE_OBJECT)) return false;
  }
  if (!Here.hasRoom(count)) return false;
  for (; next < count; next++) leaveOut(record, written++, next);
  Here.depth -= 1;
  return written == count || putInOrder(record, written, notes);
}

/**
 * Stores the current write position as the beginning of a field's output. `nth` is the number of this output within the record (from 0),
 * `field` the index of the field, and `record` the address of the record type.
 */
function begin(record: i32, nth: i32, field: i32): void {
  store<i32>(load<i32>(record, RECORD_WRITTEN) + (nth << 2), field);
  store<i32>(load<i32>(record, RECORD_BEGINS) + (nth << 2), Here.out);
}

function leaveOut(record: i32, nth: i32, field: i32): void {
  begin(record, nth, field);
  Here.write(<u8>NULL_BRANCH);
}

/**
 * Brings the output of a record into the order of the schema's fields, and adjusts the notes from address `notes` on. `written` is the
 * number of fields in the output. Of a field written twice, the second value is used. Returns false if there is no space for the rearranged
 * copy.
 */
function putInOrder(record: i32, written: i32, notes: i32): bool {
  const count = load<i32>(record, RECORD_COUNT);
  const fields = load<i32>(record, RECORD_WRITTEN);
  const begins = load<i32>(record, RECORD_BEGINS);
  const newest = load<i32>(record, RECORD_NEWEST);
  const start = load<i32>(begins);
  const end = Here.out;
  if (!Here.hasRoom(end - start)) return false;
  store<i32>(begins + (written << 2), end);
  for (let nth = 0; nth < written; nth++) {
    store<i32>(newest + (load<i32>(fields + (nth << 2)) << 2), begins + (nth << 2));
  }
  for (let field = 0; field < count; field++) {
    const place = load<i32>(newest + (field << 2));
    const from = load<i32>(place);
    const to = load<i32>(place, 4);
    memory.copy(Here.out, from, to - from);
    moveNotes(notes, from, to, Here.out - from);
    Here.out += to - from;
  }
  // The rearranged copy follows the original: it moves to the original's address.
  moveNotes(notes, end, Here.out, start - end);
  memory.copy(start, end, Here.out - end);
  Here.out += start - end;
  return true;
}

function readArray(items: i32): bool {
  if (Here.depth == MAX_DEPTH || !Here.takes(OPEN_ARRAY)) return false;
  const start = Here.out;
  const notes = Here.note;
  Here.write(0); // the end marker of an empty array; replaced by the number of items
  if (Here.takes(CLOSE_ARRAY)) return true;
  const step = STEPS + (Here.depth << 2);
  Here.depth += 1;
  let count = 0;
  do {
    Here.skipSpace();
    if (!Here.hasRoom(0)) return false;
    store<i32>(step, ~count);
    if (!readItem(items)) return false;
    count += 1;
  } while (Here.takes(COMMA));
  Here.depth -= 1;
  if (!Here.takes(CLOSE_ARRAY) || !Here.hasRoom(0)) return false;
  putCount(start, count, notes);
  Here.write(0);
  return true;
}

/**
 * Writes the number of an array's items before the items, at the address `place`, where one byte is reserved. If the number takes more
 * bytes, moves the items and adjusts the notes from address `notes` on.
 */
function putCount(place: i32, count: i32, notes: i32): void {
  const end = Here.out;
  writeLong(count);
  const size = Here.out - end;
  const number = load<u64>(end);
  memory.copy(place + size, place + 1, end - place - 1);
  moveNotes(notes, place, end, size - 1);
  for (let k = 0; k < size; k++) store<u8>(place + k, <u8>(number >> (k << 3)));
  Here.out = end + size - 1;
}

/**
 * Encodes the value of a field: writes the union branch and the value, or adds a note so that JavaScript encodes it. Returns false if the
 * value does not end in the input window or there is no space for a note.
 */
function readField(field: i32): bool {
  if (load<u32>(Here.at) == NULL) {
    if (!noteNull(Here.at + 4)) return false;
    Here.at += 4;
    Here.write(<u8>NULL_BRANCH);
    return true;
  }
  const start = Here.out;
  Here.write(<u8>VALUE_BRANCH);
  if (readValue(field)) return true;
  Here.out = start;
  return leaveHole(field);
}

function readItem(items: i32): bool {
  return readValue(items) || leaveHole(items);
}

/** Reads a value and writes it. Returns false, with the read and write positions restored, if the value has to be left to JavaScript. */
function readValue(type: i32): bool {
  const at = Here.at;
  const out = Here.out;
  const note = Here.note;
  const depth = Here.depth;
  if (readPlain(type)) return true;
  Here.at = at;
  Here.out = out;
  Here.note = note;
  Here.depth = depth;
  return false;
}

function readPlain(type: i32): bool {
  switch (load<i32>(type, TYPE_KIND)) {
    case STRING:
      return readText();
    case INT:
    case LONG:
    case DOUBLE:
    case DECIMAL:
      return readNumber(type);
    case BOOLEAN:
      return readBoolean();
    case TIMESTAMP:
      return readTimestamp(false);
    case EXACT_TIMESTAMP:
      return readTimestamp(true);
    case DATE:
      return readDate();
    case RECORD:
      return readRecord(load<i32>(type, TYPE_MORE));
    case ARRAY:
      return readArray(load<i32>(type, TYPE_MORE));
    default:
      return false;
  }
}

function readBoolean(): bool {
  const word = load<u32>(Here.at);
  if (word == TRUE) Here.at += 4;
  else if (word == FALS && load<u8>(Here.at, 4) == E) Here.at += 5;
  else return false;
  Here.write(word == TRUE ? 1 : 0);
  return true;
}
