// What stands where in the memory of the transcoder, in bytes; for both sides of it.

/** What WebAssembly's memory grows by. */
export const WASM_PAGE = 65_536;

/** What it has come to, in two integers (of 32 bits, as all are that have no other size). */
export const RESULT = 0;
/** Bytes from OUT on. */
export const RESULT_OUT = 0;
/** Bytes from NOTES on. */
export const RESULT_NOTES = 4;

/** The steps to what is being read, an integer each: the id of a field's type, or an item's place in its array as `~nth`. */
export const STEPS = 1_024;
export const MAX_DEPTH = 256;

/** A schema, as `record-transcoder.ts` writes it. */
export const PROGRAM = 4_096;
/** What is not in OUT as it should be. */
export const NOTES = 2 * WASM_PAGE;
/** An image, as far as it is plain. */
export const OUT = 3 * WASM_PAGE;
/** A stretch of a page, with zeros behind it. A zero is in no JSON, so reading stops there. */
export const WINDOW = 5 * WASM_PAGE;
export const WINDOW_BYTES = 2 * WASM_PAGE;
/** Zeros behind the window: more than is looked at in one go. */
export const PADDING = 64;
export const MEMORY_BYTES = 8 * WASM_PAGE;

/** A type: what is read of it, and what it is called in notes. */
export const TYPE_KIND = 0;
export const TYPE_ID = 4;
/** Of a record: where it stands. Of an array: where the type of its items does. Of a decimal: its scale. */
export const TYPE_MORE = 8;
/** Of a decimal: the least number that it doesn't hold, times ten to its scale; a double. */
export const TYPE_LIMIT = 16;
/** Of a field: where its name stands, in quotes and with its colon, and the bytes that it takes. */
export const FIELD_NAME = 24;
export const FIELD_NAME_BYTES = 28;
export const TYPE_BYTES = 32;

/** A record: how many fields it has, where lists of integers are that it needs, and its fields. */
export const RECORD_COUNT = 0;
/** By field: the one that came behind it last time. One entry more, at the end, is the field that came first. */
export const RECORD_FOLLOWERS = 4;
/** By field: where its value begins in the record that was read last; 0 where it has none. */
export const RECORD_VALUES = 8;
/** In the order in which they were written, some of them twice: which field it is, and where it begins. */
export const RECORD_WRITTEN = 12;
export const RECORD_BEGINS = 16;
/** By field: its last place in that order. */
export const RECORD_NEWEST = 20;
export const RECORD_FIELDS = 24;

/** Kinds of types. Values of an odd one are always left to others. */
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

/** A note: what is noted, and of what. */
export const NOTE_KIND = 0;
/** Where in OUT, from its beginning. */
export const NOTE_OUT = 4;
/** Where what it is of begins in the window, and the place behind it. */
export const NOTE_FROM = 8;
export const NOTE_TO = 12;
/** Of a hole: the id of its type. Of an unknown member: where the object begins that it is in. */
export const NOTE_OF = 16;
/** How many steps lead there, and these. */
export const NOTE_DEPTH = 20;
export const NOTE_STEPS = 24;

/** A field is null. */
export const NOTE_NULL = 0;
/** A value is left to others: one byte stands for it in OUT, and for the branch of a field. */
export const NOTE_HOLE = 1;
/** A member has no field. It begins with its name, and the steps are those to the object that it is in. */
export const NOTE_UNKNOWN = 2;
