import type { AvroOutput } from './avro-output.ts';
import { CLOSE_OBJECT, COLON, COMMA, endOfString, OPEN_OBJECT } from '../json/json-bytes.ts';
import type { JsonCursor } from '../json/json-cursor.ts';
import { JsonName } from '../json/json-name.ts';
import { allOrNothing, readingValues } from './field-codec.ts';
import type { FieldCodec, Read } from './field-codec.ts';
import type { Residue } from './residue.ts';

/** A field and its place in both worlds. */
export interface Field {
  readonly avroName: string;
  readonly jsonName: string;
  readonly step: string;
  readonly codec: FieldCodec;
  /** Whether every object seems to have it: `constructor`. */
  readonly isInherited: boolean;
}

/** Branches 0 and 1 of `["null", T]`, as Avro writes their index. */
export const [NULL_BRANCH, VALUE_BRANCH] = [0, 2] as const;

/** No place in a page. */
const ABSENT = -1;

/** Writes records from their bytes. */
export interface RecordReader {
  readonly read: Read;
  /** Where the value of a field, by its name in JSON, began in the record that was read last; -1 where it had none. */
  readonly placeOf: (name: string) => number;
}

/**
 * Reads members in the order in which they come, which is mostly that of the record before. Fields stand
 * in the schema's: where that is another one, they are put in order at the end.
 */
export function recordReader(fields: readonly Field[]): RecordReader {
  const { length } = fields;
  const names = fields.map(({ jsonName }) => new JsonName(jsonName));
  const byName = new Map(names.map(({ bytes }, nth) => [bytes.toString('latin1'), nth]));
  const readers = fields.map(({ codec }) => readingValues(codec));
  const steps = fields.map(({ step }) => step);
  const byField = new Map(fields.map(({ jsonName }, nth) => [jsonName, nth]));
  /** The field that came behind field n last time; `followers[length]` came first. `length`: none did. */
  const followers = Int32Array.from({ length: length + 1 }, (_, nth) => (nth + 1) % (length + 1));
  /** By field: where its value begins in the page; ABSENT where the record that was read last had none so far. */
  const valueAt = new Int32Array(length).fill(ABSENT);
  /**
   * As they are written: which field it is, and where it begins in the output. One that comes behind another of a higher number was
   * written as null before.
   */
  const fieldOf = new Int32Array(2 * length);
  const beginsAt = new Int32Array(2 * length + 1);
  /** By field: the last time that it was written. */
  const newest = new Int32Array(length);

  /** Which field a name is of, with the name and its colon read; -1 where it is of none, with nothing read. */
  const fieldAt = (source: JsonCursor, previous: number): number => {
    const expected = followers[previous]!;
    if (expected < length && source.takesName(names[expected]!)) return expected;
    const { page, at } = source;
    const found = byName.get(page.toString('latin1', at, endOfString(page, at)));
    if (found === undefined || !source.takesName(names[found]!)) return -1;
    followers[previous] = found;
    return found;
  };

  /** Writes what stands behind a name. */
  const readField = (nth: number, source: JsonCursor, out: AvroOutput, residue: Residue) => {
    residue.step = steps[nth]!;
    if (source.takesNull()) {
      residue.noteNull();
      out.byte(NULL_BRANCH);
    } else {
      const start = out.length;
      out.byte(VALUE_BRANCH);
      if (!readers[nth]!(source, out, residue)) {
        out.length = start;
        out.byte(NULL_BRANCH);
      }
    }
  };

  /** A member that has no field, by its name; undefined where it takes the whole object to tell what it says. */
  const readUnknown = (source: JsonCursor, residue: Residue): string | undefined => {
    const key = source.value();
    if (typeof key !== 'string' || !key.isWellFormed() || byField.has(key)) return undefined;
    if (!source.takes(COLON)) return undefined;
    source.skipSpace();
    residue.noteUnknown(key, source.value());
    return key;
  };

  const leaveOut = (field: number, count: number, out: AvroOutput) => {
    fieldOf[count] = field;
    beginsAt[count] = out.length;
    out.byte(NULL_BRANCH);
  };

  /** Puts so many that were written in the schema's order, as many at once as follow each other already. */
  const putInOrder = (count: number, out: AvroOutput) => {
    const end = out.length;
    beginsAt[count] = end;
    for (let nth = 0; nth < count; nth++) newest[fieldOf[nth]!] = nth;
    let first = 0;
    for (let field = 1; field <= length; field++) {
      if (field < length && newest[field] === newest[field - 1]! + 1) continue;
      out.repeat(beginsAt[newest[first]!]!, beginsAt[newest[field - 1]! + 1]!);
      first = field;
    }
    out.cut(beginsAt[0]!, end);
  };

  const read = allOrNothing((source, out, residue) => {
    if (!source.takes(OPEN_OBJECT)) return false;
    let count = 0; // of what was written
    let next = 0; // fields before this one are among that, if only as null
    let previous = length;
    let unknown: Set<string> | undefined;
    valueAt.fill(ABSENT);
    if (!source.takes(CLOSE_OBJECT)) {
      do {
        source.skipSpace();
        const field = fieldAt(source, previous);
        if (field < 0) {
          const key = readUnknown(source, residue);
          if (key === undefined || unknown?.has(key)) return false;
          unknown = (unknown ?? new Set<string>()).add(key);
          continue;
        }
        if (valueAt[field] !== ABSENT) return false; // the last of them counts
        source.skipSpace();
        valueAt[field] = source.at;
        for (; next < field; next++) leaveOut(next, count++, out);
        if (field === next) next += 1;
        fieldOf[count] = field;
        beginsAt[count] = out.length;
        count += 1;
        readField(field, source, out, residue);
        previous = field;
      } while (source.takes(COMMA));
      if (!source.takes(CLOSE_OBJECT)) return false;
    }
    for (; next < length; next++) leaveOut(next, count++, out);
    if (count > length) putInOrder(count, out);
    return true;
  });

  const placeOf = (name: string): number => {
    const nth = byField.get(name);
    return nth === undefined ? ABSENT : valueAt[nth]!;
  };

  return { read, placeOf };
}
