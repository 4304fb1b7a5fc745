/** Times and calendar dates as the API writes them, and as Avro counts them. */

const DAY_MS = 86_400_000;

/**
 * An ISO 8601 time in UTC of at most ms (`2024-05-01T12:34:56.789Z`; seconds and their fraction may
 * be left out, `+00:00` may stand for `Z`), as ms since 1970.
 *
 * @returns NaN for any other text, and for a time that doesn't exist.
 */
export function utcMillis(text: string): number {
  let end = text.length;
  if (text.charCodeAt(end - 1) === UPPER_Z) end -= 1;
  else if (text.endsWith('+00:00')) end -= 6;
  else return NaN;
  return end >= 16 && text.charCodeAt(10) === UPPER_T ? wallMillis(text, end) : NaN;
}

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
  return wallMillis(wall, wall.length) + millis - (sign === '-' ? -offset : offset);
}

const ZONED =
  /^(\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(?::\d\d)?)(?:(?<=:\d\d:\d\d)[.,](\d+))? ?(?:[Zz]|([+-])(\d\d)(?::?(\d\d))?)?$/;

/** `YYYY-MM-DDThh:mm[:ss[.f]]`, up to `end`, as if it were UTC; what stands at the `T` is not read. */
function wallMillis(text: string, end: number): number {
  const day = epochDay(text);
  const hour = digits(text, 11, 13);
  const minute = digits(text, 14, 16);
  if (!(hour <= 23 && minute <= 59) || text.charCodeAt(13) !== COLON) return NaN;
  const time = day * DAY_MS + hour * 3_600_000 + minute * 60_000;
  if (end === 16) return time;
  const second = digits(text, 17, 19);
  if (!(second <= 59) || text.charCodeAt(16) !== COLON || end < 19) return NaN;
  if (end === 19) return time + second * 1_000;
  if (text.charCodeAt(19) !== POINT || end < 21 || end > 23) return NaN;
  return time + second * 1_000 + digits(text, 20, end) * (end === 23 ? 1 : end === 22 ? 10 : 100);
}

/**
 * A calendar date (`1980-02-29`) as days since 1970.
 *
 * @returns NaN for any other text, and for a day that doesn't exist.
 */
export function dateDays(text: string): number {
  return text.length === 10 ? epochDay(text) : NaN;
}

/** The time as the API's JSON has it: `2024-05-01T12:34:56.789Z`. */
export function instantText(millis: number): string {
  return new Date(millis).toISOString();
}

/** Whether {@link instantText} gives this very text for the time that {@link utcMillis} reads in it. */
export function isInstantText(text: string): boolean {
  // No other form has its length: down to ms, and with a Z.
  return text.length === 24 && !Number.isNaN(utcMillis(text));
}

/** The date as the API's JSON has it: `1980-02-29`. */
export function dateText(days: number): string {
  return new Date(days * DAY_MS).toISOString().slice(0, 10);
}

/** The day that a text begins with. */
function epochDay(text: string): number {
  const year = digits(text, 0, 4);
  const month = digits(text, 5, 7);
  const day = digits(text, 8, 10);
  if (text.charCodeAt(4) !== DASH || text.charCodeAt(7) !== DASH) return NaN;
  if (!(month >= 1 && month <= 12 && day >= 1 && day <= daysIn(month, year))) return NaN;
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

/** The digits from `start` to `end` as a number, NaN where one isn't a digit. */
function digits(text: string, start: number, end: number): number {
  let value = 0;
  for (let at = start; at < end; at++) {
    const digit = text.charCodeAt(at) - ZERO;
    if (!(digit >= 0 && digit <= 9)) return NaN;
    value = value * 10 + digit;
  }
  return value;
}

const [DASH, POINT, ZERO, COLON, UPPER_T, UPPER_Z] = [0x2d, 0x2e, 0x30, 0x3a, 0x54, 0x5a];
