// Times and calendar dates as the API writes them, and as Avro counts them.

import type { JsonCursor } from '../json/json-cursor.ts';
import type { JsonObject } from '../json/json.ts';

const DAY_MS = 86_400_000;
/** `2024-05-01T12:34:56.789Z`, the one form that {@link instantText} gives. */
export const INSTANT_TEXT_LENGTH = 24;
/** `1980-02-29`. */
const DATE_TEXT_LENGTH = 10;

/**
 * An ISO 8601 time in UTC of at most ms (`2024-05-01T12:34:56.789Z`; seconds and their fraction may
 * be left out, `+00:00` may stand for `Z`), as ms since 1970.
 *
 * @returns NaN for any other text, and for a time that doesn't exist.
 */
export function utcMillis(text: string): number {
  const bytes = Buffer.from(text);
  return utcMillisIn(bytes, 0, bytes.length);
}

/** The same of a text that stands in bytes, in UTF-8. */
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
 * Any ISO 8601 time with a date in front: with another zone, without one (read as UTC), of finer
 * fractions (cut off), with a space or a small letter for the `T`. As ms since 1970.
 *
 * @returns NaN for any other text, and for a time that doesn't exist.
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
 * A field read as an instant, ISO 8601: ms since 1970, or null when it is not one. Without a
 * zone it is UTC, as in the schemas.
 */
export function instantOf(record: JsonObject, field: string): number | null {
  const value = Object.hasOwn(record, field) ? record[field] : undefined;
  return typeof value === 'string' ? instantIn(value) : null;
}

/** The same of the value that a cursor is at, which is JSON. Where the cursor is left is of no use. */
export function instantAt(source: JsonCursor): number | null {
  const end = source.endOfText(INSTANT_TEXT_LENGTH);
  const millis = end < 0 ? NaN : utcMillisIn(source.page, source.at + 1, end);
  if (!Number.isNaN(millis)) return millis;
  const value = source.value();
  return typeof value === 'string' ? instantIn(value) : null;
}

/**
 * The instant that a text says: a time as {@link zonedMillis} takes it, or a calendar date, which is its midnight in UTC. As ms since
 * 1970; null for any other text. (`Date.parse` would take the machine's own zone where none is said.)
 */
function instantIn(text: string): number | null {
  if (text.length === DATE_TEXT_LENGTH) return orNull(dateDays(text) * DAY_MS);
  return orNull(utcMillis(text)) ?? orNull(zonedMillis(text));
}

function orNull(ms: number): number | null {
  return Number.isNaN(ms) ? null : ms;
}

/** `YYYY-MM-DDThh:mm[:ss[.f]]`, of these bytes, as if it were UTC; what stands at the `T` is not read. */
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

/**
 * A calendar date (`1980-02-29`) as days since 1970.
 *
 * @returns NaN for any other text, and for a day that doesn't exist.
 */
export function dateDays(text: string): number {
  return text.length === DATE_TEXT_LENGTH ? epochDay(Buffer.from(text), 0) : NaN;
}

/** The time as the API's JSON has it: `2024-05-01T12:34:56.789Z`. */
export function instantText(millis: number): string {
  return new Date(millis).toISOString();
}

/** Whether {@link instantText} gives this very text for the time that {@link utcMillis} reads in it. */
export function isInstantText(text: string): boolean {
  // No other form has its length: down to ms, and with a Z.
  return text.length === INSTANT_TEXT_LENGTH && !Number.isNaN(utcMillis(text));
}

/** The date as the API's JSON has it: `1980-02-29`. */
export function dateText(days: number): string {
  return new Date(days * DAY_MS).toISOString().slice(0, 10);
}

/** The day that a text begins with. */
function epochDay(bytes: Uint8Array, from: number): number {
  const year = digits(bytes, from, from + 4);
  const month = twoDigits(bytes, from + 5);
  const day = twoDigits(bytes, from + 8);
  if (bytes[from + 4] !== DASH || bytes[from + 7] !== DASH || year < 0) return NaN;
  if (month < 1 || month > 12 || day < 1 || day > daysIn(month, year)) return NaN;
  // Years that begin in March have their leap day last; 719,468 days lead from then to 1970.
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

/** The digits from one place to another as a number, -1 where one isn't a digit. */
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
