// Notations of times in records and in request parameters.

import type { DescriptionFile } from './format.ts';
import { instantIn, utcMillis } from '../schemas/avro/instant.ts';
import type { JsonValue } from '../schemas/json/json.ts';

/** Notation of an API's times, such as ISO 8601. */
export interface TimeFormat {
  /** Whether this notation is ISO 8601. */
  readonly isIso: boolean;
  /** Parses a time to epoch ms; null if the value is not a time in this notation. */
  readonly read: (value: JsonValue | undefined) => number | null;
  /** Formats epoch ms for a request parameter. Clamps times to 1970 through 9999-12-31, and rounds down to the notation's smallest unit. */
  readonly write: (ms: number) => string;
}

/** Returns the format in which an API writes times, as the property `times` of its description states it. */
export function timeFormat(times: NonNullable<DescriptionFile['times']>): TimeFormat {
  return typeof times === 'object' ? patternFormat(times.pattern) : FORMATS[times];
}

/** ISO 8601. Written in UTC with milliseconds. A time without a zone is read as UTC, and a date as its midnight. */
export const ISO: TimeFormat = {
  isIso: true,
  read: instantIn,
  write: (ms) => dateOf(ms).toISOString(),
};

/** Dates as in HTTP headers (RFC 9110, IMF-fixdate). */
const HTTP_DATE: TimeFormat = {
  isIso: false,
  read: (value) => {
    if (typeof value !== 'string') return null;
    const ms = Date.parse(value);
    return Number.isNaN(ms) || new Date(ms).toUTCString() !== value ? null : ms;
  },
  write: (ms) => dateOf(ms).toUTCString(),
};

/** Largest distance from 1970 that a `Date` represents, in ms. */
const MAX_DATE_MS = 8.64e15;

/** Format for times that are numbers: units of `unitMs` ms since 1970. Reads numbers, also as text, rounded to ms; writes whole units. */
function epochFormat(unitMs: number): TimeFormat {
  return {
    isIso: false,
    read: (value) => {
      const isText = typeof value === 'string' && /^-?\d+(?:\.\d+)?$/.test(value);
      const ms = Math.round(Number(isText || typeof value === 'number' ? value : NaN) * unitMs);
      return Math.abs(ms) <= MAX_DATE_MS ? ms : null;
    },
    write: (ms) => String(Math.floor(dateOf(ms).getTime() / unitMs)),
  };
}

const FORMATS = {
  iso: ISO,
  'epoch-s': epochFormat(1_000),
  'epoch-ms': epochFormat(1),
  'http-date': HTTP_DATE,
};

/** Letter groups of patterns, each with the range of characters that it stands for in a time such as `2024-05-01T12:34:56.789Z`. */
const GROUPS: Readonly<Record<string, readonly [from: number, to: number]>> = {
  ...{ yyyy: [0, 4], MM: [5, 7], dd: [8, 10] },
  ...{ HH: [11, 13], mm: [14, 16], ss: [17, 19], SSS: [20, 23] },
};

/**
 * Returns a format for UTC times. `pattern` consists of letter groups ({@link GROUPS}), text in single quotes, and characters other than
 * letters.
 */
function patternFormat(pattern: string): TimeFormat {
  const parts = pattern.match(/yyyy|MM|dd|HH|mm|ss|SSS|'[^']*'|[^']/g) ?? [];
  const textOf = (part: string, time: string) => {
    const group = GROUPS[part];
    return group ? time.slice(...group) : part.replaceAll("'", '');
  };
  const write = (time: string) => parts.map((part) => textOf(part, time)).join('');
  return {
    isIso: false,
    read: (value) => {
      if (typeof value !== 'string') return null;
      let at = 0;
      let time = EPOCH_TEXT;
      for (const part of parts) {
        const { length } = textOf(part, time);
        const group = GROUPS[part];
        if (group)
          time = time.slice(0, group[0]) + value.slice(at, at + length) + time.slice(group[1]);
        at += length;
      }
      const ms = utcMillis(time);
      return Number.isNaN(ms) || write(time) !== value ? null : ms;
    },
    write: (ms) => write(dateOf(ms).toISOString()),
  };
}

const EPOCH_TEXT = '1970-01-01T00:00:00.000Z';
/** Latest time that is written to a request, in epoch ms. ISO 8601 needs a sign for later years, which an API may not parse. */
const LAST_DAY = Date.UTC(9999, 11, 31);

function dateOf(ms: number): Date {
  return new Date(Math.min(Math.max(ms, 0), LAST_DAY));
}
