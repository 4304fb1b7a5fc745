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
/** Address of the notes about values that were left out, nulls, and members without a field. */
export const NOTES = 2 * WASM_PAGE;
/** Address of the output: the record's fields in Avro. One byte, a hole, stands for each value that is left to JavaScript. */
export const OUT = 3 * WASM_PAGE;
/** Address of the window: part of a page, followed by zeros. No JSON contains a zero byte, so reading stops there. */
export const WINDOW = 5 * WASM_PAGE;
export const WINDOW_BYTES = 2 * WASM_PAGE;
/** Number of zero bytes after the window: at least as many as one SIMD or multi-byte load may read beyond the end. */
export const PADDING = 64;
export const MEMORY_BYTES = 8 * WASM_PAGE;

/**
 * Offsets within a type's entry in the program: its kind, one of {@link ODD} to {@link ARRAY}, and its id, which appears in {@link NOTES}
 * and {@link STEPS}.
 */
export const TYPE_KIND = 0;
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
 * Offset within a record's entry: number of its fields. After it come the addresses of the integer arrays described below, and the entries
 * of the fields' types.
 */
export const RECORD_COUNT = 0;
/**
 * Offset of the address of an array by field index: index of the field that followed this field in the last record that was read. An
 * additional last element is the index of the field that came first.
 */
export const RECORD_FOLLOWERS = 4;
/**
 * Offset of the address of an array by field index: window address of the field's value in the last record that was read; 0 if the field
 * was absent.
 */
export const RECORD_VALUES = 8;
/**
 * Offsets of the addresses of two arrays with an element for each field that was written, in the order of the output: the field's index,
 * and the output address at which the field begins. A field that was written twice has two elements.
 */
export const RECORD_WRITTEN = 12;
export const RECORD_BEGINS = 16;
/** Offset of the address of an array by field index: address of the field's last element in the array of RECORD_BEGINS. */
export const RECORD_NEWEST = 20;
export const RECORD_FIELDS = 24;

/** Kinds of types. Values of the kind ODD are always left to JavaScript to encode. */
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

/** Bytes with which Avro writes the branches 0 and 1 of the union `["null", T]`. */
export const NULL_BRANCH = 0;
export const VALUE_BRANCH = 2;

/**
 * Offsets within a note: its kind, {@link NOTE_NULL}, {@link NOTE_HOLE} or {@link NOTE_UNKNOWN}, and the position in the output of the
 * value that the note describes, as an offset from OUT.
 */
export const NOTE_KIND = 0;
export const NOTE_OUT = 4;
/** Offsets within a note: window addresses of the first byte of the described value, and of the byte after its last. */
export const NOTE_FROM = 8;
export const NOTE_TO = 12;
/**
 * Offset within a note. For NOTE_HOLE: type id of the value that was left out. For NOTE_UNKNOWN: window address of the object that has the
 * member.
 */
export const NOTE_OF = 16;
/** Offset within a note: number of steps of the path to the described value, as a 32-bit integer. */
export const NOTE_DEPTH = 20;
/** Offset within a note: the steps of that path, each a 32-bit integer as in {@link STEPS}. */
export const NOTE_STEPS = 24;

export const NOTE_NULL = 0;
/**
 * Kind of a note: a value was left out, for JavaScript to encode. One byte in OUT stands for the value and, in a field, for the union
 * branch.
 */
export const NOTE_HOLE = 1;
/**
 * Kind of a note: an object has a member without a field. The described bytes begin with the member's name; the path is that of the object.
 */
export const NOTE_UNKNOWN = 2;
