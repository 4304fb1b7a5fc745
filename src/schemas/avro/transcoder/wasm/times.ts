// Times and dates that say no more than an instant or a day, by the rules of `instant.ts`.

import { COLON, MINUS, PLUS, POINT, UPPER_T, UPPER_Z, ZERO } from './characters.ts';
import { writeLong } from './numbers.ts';
import { Here } from './state.ts';
import { endOfShortText } from './texts.ts';

const NONE: i64 = i64.MIN_VALUE;
const DAY_MS: i64 = 86_400_000;
/** `2024-05-01T12:34:56.789Z`. */
const INSTANT_BYTES = 24;
/** `1980-02-29`. */
const DATE_BYTES = 10;

/** A time in UTC of at most ms; an exact one in the form alone that has all of it. */
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

/** `YYYY-MM-DDThh:mm[:ss[.f]]` with a Z or `+00:00` behind it, as ms since 1970. */
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

/** `+00:00`. */
function isZeroZone(from: i32): bool {
  const isHour = load<u8>(from) == PLUS && twoDigits(from + 1) == 0;
  return isHour && load<u8>(from + 3) == COLON && twoDigits(from + 4) == 0;
}

/** The day `YYYY-MM-DD`, since 1970; {@link NONE} where there is no such day. */
function epochDay(from: i32): i64 {
  const century = twoDigits(from);
  const ofCentury = twoDigits(from + 2);
  const month = twoDigits(from + 5);
  const day = twoDigits(from + 8);
  if (load<u8>(from + 4) != MINUS || load<u8>(from + 7) != MINUS) return NONE;
  if (century > 99 || ofCentury > 99 || month < 1 || month > 12) return NONE;
  const year = <i32>(century * 100 + ofCentury);
  if (day < 1 || day > daysIn(month, year)) return NONE;
  // Years that begin in March have their leap day last; 719,468 days lead from then to 1970. None ends before the year 0.
  const y = month > 2 ? year : year - 1;
  const sinceMarch = <i32>((153 * (month > 2 ? month - 3 : month + 9) + 2) / 5);
  const leapDays = y < 0 ? -1 : y / 4 - y / 100 + y / 400;
  return y * 365 + leapDays + sinceMarch + <i32>day - 1 - 719_468;
}

function daysIn(month: u32, year: i32): u32 {
  if (month == 2) return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0 ? 29 : 28;
  return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
}

/** More than 99 where one of them is no digit. */
function twoDigits(from: i32): u32 {
  const tens = <u32>load<u8>(from) - ZERO;
  const ones = <u32>load<u8>(from + 1) - ZERO;
  return tens <= 9 && ones <= 9 ? tens * 10 + ones : 100;
}
