// Memory layout of the transcoder in bytes, shared by JavaScript and WebAssembly (`record-transcoder.ts` explains it). A note is an entry
// in which WebAssembly describes a value of the record to JavaScript: a null, a value that was left out, or a member without a field.
// Addresses are absolute; constants of records, types and notes are offsets within their structure. Integers have 32 bits unless stated
// otherwise.

/** Size of a WebAssembly memory page in bytes, the unit by which memory grows. */
export const WASM_PAGE = 65_536;

/** Address of the result of the last call of `transcode`: the sizes in bytes of the output and of the notes, one integer each. */
export const RESULT = 0;
export const RESULT_OUT = 0;
export const RESULT_NOTES = 4;

/**
 * Address, in WebAssembly's memory, of the path from the record to the value that is being read. Each step of the path is one integer: the
 * type id of a field, or `~index` (negative) for an item of an array.
 */
export const STEPS = 1_024;
/** Maximum nesting depth of a value that WebAssembly encodes, in steps of its path; deeper values are left to JavaScript. */
export const MAX_DEPTH = 256;

/** Address of the compiled schema, as `record-transcoder.ts` writes it. */
export const PROGRAM = 4_096;
/**
 * Address of the notes: the entries in which WebAssembly describes to JavaScript each value that it left out, each null, and each member
 * without a field.
 */
export const NOTES = 2 * WASM_PAGE;
/**
 * Address, in WebAssembly's memory, of the output: the fields of the record in Avro. One byte, a hole, stands for each value that
 * JavaScript has to encode.
 */
export const OUT = 3 * WASM_PAGE;
/** Address of the input window: part of a list's page, followed by zeros. JSON has no zero byte, so reading stops there. */
export const WINDOW = 5 * WASM_PAGE;
export const WINDOW_BYTES = 2 * WASM_PAGE;
/** Number of zero bytes after the input window: at least as many as one SIMD or multi-byte load may read beyond the end. */
export const PADDING = 64;
export const MEMORY_BYTES = 8 * WASM_PAGE;

/** Byte offset, in a type's entry in the compiled schema, of the number that stands for the kind of type: {@link ODD} to {@link ARRAY}. */
export const TYPE_KIND = 0;
/** Byte offset, in a type's entry in the compiled schema, of the type's id: its index in the array `types` of `Program`. */
export const TYPE_ID = 4;
/**
 * Byte offset, in a type's entry in the compiled schema, of an integer whose meaning depends on the kind of type:
 * - record: the address of another entry, which describes the record's fields and begins at {@link RECORD_COUNT};
 * - array: the address of the entry of the items' type;
 * - decimal: the scale.
 */
export const TYPE_MORE = 8;
/**
 * Byte offset, in a decimal type's entry in the compiled schema, of a double with the value 10 ** precision. Unscaled values of decimals
 * must be smaller in magnitude.
 */
export const TYPE_LIMIT = 16;
/** Byte offset, in the entry of a field's type, of a pointer to the field's JSON name. The name is stored as `"name":`. */
export const FIELD_NAME = 24;
/** Byte offset, in the entry of a field's type, of the length in bytes of the stored JSON name `"name":`. */
export const FIELD_NAME_BYTES = 28;
export const TYPE_BYTES = 32;

/**
 * Byte offset, within a record type's entry in the compiled schema, of the number of fields. The addresses of five integer arrays follow it
 * and then, from {@link RECORD_FIELDS} on, an entry for the type of each field.
 */
export const RECORD_COUNT = 0;
/**
 * Byte offset, within a record type's entry in the compiled schema, of the address of an array that predicts the order of an object's
 * members. Element `k` is the index of the field expected after field `k`. The last element is the index of the field expected first.
 */
export const RECORD_FOLLOWERS = 4;
/**
 * Byte offset, within a record type's entry in the compiled schema, of the address of an array. For each field, the array has the address
 * of the field's value in the object that was read last, or 0 if that object lacks the field.
 */
export const RECORD_VALUES = 8;
/**
 * Byte offset, within a record type's entry in the compiled schema, of the address of an array. The array lists the indexes of the fields
 * in the order in which they were written to the output. A field written first as null and later with its value is listed twice.
 */
export const RECORD_WRITTEN = 12;
/**
 * Byte offset, within a record type's entry in the compiled schema, of the address of an array. For each field listed in the array at
 * {@link RECORD_WRITTEN}, this array has the address at which the field's output begins.
 */
export const RECORD_BEGINS = 16;
/**
 * Byte offset, within a record type's entry in the compiled schema, of the address of an array. For each field, this array has the address
 * of an element of the array at {@link RECORD_BEGINS}: the last element that belongs to the field.
 */
export const RECORD_NEWEST = 20;
export const RECORD_FIELDS = 24;

/**
 * Kind of an Avro type that WebAssembly does not support: all its values are left to JavaScript. The constants from here to {@link ARRAY}
 * are the kinds of types.
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

/** Byte offset, in a note about a value, of the kind of the note: {@link NOTE_NULL}, {@link NOTE_HOLE} or {@link NOTE_UNKNOWN}. */
export const NOTE_KIND = 0;
/**
 * Byte offset, in a note (the transcoder's message to JavaScript about one value), of the index in the output at which one byte stands for
 * the value. Unused in a {@link NOTE_UNKNOWN}.
 */
export const NOTE_OUT = 4;
/**
 * Byte offset, in a note (the transcoder's message to JavaScript about one value), of the address, in the input window, at which the value
 * begins. In a {@link NOTE_UNKNOWN}, the member's name begins there.
 */
export const NOTE_FROM = 8;
/**
 * Byte offset, in a note (the transcoder's message to JavaScript about one value), of the value's end: the address, in the input window, of
 * the first byte after the value.
 */
export const NOTE_TO = 12;
/**
 * Byte offset, in a note (the transcoder's message to JavaScript about one value), of an integer whose meaning depends on the kind of the
 * note:
 * - NOTE_HOLE: type id of the value;
 * - NOTE_UNKNOWN: address, in the input window, of the object that has the member;
 * - NOTE_NULL: 0.
 */
export const NOTE_OF = 16;
/** Byte offset, in a note (the transcoder's message to JavaScript about one value), of the path's number of steps. */
export const NOTE_DEPTH = 20;
/**
 * Byte offset, in a note (the transcoder's message to JavaScript about one value), of the path to the value, with steps as in
 * {@link STEPS}. In a {@link NOTE_UNKNOWN}, the path leads to the object that has the unknown member.
 */
export const NOTE_STEPS = 24;

export const NOTE_NULL = 0;
/**
 * Kind of a note about a value that WebAssembly left to JavaScript. In the output, one byte (a hole) stands for the value; in a field, also
 * for the union branch.
 */
export const NOTE_HOLE = 1;
/**
 * Kind of a note (message to JavaScript) about an object member for which the schema has no field. {@link NOTE_FROM} and {@link NOTE_TO}
 * enclose the member's name and value.
 */
export const NOTE_UNKNOWN = 2;
