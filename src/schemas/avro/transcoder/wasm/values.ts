// Converts numbers, strings, times and dates from JSON to Avro.

import { DECIMAL, DOUBLE, INT, TYPE_KIND, TYPE_LIMIT, TYPE_MORE } from '../layout.ts';
import {
  endsWord,
  MINUS,
  POINT,
  ZERO,
  Here,
  BACKSLASH,
  QUOTE,
  SPACE,
  COLON,
  PLUS,
  UPPER_T,
  UPPER_Z,
} from './window.ts';

/**
 * Maximum number of digits of a number that WebAssembly reads. Up to 15 digits and their power of ten are exact doubles, so one division
 * rounds as `JSON.parse` does.
 */
const MAX_DIGITS = 15;
/** Maximum magnitude of a decimal's unscaled value that WebAssembly writes. Decimals with a larger one are left to JavaScript. */
const MAX_EXACT: i64 = 1_000_000_000_000_000; // as in `field-codecs.ts`

/**
 * Reads a number of at most 15 digits without an exponent, and writes it with {@link writeNumber}. Returns false, with nothing read or
 * written, if that is not possible.
 */
export function readNumber(type: i32): bool {
  const isNegative = load<u8>(Here.at) == MINUS;
  const start = isNegative ? Here.at + 1 : Here.at;
  let end = start;
  let number: i64 = 0;
  let digit = load<u8>(end) - ZERO;
  for (; digit <= 9 && end - start <= MAX_DIGITS; digit = load<u8>(++end) - ZERO) {
    number = number * 10 + digit;
  }
  let digits = end - start;
  if (digits == 0 || (digits > 1 && load<u8>(start) == ZERO)) return false;
  let decimals = 0;
  if (load<u8>(end) == POINT) {
    end += 1;
    digit = load<u8>(end) - ZERO;
    for (; digit <= 9 && digits <= MAX_DIGITS; digit = load<u8>(++end) - ZERO) {
      number = number * 10 + digit;
      digits += 1;
      decimals += 1;
    }
    if (decimals == 0) return false;
  }
  if (digits > MAX_DIGITS || !endsWord(load<u8>(end))) return false;
  if (isNegative && number == 0) return false; // -0
  if (!writeNumber(type, isNegative ? -number : number, decimals)) return false;
  Here.at = end;
  return true;
}

/** Writes `number / 10 ** decimals`. Returns false if the type can't represent this value or {@link writeDecimal} can't write it. */
function writeNumber(type: i32, number: i64, decimals: i32): bool {
  const kind = load<i32>(type, TYPE_KIND);
  if (kind == DOUBLE) {
    store<f64>(Here.out, <f64>number / <f64>powerOfTen(decimals));
    Here.out += 8;
    return true;
  }
  const scale = kind == DECIMAL ? load<i32>(type, TYPE_MORE) : 0;
  let whole = number;
  if (decimals > scale) {
    const divisor = powerOfTen(decimals - scale);
    if (whole % divisor != 0) return false;
    whole /= divisor;
  }
  if (kind == DECIMAL)
    return writeDecimal(whole, scale - min(decimals, scale), load<f64>(type, TYPE_LIMIT));
  if (kind == INT && whole != <i64>(<i32>whole)) return false;
  writeLong(whole);
  return true;
}

/**
 * Writes a decimal with the unscaled value `number * 10 ** more`. Returns false if the magnitude of this value is at least `limit` or above
 * {@link MAX_EXACT}, or if `more` is above {@link MAX_DIGITS}.
 */
function writeDecimal(number: i64, more: i32, limit: f64): bool {
  if (more > MAX_DIGITS || abs(number) > MAX_EXACT / powerOfTen(more)) return false;
  const unscaled = number * powerOfTen(more);
  if (abs(<f64>unscaled) >= limit) return false;
  // Big-endian two's complement, in the fewest bytes.
  const magnitude = unscaled < 0 ? ~unscaled : unscaled;
  const bytes = ((64 - <i32>clz(magnitude)) >> 3) + 1;
  Here.write(<u8>(bytes << 1));
  for (let shift = (bytes - 1) << 3; shift >= 0; shift -= 8) Here.write(<u8>(unscaled >> shift));
  return true;
}

function powerOfTen(exponent: i32): i64 {
  let power: i64 = 1;
  for (let k = 0; k < exponent; k++) power *= 10;
  return power;
}

/** Writes Avro's long: zigzag encoding, seven bits per byte. */
export function writeLong(value: i64): void {
  let rest = <u64>((value << 1) ^ (value >> 63));
  for (; rest > 0x7f; rest >>= 7) Here.write(<u8>(rest | 0x80));
  Here.write(<u8>rest);
}

/** Number of bytes that one SIMD load examines. */
const LANES = 16;
/** Longest string, in bytes, whose Avro length takes one byte. */
const MAX_ONE_BYTE = 63;

/**
 * Reads the JSON string at the read position, and writes it to the output as an Avro string. Returns false, with both positions unchanged,
 * if the value is no string, has escapes, is not valid UTF-8, or does not fit into the output.
 */
export function readText(): bool {
  if (load<u8>(Here.at) != QUOTE) return false;
  const start = Here.at + 1;
  let end = start;
  let to = Here.out + 1; // assumes that the length takes one byte
  let odd = 0;
  do {
    if (Here.hasRoom(end - start)) v128.store(to, v128.load(end));
    odd = oddOnes(end);
    end += LANES;
    to += LANES;
  } while (odd == 0);
  const copied = end - start;
  end += ctz(odd) - LANES;
  if (load<u8>(end) >= 0x80) end = endOfUtf8(end);
  if (load<u8>(end) != QUOTE) return false;
  const size = end - start;
  if (!Here.hasRoom(size)) return false;
  if (size <= MAX_ONE_BYTE && size <= copied) {
    store<u8>(Here.out, <u8>(size << 1));
    Here.out += 1;
  } else {
    writeLong(size);
    memory.copy(Here.out, start, size);
  }
  Here.out += size;
  Here.at = end + 1;
  return true;
}

/**
 * Returns the address of the closing quote of the string at the read position; 0 if there is no string of at most 31 ASCII characters
 * without an escape.
 */
export function endOfShortText(): i32 {
  if (load<u8>(Here.at) != QUOTE) return 0;
  let end = Here.at + 1;
  let odd = oddOnes(end);
  if (odd == 0) {
    end += LANES;
    odd = oddOnes(end);
    if (odd == 0) return 0;
  }
  end += ctz(odd);
  return load<u8>(end) == QUOTE ? end : 0;
}

/** Returns a bit mask of the next 16 bytes: a bit is 1 for a quote, a backslash, a control character, or a byte of 0x80 or more. */
function oddOnes(at: i32): i32 {
  const bytes = v128.load(at);
  const quotes = i8x16.eq(bytes, i8x16.splat(QUOTE));
  const backslashes = i8x16.eq(bytes, i8x16.splat(BACKSLASH));
  const others = i8x16.lt_s(bytes, i8x16.splat(SPACE)); // signed comparison: control characters, and bytes from 0x80 on
  return i8x16.bitmask(v128.or(v128.or(quotes, backslashes), others));
}

/** Returns the address of the first byte that doesn't belong to valid UTF-8 text without escapes: usually the closing quote. */
function endOfUtf8(from: i32): i32 {
  let at = from;
  for (let byte = load<u8>(at); byte != QUOTE; byte = load<u8>(at)) {
    if (byte < SPACE || byte == BACKSLASH) return at;
    const size = sizeOfCharacter(at);
    if (size == 0) return at;
    at += size;
  }
  return at;
}

/** Returns the size in bytes of a UTF-8 character; 0 if it is malformed according to table 3-7 of Unicode 15. */
function sizeOfCharacter(at: i32): i32 {
  const first = load<u8>(at);
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4) return 0;
  const second = load<u8>(at + 1);
  if (first < 0xe0) return second >> 6 == 2 ? 2 : 0;
  const least: u8 = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  const most: u8 = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  if (second < least || second > most || load<u8>(at + 2) >> 6 != 2) return 0;
  if (first < 0xf0) return 3;
  return load<u8>(at + 3) >> 6 == 2 ? 4 : 0;
}

// Times and dates that are fully represented by an instant or a day, by the same rules as in `instant.ts`.

const NONE: i64 = i64.MIN_VALUE;
const DAY_MS: i64 = 86_400_000;
/** Size in bytes of a time such as `2024-05-01T12:34:56.789Z`. */
const INSTANT_BYTES = 24;
/** Size in bytes of a date such as `1980-02-29`. */
const DATE_BYTES = 10;

/**
 * Reads a JSON string with a UTC time of at most ms precision, and writes the time as epoch ms. With `isExact`, accepts only times of the
 * form `2024-05-01T12:34:56.789Z`. Returns false, with nothing read or written, for any other value.
 */
export function readTimestamp(isExact: bool): bool {
  const start = Here.at + 1;
  const end = endOfShortText();
  if (end == 0 || (isExact && end - start != INSTANT_BYTES)) return false;
  const millis = utcMillis(start, end);
  if (millis == NONE) return false;
  writeLong(millis);
  Here.at = end + 1;
  return true;
}

export function readDate(): bool {
  const start = Here.at + 1;
  const end = endOfShortText();
  if (end == 0 || end - start != DATE_BYTES) return false;
  const day = epochDay(start);
  if (day == NONE) return false;
  writeLong(day);
  Here.at = end + 1;
  return true;
}

/**
 * Parses `YYYY-MM-DDThh:mm[:ss[.f]]`, with one to three decimals `f`, followed by `Z` or `+00:00`. Returns epoch ms; {@link NONE} for
 * anything else.
 */
function utcMillis(from: i32, to: i32): i64 {
  let length = to - from;
  if (length < 17) return NONE;
  if (load<u8>(to - 1) == UPPER_Z) length -= 1;
  else if (length >= 22 && isZeroZone(to - 6)) length -= 6;
  else return NONE;
  const day = epochDay(from);
  const hour = twoDigits(from + 11);
  const minute = twoDigits(from + 14);
  if (load<u8>(from + 10) != UPPER_T || load<u8>(from + 13) != COLON) return NONE;
  if (day == NONE || hour > 23 || minute > 59) return NONE;
  const time = day * DAY_MS + hour * 3_600_000 + minute * 60_000;
  if (length == 16) return time;
  const second = twoDigits(from + 17);
  if (length < 19 || load<u8>(from + 16) != COLON || second > 59) return NONE;
  if (length == 19) return time + second * 1_000;
  if (length < 21 || length > 23 || load<u8>(from + 19) != POINT) return NONE;
  let millis: u32 = 0;
  for (let k = 20; k < 23; k++) {
    const digit: u8 = k < length ? load<u8>(from + k) - ZERO : 0;
    if (digit > 9) return NONE;
    millis = millis * 10 + digit;
  }
  return time + second * 1_000 + millis;
}

function isZeroZone(from: i32): bool {
  const isHour = load<u8>(from) == PLUS && twoDigits(from + 1) == 0;
  return isHour && load<u8>(from + 3) == COLON && twoDigits(from + 4) == 0;
}

/** Parses `YYYY-MM-DD` to days since 1970; {@link NONE} for text that is no date. */
function epochDay(from: i32): i64 {
  const century = twoDigits(from);
  const ofCentury = twoDigits(from + 2);
  const month = twoDigits(from + 5);
  const day = twoDigits(from + 8);
  if (load<u8>(from + 4) != MINUS || load<u8>(from + 7) != MINUS) return NONE;
  if (century > 99 || ofCentury > 99 || month < 1 || month > 12) return NONE;
  const year = <i32>(century * 100 + ofCentury);
  if (day < 1 || day > daysIn(month, year)) return NONE;
  // With years that begin in March the leap day is the last day of the year. 719,468 days lie between 0000-03-01 and 1970-01-01.
  const y = month > 2 ? year : year - 1;
  const sinceMarch = <i32>((153 * (month > 2 ? month - 3 : month + 9) + 2) / 5);
  const leapDays = y < 0 ? -1 : y / 4 - y / 100 + y / 400;
  return y * 365 + leapDays + sinceMarch + <i32>day - 1 - 719_468;
}

function daysIn(month: u32, year: i32): u32 {
  if (month == 2) return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0 ? 29 : 28;
  return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
}

/** Returns the value of the two ASCII digits at address `from`; a number above 99 if one of the two bytes isn't a digit. */
function twoDigits(from: i32): u32 {
  const tens = <u32>load<u8>(from) - ZERO;
  const ones = <u32>load<u8>(from + 1) - ZERO;
  return tens <= 9 && ones <= 9 ? tens * 10 + ones : 100;
}
