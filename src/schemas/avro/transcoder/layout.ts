// Memory layout of the transcoder in bytes, shared by JavaScript and WebAssembly (`record-transcoder.ts` explains it). Addresses are
// absolute; constants of records, types and notes are offsets within their structure. Integers have 32 bits unless stated otherwise.

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
/** Address of the output: the record's fields in Avro, with holes for values that are not plain. */
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
/** Offset within a type's entry: address of the fields of a record, or of the item type of an array; scale of a decimal. */
export const TYPE_MORE = 8;
/** Offset within a decimal's entry: exclusive limit of the unscaled absolute value, 10 to the precision, as a double. */
export const TYPE_LIMIT = 16;
/** Offsets within the entry of a field's type: address and size of its JSON name with quotes and colon. */
export const FIELD_NAME = 24;
export const FIELD_NAME_BYTES = 28;
export const TYPE_BYTES = 32;

/**
 * Offset within a record's entry: number of its fields. Then follow the addresses of the integer arrays below, and the types of the fields.
 */
export const RECORD_COUNT = 0;
/**
 * Array, by field index: the field that followed this one in the last record that was read. The entry after the last field: the field that
 * came first.
 */
export const RECORD_FOLLOWERS = 4;
/** Array, by field index: address in the window of the field's value in the last record that was read; 0 if it was absent. */
export const RECORD_VALUES = 8;
/**
 * Array, in the order in which the fields of a record were written: field index, and output address at which the field begins. A field may occur
 * twice.
 */
export const RECORD_WRITTEN = 12;
export const RECORD_BEGINS = 16;
/** Array, by field index: address of the field's last entry in RECORD_BEGINS. */
export const RECORD_NEWEST = 20;
export const RECORD_FIELDS = 24;

/** Kinds of types. Values of ODD types are always left out, for JavaScript to encode. */
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

/** Branches 0 and 1 of `["null", T]`, as Avro writes their index. */
export const NULL_BRANCH = 0;
export const VALUE_BRANCH = 2;

/**
 * Offsets within a note: its kind, {@link NOTE_NULL}, {@link NOTE_HOLE} or {@link NOTE_UNKNOWN}, and the output offset of the noted value,
 * from OUT.
 */
export const NOTE_KIND = 0;
export const NOTE_OUT = 4;
/** Offsets within a note: window addresses of the noted value's first byte and of the byte after its last. */
export const NOTE_FROM = 8;
export const NOTE_TO = 12;
/** Offset within a note: id of the type of a value that was left out; window address of the object around a member without a field. */
export const NOTE_OF = 16;
/** Offsets within a note: number of steps of the path to the noted value, and the steps. */
export const NOTE_DEPTH = 20;
export const NOTE_STEPS = 24;

export const NOTE_NULL = 0;
/** A value is left out, for JavaScript to encode. One byte stands for it in OUT, including the union branch of a field. */
export const NOTE_HOLE = 1;
/** An object has a member without a field. The noted bytes begin with its name, and the path is that of the object. */
export const NOTE_UNKNOWN = 2;
