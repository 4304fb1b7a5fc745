import type { Readings, Zone } from './options.ts';
import type { SandboxListRules } from './resources.ts';

export interface ParsedListQuery {
  /** List offset at which the page begins, after any rounding by the server. */
  readonly offset: number;
  /** Page size, after any clamping by the server. */
  readonly pageSize: number;
  /** List offset and page size as in the request. */
  readonly requested?: { readonly offset: number; readonly pageSize: number };
  /**
   * Number of the single record that the request asks for: its key without the list's key prefix. Absent if the request does not ask for a
   * single record.
   */
  readonly number?: number;
  readonly window?: DateWindow;
}

/** Date window of a list request: bounds on `updated_at`, in epoch ms. */
export interface DateWindow {
  readonly from: number;
  readonly to: number;
  readonly inclusive: boolean;
}

/** Default and maximum of the parameter `pageSize`. */
const PAGE_SIZE = 1_000;

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
const ISO_8601 = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d+)?)?(Z|[+-]\d\d:?\d\d)?)?$/;

/**
 * Parses the query parameters that the list supports, and ignores others. Returns an error message if a parameter is invalid.
 *
 * @param now The server's clock, in epoch ms.
 */
export function parseListQuery(
  params: URLSearchParams,
  rules: SandboxListRules,
  readings: Readings,
  now: number,
): ParsedListQuery | string {
  const offset = wholeNumber(params.get('offset') ?? '0');
  if (offset === undefined) return 'offset must be a whole number >= 0';
  const pageSize = wholeNumber(params.get('pageSize') ?? String(PAGE_SIZE));
  if (pageSize === undefined || pageSize < 1 || pageSize > PAGE_SIZE) {
    return `pageSize must be a whole number from 1 to ${PAGE_SIZE}`;
  }
  const [least, most] = readings.pageSizes;
  const size = Math.min(Math.max(pageSize, least), most);
  if (readings.offsets === 'multiples' && offset % size !== 0) {
    return 'offset must be a multiple of pageSize';
  }
  const query = {
    offset: beginning(offset, size, readings),
    pageSize: size,
    requested: { offset, pageSize },
  };
  if (rules.byNumber !== null && params.has(rules.byNumber)) {
    const number = wholeNumber(params.get(rules.byNumber)!);
    return number === undefined ? `${rules.byNumber} must be a whole number` : { ...query, number };
  }
  if (!rules.windowed) return query;
  const from = params.get('modifiedFromDate');
  const to = params.get('modifiedToDate');
  if (from === null) {
    return to === null ? query : 'modifiedToDate cannot be given without modifiedFromDate';
  }
  const start = instant(from, readings);
  const end = to === null ? defaultEnd(readings, now) : instant(to, readings);
  if (start === undefined) return 'modifiedFromDate must be an ISO 8601 date or timestamp';
  if (end === undefined) return 'modifiedToDate must be an ISO 8601 date or timestamp';
  if (readings.dates === 'ignored') return query;
  if (readings.futureEnd === 'refuse' && Math.max(start, end) > now) {
    return 'modifiedFromDate and modifiedToDate cannot be in the future';
  }
  if (end - start > readings.maxRangeDays * DAY_MS) {
    return `modifiedFromDate and modifiedToDate cannot be more than ${readings.maxRangeDays} days apart`;
  }
  return { ...query, window: { from: start, to: end, inclusive: readings.bounds === 'inclusive' } };
}

function beginning(offset: number, size: number, { offsets }: Readings): number {
  if (offsets === 'rounded') return Math.floor(offset / size) * size;
  return offsets === 'nearest' ? Math.round(offset / size) * size : offset;
}

function wholeNumber(text: string): number | undefined {
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

/**
 * Returns the instant that a date parameter means, in epoch ms; undefined if the text is malformed. Times are taken as local times in
 * `readings.parameterZone`. If `readings.dates` is `days`, the time of day (UTC) is set to midnight.
 */
function instant(text: string, readings: Readings): number | undefined {
  const match = ISO_8601.exec(text);
  if (!match) return undefined;
  const at = Date.parse(text.includes('T') && match[1] === undefined ? `${text}Z` : text);
  if (Number.isNaN(at)) return undefined;
  const exact = instantOfLocal(readings.parameterZone, at);
  return readings.dates === 'days' ? midnight(exact) : exact;
}

function defaultEnd(readings: Readings, now: number): number {
  return readings.defaultEnd === 'midnight' ? midnight(now) : now;
}

function midnight(at: number): number {
  return Math.floor(at / DAY_MS) * DAY_MS;
}

/**
 * Converts a local time to an instant, both in epoch ms. A local time that occurs twice because daylight saving ends means its first
 * occurrence.
 */
function instantOfLocal(zone: Zone, local: number): number {
  const saving = local - zone.minutes * MINUTE_MS - HOUR_MS;
  return saving < (zone.savingEndsAt ?? -Infinity) ? saving : local - zone.minutes * MINUTE_MS;
}
