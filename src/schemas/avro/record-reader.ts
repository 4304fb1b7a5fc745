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
  /** The field that came behind field n last time; `next[length]` came first. `length`: none did. */
  const next = Int32Array.from({ length: length + 1 }, (_, nth) => (nth + 1) % (length + 1));
  /** Records read so far: the number of this one. */
  let reads = 0;
  /** By field: the number of the record that had it last, */
  const metIn = new Float64Array(length);
  /** where its value begins in the page, */
  const valueAt = new Int32Array(length);
  /** and where it stands in the output. */
  const writtenFrom = new Int32Array(length);
  const writtenTo = new Int32Array(length);

  /** Which field a name is of, with the name and its colon read; -1 where it is of none, with nothing read. */
  const fieldAt = (source: JsonCursor, previous: number): number => {
    const expected = next[previous]!;
    if (expected < length && source.takesName(names[expected]!)) return expected;
    const { page, at } = source;
    const found = byName.get(page.toString('latin1', at, endOfString(page, at)));
    if (found === undefined || !source.takesName(names[found]!)) return -1;
    next[previous] = found;
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

  const leaveOut = (nth: number, out: AvroOutput) => {
    writtenFrom[nth] = out.length;
    out.byte(NULL_BRANCH);
    writtenTo[nth] = out.length;
  };

  /** Puts the fields in the schema's order, as many at once as follow each other already. */
  const putInOrder = (start: number, out: AvroOutput) => {
    const end = out.length;
    let first = 0;
    for (let nth = 1; nth <= length; nth++) {
      if (nth < length && writtenFrom[nth] === writtenTo[nth - 1]) continue;
      out.repeat(writtenFrom[first]!, writtenTo[nth - 1]!);
      first = nth;
    }
    out.cut(start, end);
  };

  const read = allOrNothing((source, out, residue) => {
    if (!source.takes(OPEN_OBJECT)) return false;
    const start = out.length;
    let written = 0; // fields before this one stand in the output, if only as null
    let previous = length;
    let isInOrder = true;
    let unknown: Set<string> | undefined;
    reads += 1;
    if (!source.takes(CLOSE_OBJECT)) {
      do {
        source.skipSpace();
        const nth = fieldAt(source, previous);
        if (nth < 0) {
          const key = readUnknown(source, residue);
          if (key === undefined || unknown?.has(key)) return false;
          unknown = (unknown ?? new Set<string>()).add(key);
          continue;
        }
        if (metIn[nth] === reads) return false; // the last of them counts
        if (nth < written) isInOrder = false;
        for (; written < nth; written++) leaveOut(written, out);
        if (nth === written) written += 1;
        source.skipSpace();
        metIn[nth] = reads;
        valueAt[nth] = source.at;
        writtenFrom[nth] = out.length;
        readField(nth, source, out, residue);
        writtenTo[nth] = out.length;
        previous = nth;
      } while (source.takes(COMMA));
      if (!source.takes(CLOSE_OBJECT)) return false;
    }
    for (; written < length; written++) leaveOut(written, out);
    if (!isInOrder) putInOrder(start, out);
    return true;
  });

  const placeOf = (name: string): number => {
    const nth = byField.get(name);
    return nth !== undefined && metIn[nth] === reads ? valueAt[nth]! : -1;
  };

  return { read, placeOf };
}
