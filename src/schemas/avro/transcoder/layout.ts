// Memory layout of the transcoder in bytes, shared by JavaScript and WebAssembly (`record-transcoder.ts` explains it). A note is an entry
// in which WebAssembly describes a value of the record to JavaScript: a null, a value that was left out, or a member without a field.
// Addresses are absolute; constants of records, types and notes are offsets within their structure. Integers have 32 bits unless stated
// otherwise.

/** Size of a WebAssembly memory page in bytes, the unit by which memory grows. */
export const WASM_PAGE = 65_536;

/** Address of the result of the last call of `transcode`: the numbers of bytes written at {@link OUT} and {@link NOTES}. */
export const RESULT = 0;
export const RESULT_OUT = 0;
export const RESULT_NOTES = 4;

/**
 * Address of the path to the value being read. Each step is one integer: the type id of a field, or `~index`, which is negative, for an
 * item of an array.
 */
export const STEPS = 1_024;
/** Maximum number of steps of a path; values nested deeper are left to JavaScript. */
export const MAX_DEPTH = 256;

/** Address of the compiled schema, as `record-transcoder.ts` writes it. */
export const PROGRAM = 4_096;
/**
 * Address of the notes: the entries in which WebAssembly describes to JavaScript each value that it left out, each null, and each member
 * without a field.
 */
export const NOTES = 2 * WASM_PAGE;
/** Address of the output: the record's fields in Avro. One byte, a hole, stands for each value that is left to JavaScript. */
export const OUT = 3 * WASM_PAGE;
/** Address of the input window: part of a page, followed by zeros. No JSON contains a zero byte, so reading stops there. */
export const WINDOW = 5 * WASM_PAGE;
export const WINDOW_BYTES = 2 * WASM_PAGE;
/** Number of zero bytes after the input window: at least as many as one SIMD or multi-byte load may read beyond the end. */
export const PADDING = 64;
export const MEMORY_BYTES = 8 * WASM_PAGE;

/** Offset within a type's entry in the program: kind of the type, one of {@link ODD} to {@link ARRAY}. */
export const TYPE_KIND = 0;
/** Offset within a type's entry in the program: id of the type, which appears in {@link NOTES} and {@link STEPS}. */
export const TYPE_ID = 4;
/**
 * Offset within a type's entry. For a record: address of the record's entry ({@link RECORD_COUNT}). For an array: address of the entry of
 * its item type. For a decimal: its scale.
 */
export const TYPE_MORE = 8;
/** Offset within a decimal's entry: exclusive limit of the unscaled absolute value, 10 to the precision, as a double. */
export const TYPE_LIMIT = 16;
/** Offset within a type's entry: address of the field's JSON name as it stands in a page, with quotes and colon. */
export const FIELD_NAME = 24;
/** Offset within a type's entry: size of that JSON name, in bytes. */
export const FIELD_NAME_BYTES = 28;
export const TYPE_BYTES = 32;

/**
 * Offset within a record's entry: number of the record's fields. After it the entry has the addresses of five integer arrays
 * ({@link RECORD_FOLLOWERS} to {@link RECORD_NEWEST}) and, from {@link RECORD_FIELDS} on, the entries of the fields' types.
 */
export const RECORD_COUNT = 0;
/**
 * Offset within a record's entry: address of an array with an element for each field: index of the field whose name is tried first after
 * this field, which is the field that followed it most recently. An additional last element is the index of the field to try first in a
 * record.
 */
export const RECORD_FOLLOWERS = 4;
/**
 * Offset within a record's entry: address of an array with an element for each field: input window address of the field's value in the last
 * record that was read; 0 if that record lacks the field.
 */
export const RECORD_VALUES = 8;
/**
 * Offset within a record's entry: address of an array with an element for each time that a field was written, in the order of the output:
 * index of the field. A field that is first written as null and later with its value has two elements.
 */
export const RECORD_WRITTEN = 12;
/**
 * Offset within a record's entry: address of an array with the output address at which each field of {@link RECORD_WRITTEN} begins, in the
 * same order.
 */
export const RECORD_BEGINS = 16;
/**
 * Offset within a record's entry: address of an array with an element for each field: address of the element of the array of
 * {@link RECORD_BEGINS} that belongs to the last time that the field was written.
 */
export const RECORD_NEWEST = 20;
export const RECORD_FIELDS = 24;

/**
 * Kind of a type whose values are never encoded by WebAssembly: they are always left to JavaScript. The constants from here to
 * {@link ARRAY} are the kinds of types.
 */
export const ODD = 0;
export const STRING = 1;
export const INT = 2;
export const LONG = 3;
export const DOUBLE = 4;
export const DECIMAL = 5;
export const BOOLEAN = 6;
export const TIMESTAMP = 7;
export const EXACT_TIMESTAMP = 8;
export const DATE = 9;
export const RECORD = 10;
export const ARRAY = 11;

/** Byte with which Avro writes the branch `null` of the union `["null", T]`. */
export const NULL_BRANCH = 0;
/** Byte with which Avro writes the branch `T` of the union `["null", T]`. */
export const VALUE_BRANCH = 2;

/** Offset within a note: kind of the note, one of {@link NOTE_NULL}, {@link NOTE_HOLE} and {@link NOTE_UNKNOWN}. */
export const NOTE_KIND = 0;
/** Offset within a note: where the output has the null or the hole that the note describes, as an offset from {@link OUT}. */
export const NOTE_OUT = 4;
/**
 * Offset within a note: input window address of the first byte of the described value; for NOTE_UNKNOWN, of the first byte of the member's
 * name.
 */
export const NOTE_FROM = 8;
/** Offset within a note: input window address of the byte after the described value; for NOTE_UNKNOWN, after the member's value. */
export const NOTE_TO = 12;
/**
 * Offset within a note. For NOTE_HOLE: type id of the value that was left out. For NOTE_UNKNOWN: input window address of the object that
 * has the member without a field.
 */
export const NOTE_OF = 16;
/** Offset within a note: number of steps of the path at {@link NOTE_STEPS}. */
export const NOTE_DEPTH = 20;
/**
 * Offset, within a note, of a path. It leads to the value that the note describes; in a NOTE_UNKNOWN, to the object that contains the
 * unknown member. Each step of the path is an integer as in {@link STEPS}.
 */
export const NOTE_STEPS = 24;

export const NOTE_NULL = 0;
/**
 * Kind of a note: a value was left out of the output, for JavaScript to encode. One byte in the output, the hole, stands for the value and,
 * if it is the value of a field, also for its union branch.
 */
export const NOTE_HOLE = 1;
/**
 * Kind of a note: an object has a member for which there is no field. {@link NOTE_FROM} and {@link NOTE_TO} enclose the member's name and
 * value.
 */
export const NOTE_UNKNOWN = 2;
