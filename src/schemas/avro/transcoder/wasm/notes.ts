// Writes notes for JavaScript about values that WebAssembly has left out of the output, and about nulls.

import {
  MAX_DEPTH,
  NOTE_DEPTH,
  NOTE_FROM,
  NOTE_HOLE,
  NOTE_OF,
  NOTE_KIND,
  NOTE_NULL,
  NOTE_OUT,
  NOTE_STEPS,
  NOTE_TO,
  NOTE_UNKNOWN,
  OUT,
  STEPS,
  TYPE_ID,
} from '../layout.ts';
import { BACKSLASH, COLON, QUOTE, endOfString, endOfValue, Here } from './window.ts';

/**
 * Highest address at which a note (a message to JavaScript about a value) may begin, so that even the longest note ends before the output.
 */
const LAST_NOTE: i32 = OUT - NOTE_STEPS - 4 * MAX_DEPTH;

/**
 * Adds a note that the value of a field, at the read position, is null; `end` is the address after the value. Returns false if there is no
 * space for a note.
 */
export function noteNull(end: i32): bool {
  return put(NOTE_NULL, Here.at, end, 0);
}

/**
 * Skips the value at the read position, so that JavaScript encodes it: writes a placeholder byte to the output and adds a note. `type` is
 * the address of the value's type. Returns false, with nothing written, if the value does not end in the input window or there is no space
 * for a note.
 */
export function leaveHole(type: i32): bool {
  const end = endOfValue(Here.at);
  if (end == 0 || !put(NOTE_HOLE, Here.at, end, load<i32>(type, TYPE_ID))) return false;
  Here.write(0);
  Here.at = end;
  return true;
}

/**
 * Skips the member at the read position, for which the schema has no field, and adds a note about it. `object` is the address of the object
 * that contains the member. Returns false if JavaScript has to parse the whole object.
 */
export function noteUnknown(object: i32): bool {
  const start = Here.at;
  if (load<u8>(start) != QUOTE) return false;
  const end = endOfString(start);
  if (end == 0) return false;
  for (let at = start; at < end; at++) if (load<u8>(at) == BACKSLASH) return false; // may be a field's name
  Here.at = end;
  if (!Here.takes(COLON)) return false;
  Here.skipSpace();
  const behind = endOfValue(Here.at);
  if (behind == 0) return false;
  Here.at = behind;
  Here.depth -= 1; // an unknown member has no step of its own
  const isNoted = put(NOTE_UNKNOWN, start, behind, object);
  Here.depth += 1;
  return isNoted;
}

/**
 * Adjusts notes after a move of output: the bytes from address `from` to `to - 1` were moved by `bytes` (negative: towards the start).
 * Notes at addresses before `first` are not changed.
 */
export function moveNotes(first: i32, from: i32, to: i32, bytes: i32): void {
  for (let note = first; note < Here.note; note += sizeOf(load<i32>(note, NOTE_DEPTH))) {
    const place = OUT + load<i32>(note, NOTE_OUT);
    if (place >= from && place < to) store<i32>(note, place + bytes - OUT, NOTE_OUT);
  }
}

function put(kind: i32, from: i32, to: i32, id: i32): bool {
  const note = Here.note;
  if (note > LAST_NOTE) return false;
  store<i32>(note, kind, NOTE_KIND);
  store<i32>(note, Here.size, NOTE_OUT);
  store<i32>(note, from, NOTE_FROM);
  store<i32>(note, to, NOTE_TO);
  store<i32>(note, id, NOTE_OF);
  store<i32>(note, Here.depth, NOTE_DEPTH);
  memory.copy(note + NOTE_STEPS, STEPS, Here.depth << 2);
  Here.note = note + sizeOf(Here.depth);
  return true;
}

/** Returns the size in bytes of a note about a value, with a path of `depth` steps to the value. */
function sizeOf(depth: i32): i32 {
  return NOTE_STEPS + (depth << 2);
}
