// Converts times and calendar dates between the API's text and Avro's numbers.

import type { JsonCursor } from '../json/json-cursor.ts';
import { getOwn, type JsonObject, type JsonValue } from '../json/json.ts';

const DAY_MS = 86_400_000;
/** Length of a time in the form of {@link instantText}, such as `2024-05-01T12:34:56.789Z`. */
const INSTANT_TEXT_LENGTH = 24;
const DATE_TEXT_LENGTH = 10;

/**
 * Parses a UTC time in ISO 8601 with a precision of at most ms, such as `2024-05-01T12:34:56.789Z`, to epoch ms. Returns NaN for any other
 * text, and for a time that doesn't exist.
 */
export function utcMillis(text: string): number {
  const bytes = Buffer.from(text);
  return utcMillisIn(bytes, 0, bytes.length);
}

/** Parses a time as {@link utcMillis} does, from the UTF-8 bytes between index `from` and `to`. */
function utcMillisIn(bytes: Uint8Array, from: number, to: number): number {
  let end = to;
  if (bytes[to - 1] === UPPER_Z) end -= 1;
  else if (endsInZero(bytes, to)) end -= ZERO_ZONE.length;
  else return NaN;
  return end - from >= 16 && bytes[from + 10] === UPPER_T ? wallMillis(bytes, from, end) : NaN;
}

function endsInZero(bytes: Uint8Array, to: number): boolean {
  for (let k = 1; k <= ZERO_ZONE.length; k++) if (bytes[to - k] !== ZERO_ZONE.at(-k)) return false;
  return true;
}

const ZERO_ZONE = Buffer.from('+00:00');

/**
 * Parses a date and time in a notation like `2024-05-01T12:34:56.789+02:00` to epoch ms. Seconds, fraction and zone are optional; a time
 * without a zone is read as UTC. Returns NaN for any other text, and for a time that doesn't exist.
 */
export function zonedMillis(text: string): number {
  const match = ZONED.exec(text);
  if (!match) return NaN;
  const [, wall = '', fraction = '', sign, hours = '0', minutes = '0'] = match;
  if (Number(hours) > 23 || Number(minutes) > 59) return NaN;
  const offset = (Number(hours) * 60 + Number(minutes)) * 60_000;
  const millis = Number(fraction.slice(0, 3).padEnd(3, '0'));
  return wallMillis(Buffer.from(wall), 0, wall.length) + millis - (sign === '-' ? -offset : offset);
}

const ZONED =
  /^(\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(?::\d\d)?)(?:(?<=:\d\d:\d\d)[.,](\d+))? ?(?:[Zz]|([+-])(\d\d)(?::?(\d\d))?)?$/;

/**
 * Reads a field of a record as an ISO 8601 time or date, in epoch ms; null if it isn't one. A time without a zone is read as UTC, a date as
 * its midnight in UTC.
 */
export function instantOf(record: JsonObject, field: string): number | null {
  return instantIn(getOwn(record, field));
}

/**
 * Reads the JSON value at a cursor as an ISO 8601 time or date, in epoch ms; null if it isn't one. The value must be valid JSON. The
 * cursor's position after the call is unspecified.
 */
export function instantAt(source: JsonCursor): number | null {
  const end = source.endOfText(INSTANT_TEXT_LENGTH);
  const millis = end < 0 ? NaN : utcMillisIn(source.page, source.at + 1, end);
  if (!Number.isNaN(millis)) return millis;
  return instantIn(source.value());
}

/** Parses a time as {@link zonedMillis} does, or a date as its midnight in UTC, to epoch ms; null for any other value. */
export function instantIn(text: JsonValue | undefined): number | null {
  if (typeof text !== 'string') return null;
  if (text.length === DATE_TEXT_LENGTH) return orNull(dateDays(text) * DAY_MS);
  // Not `Date.parse`, which assumes the machine's time zone if none is given.
  return orNull(utcMillis(text)) ?? orNull(zonedMillis(text));
}

function orNull(ms: number): number | null {
  return Number.isNaN(ms) ? null : ms;
}

/** Parses the bytes of `YYYY-MM-DDThh:mm[:ss[.f]]` as UTC to epoch ms, without checking the `T`; NaN if malformed. */
function wallMillis(bytes: Uint8Array, from: number, to: number): number {
  const length = to - from;
  const day = epochDay(bytes, from);
  const hour = twoDigits(bytes, from + 11);
  const minute = twoDigits(bytes, from + 14);
  if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || bytes[from + 13] !== COLON) return NaN;
  const time = day * DAY_MS + hour * 3_600_000 + minute * 60_000;
  if (length === 16) return time;
  const second = length < 19 ? -1 : twoDigits(bytes, from + 17);
  if (second < 0 || second > 59 || bytes[from + 16] !== COLON) return NaN;
  if (length === 19) return time + second * 1_000;
  const fraction = length < 21 || length > 23 ? -1 : digits(bytes, from + 20, to);
  if (fraction < 0 || bytes[from + 19] !== POINT) return NaN;
  return time + second * 1_000 + fraction * (length === 23 ? 1 : length === 22 ? 10 : 100);
}

/** Parses a calendar date (`1980-02-29`) to days since 1970. NaN for any other text, and for a day that doesn't exist. */
export function dateDays(text: string): number {
  return text.length === DATE_TEXT_LENGTH ? epochDay(Buffer.from(text), 0) : NaN;
}

/** Formats epoch ms as the API's JSON does: `2024-05-01T12:34:56.789Z`. */
export function instantText(millis: number): string {
  return new Date(millis).toISOString();
}

/** Parses a time in exactly the form in which {@link instantText} formats it; NaN for any other text, and for a time that doesn't exist. */
export function exactMillis(text: string): number {
  return text.length === INSTANT_TEXT_LENGTH ? utcMillis(text) : NaN; // only the form with ms and `Z` has this length
}

/** Formats days since 1970 as the API's JSON does: `1980-02-29`. */
export function dateText(days: number): string {
  return new Date(days * DAY_MS).toISOString().slice(0, 10);
}

/** Parses the date (`YYYY-MM-DD`) that begins at index `from` to days since 1970; NaN if malformed or if there is no such day. */
function epochDay(bytes: Uint8Array, from: number): number {
  const year = digits(bytes, from, from + 4);
  const month = twoDigits(bytes, from + 5);
  const day = twoDigits(bytes, from + 8);
  if (bytes[from + 4] !== DASH || bytes[from + 7] !== DASH || year < 0) return NaN;
  if (month < 1 || month > 12 || day < 1 || day > daysIn(month, year)) return NaN;
  // With years that begin in March the leap day is the last day of the year. 719,468 days lie between 0000-03-01 and 1970-01-01.
  const y = month > 2 ? year : year - 1;
  const sinceMarch = Math.floor((153 * (month > 2 ? month - 3 : month + 9) + 2) / 5);
  const leapDays = Math.floor(y / 4) - Math.floor(y / 100) + Math.floor(y / 400);
  return y * 365 + leapDays + sinceMarch + day - 1 - 719_468;
}

function daysIn(month: number, year: number): number {
  if (month === 2) return (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0 ? 29 : 28;
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31;
}

function twoDigits(bytes: Uint8Array, at: number): number {
  const tens = bytes[at]! - ZERO;
  const ones = bytes[at + 1]! - ZERO;
  return tens >= 0 && tens <= 9 && ones >= 0 && ones <= 9 ? tens * 10 + ones : -1;
}

function digits(bytes: Uint8Array, from: number, to: number): number {
  let value = 0;
  for (let at = from; at < to; at++) {
    const digit = bytes[at]! - ZERO;
    if (!(digit >= 0 && digit <= 9)) return -1;
    value = value * 10 + digit;
  }
  return value;
}

const [DASH, POINT, ZERO, COLON, UPPER_T, UPPER_Z] = [0x2d, 0x2e, 0x30, 0x3a, 0x54, 0x5a];
