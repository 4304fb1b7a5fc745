import { writeItem } from '../array-codec.ts';
import type { AvroOutput } from '../avro-output.ts';
import type { TranscodedField } from '../field-codec.ts';
import { writeNullable } from '../nullable.ts';
import type { Place } from '../places.ts';
import type { Residue } from '../residue.ts';
import { COLON } from '../../json/json-bytes.ts';
import type { JsonCursor } from '../../json/json-cursor.ts';
import {
  NOTE_DEPTH,
  NOTE_FROM,
  NOTE_HOLE,
  NOTE_OF,
  NOTE_KIND,
  NOTE_NULL,
  NOTE_OUT,
  NOTE_STEPS,
  NOTE_TO,
} from './layout.ts';
import { programOf } from './program.ts';
import { transcoderMemory as memory } from './transcoder-memory.ts';

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
const INTEGER_BYTES = 4;

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
    const step = memory().integer(note + NOTE_STEPS + nth * INTEGER_BYTES);
    return step < 0 ? ~step : steps[step]!;
  };
  /** Where the first so many steps of a note lead. */
  const placeAt = (note: number, count: number, record: Place): Place => {
    let place = record;
    for (let nth = 0; nth < count; nth++) place = place.part(stepAt(note, nth));
    return place;
  };
  const begin = (source: JsonCursor, note: number): void => {
    source.at = memory().placeOf(memory().integer(note + NOTE_FROM));
  };
  /** Whether both ways to find the end of a value have come to the same. */
  const hasEnded = (source: JsonCursor, note: number): boolean =>
    source.at === memory().placeOf(memory().integer(note + NOTE_TO));

  const fillIn = (note: number, source: JsonCursor, out: AvroOutput, residue: Residue): boolean => {
    const last = memory().integer(note + NOTE_DEPTH) - 1;
    const step = stepAt(note, last);
    residue.goTo(placeAt(note, last, residue.record), step);
    begin(source, note);
    const codec = codecs[memory().integer(note + NOTE_OF)]!;
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
    residue.goTo(placeAt(note, memory().integer(note + NOTE_DEPTH), residue.record), '');
    residue.noteUnknown(key, source.value());
    return hasEnded(source, note) ? key : undefined;
  };

  const noteAll = (unknown: readonly number[], source: JsonCursor, residue: Residue): boolean => {
    const met = new Set<string>();
    for (const note of unknown) {
      const key = noteUnknown(note, source, residue);
      if (key === undefined) return false;
      met.add(`${memory().integer(note + NOTE_OF)} ${key}`);
    }
    return met.size === unknown.length; // of two of one name the last counts
  };

  const read: RecordTranscoder['read'] = (source, out, residue) => {
    const end = memory().transcode(program, source.page, source.at);
    if (end < 0) return false;
    const holes: number[] = [];
    const unknown: number[] = [];
    memory().eachNote((note) => {
      const kind = memory().integer(note + NOTE_KIND);
      if (kind === NOTE_NULL) {
        const depth = memory().integer(note + NOTE_DEPTH);
        residue.nulls.push(placeAt(note, depth, residue.record));
      } else (kind === NOTE_HOLE ? holes : unknown).push(note);
    });
    if (unknown.length > 0 && !noteAll(unknown, source, residue)) return false;
    let from = 0;
    for (const note of holes.sort(byOut)) {
      const place = memory().integer(note + NOTE_OUT);
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
  memory().integer(one + NOTE_OUT) - memory().integer(other + NOTE_OUT);
