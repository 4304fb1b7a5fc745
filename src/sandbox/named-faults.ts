// Ways in which real APIs differ from the description, by name: for the flag `--fault`.

import type { FaultSpec } from './faults.ts';
import type { Readings, SandboxOptions } from './options.ts';

/** A way in which real APIs differ from the description, known by name: for the flag `--fault`. */
interface NamedFault {
  /** Description of the API's behaviour, for the table of docs/sandbox.md. */
  readonly meaning: string;
  /** Name of the value, and its default; absent if the fault takes none. */
  readonly value?: { readonly name: string; readonly default: string };
  /** The options that bring it about. */
  readonly options: (value: string) => SandboxOptions;
}

const GATEWAY_TIMEOUT = {
  kind: 'status',
  status: 504,
  body: '<html><h1>504 Gateway Time-out</h1></html>',
  headers: { 'content-type': 'text/html' },
} as const;

/** A search engine's answer to a page that is too far behind. */
const TOO_LARGE = {
  kind: 'status',
  status: 400,
  body: { statusCode: 400, message: 'Result window is too large' },
} as const;

/** All named faults. To add one: a line here, and a row in docs/sandbox.md. */
export const NAMED_FAULTS: Readonly<Record<string, NamedFault>> = {
  'offset-rounded': {
    meaning: 'rounds `offset` down to a whole page',
    options: () => reading({ offsets: 'rounded' }),
  },
  'offset-nearest': {
    meaning: 'rounds `offset` to the nearest whole page',
    options: () => reading({ offsets: 'nearest' }),
  },
  'offset-multiple-only': {
    meaning: 'answers 400 to an `offset` that is no multiple of `pageSize`',
    options: () => reading({ offsets: 'multiples' }),
  },
  'offset-wraps': {
    meaning:
      'answers the first page, with `has_next_page: true`, to an `offset` behind the end, and claims a next page on every page',
    options: () => reading({ behindEnd: 'first-page', hasNextPage: 'always' }),
  },
  'offset-echoed': {
    meaning: '`current_offset` and `page_size` repeat the request, whatever the server used',
    options: () => reading({ echo: 'asked' }),
  },
  'page-capped': {
    meaning: 'serves at most so many records a page',
    value: { name: 'records', default: '100' },
    options: (value) => reading({ pageSizes: [1, whole(value)] }),
  },
  'page-fixed': {
    meaning: 'ignores `pageSize` and serves so many records a page',
    value: { name: 'records', default: '50' },
    options: (value) => reading({ pageSizes: [whole(value), whole(value)] }),
  },
  'pagination-loose': {
    meaning:
      'writes the pagination with numbers as text and `has_next_page` as 0 or 1, and an empty list as `{"data":null,"pagination":[]}`',
    options: () => reading({ envelope: 'loose' }),
  },
  'total-missing': {
    meaning: 'sends no `total_records`',
    options: () => reading({ envelope: 'no-totals' }),
  },
  'total-capped': {
    meaning: 'shows and counts at most so many records, as search engines do',
    value: { name: 'records', default: '500' },
    options: (value) => ({ totalCap: whole(value) }),
  },
  'total-estimated': {
    meaning:
      'rounds `total_records` to a multiple of so many records, and counts anew once a minute',
    value: { name: 'records', default: '10' },
    options: (value) => ({ totalStep: whole(value), totalAgeMs: 60_000 }),
  },
  'wrong-index': {
    meaning:
      'leaves out a twentieth of the records for so many ms, a minute after the start and every ten minutes from then on',
    value: { name: 'ms', default: '5000' },
    options: (value) => ({ wrongIndexMs: whole(value) }),
  },
  'offset-limited': {
    meaning: 'answers 400 to an `offset` of so many records or more',
    value: { name: 'records', default: '500' },
    options: (value) => fault({ ...TOO_LARGE, offsetFrom: whole(value) }),
  },
  'window-limited': {
    meaning: 'answers 400 to pages that reach behind so many records',
    value: { name: 'records', default: '500' },
    options: (value) => fault({ ...TOO_LARGE, endOver: whole(value) }),
  },
  'status-other': {
    meaning: 'answers 201 to the login, and 203 with pages',
    options: () => reading({ success: 'other' }),
  },
  latin1: {
    meaning: 'sends pages in ISO-8859-1, as their `Content-Type` says',
    options: () => reading({ charset: 'iso-8859-1' }),
  },
  'user-agent-needed': {
    meaning: 'answers 403 with HTML to requests without `User-Agent`',
    options: () => reading({ needsUserAgent: true }),
  },
  'zone-parameters': {
    meaning: 'reads date parameters in a zone that is so many minutes from UTC',
    value: { name: 'minutes', default: '-480' },
    options: (value) => reading({ parameterZone: { minutes: minutes(value) } }),
  },
  'zone-stamps': {
    meaning: 'writes `created_at` and `updated_at` in such a zone, without naming it',
    value: { name: 'minutes', default: '-480' },
    options: (value) => reading({ stampZone: { minutes: minutes(value) } }),
  },
  'future-refused': {
    meaning: 'answers 400 to a `modifiedToDate` later than its clock',
    options: () => reading({ futureEnd: 'refuse' }),
  },
  'end-in-future-empty': {
    meaning: 'shows nothing if `modifiedToDate` is later than its clock',
    options: () => fault({ kind: 'empty', pagination: 'empty', endsInFuture: true }),
  },
  'end-in-future-500': {
    meaning: 'answers 500 to a `modifiedToDate` later than its clock',
    options: () =>
      fault({ kind: 'status', status: 500, body: { message: 'oops' }, endsInFuture: true }),
  },
  'dates-ignored': {
    meaning: 'ignores the date parameters',
    options: () => reading({ dates: 'ignored' }),
  },
  'dates-refused': {
    meaning: 'answers with this status to requests with dates, whatever they are',
    value: { name: 'status', default: '403' },
    options: (value) =>
      fault({ kind: 'status', status: whole(value), body: { message: 'refused' }, dated: true }),
  },
  'dates-504': {
    meaning: 'answers 504 with HTML to requests with dates',
    options: () => fault({ ...GATEWAY_TIMEOUT, dated: true }),
  },
  'dates-blocked': {
    meaning:
      'answers 403 with HTML to requests with dates, as a firewall that dislikes a parameter does',
    options: () => fault({ kind: 'firewall', dated: true }),
  },
  'range-refused': {
    meaning: 'answers 400 to a window of more than so many days',
    value: { name: 'days', default: '7' },
    options: (value) => reading({ maxRangeDays: whole(value) }),
  },
  'token-lag': {
    meaning: 'refuses a token for so many ms after its login',
    value: { name: 'ms', default: '3000' },
    options: (value) => ({ tokenLagMs: whole(value) }),
  },
  'token-expired-json': {
    meaning: 'answers 200 with an error in JSON to a token that has expired',
    options: () => reading({ unauthorized: 'json' }),
  },
  'token-expired-400': {
    meaning: 'answers 400 to a token that has expired',
    options: () => reading({ unauthorized: 400 }),
  },
  'replica-lag': {
    meaning: 'answers every second list request from a replica that is so many ms behind',
    value: { name: 'ms', default: '3000' },
    options: (value) => ({ replicaLagMs: whole(value) }),
  },
  'cached-pages': {
    meaning: 'answers half of the list requests from a cache that keeps pages for so many ms',
    value: { name: 'ms', default: '300000' },
    options: (value) => fault({ kind: 'cached', ms: whole(value), every: 2 }),
  },
  'poison-record': {
    meaning: 'answers 500 to every page that holds the record of this key',
    value: { name: 'key', default: '100095' },
    options: (value) =>
      fault({ kind: 'status', status: 500, holding: /^\d+$/.test(value) ? Number(value) : value }),
  },
  'large-page-504': {
    meaning: 'answers 504 with HTML to pages of more than so many records',
    value: { name: 'records', default: '200' },
    options: (value) => fault({ ...GATEWAY_TIMEOUT, pageSizeOver: whole(value) }),
  },
};

/**
 * Options with one more fault.
 *
 * @param text `NAME` or `NAME=VALUE`.
 * @throws RangeError for a name that is unknown, or a value that does not fit.
 */
export function withFault(options: SandboxOptions, text: string): SandboxOptions {
  const [, name = '', given] = /^([^=]*)(?:=(.*))?$/s.exec(text)!;
  const named = Object.hasOwn(NAMED_FAULTS, name) ? NAMED_FAULTS[name] : undefined;
  if (!named) {
    throw new RangeError(`no fault ${name}: they are ${Object.keys(NAMED_FAULTS).join(', ')}`);
  }
  if (given !== undefined && !named.value) throw new RangeError(`${name} takes no value`);
  const more = named.options(given ?? named.value?.default ?? '');
  return {
    ...options,
    ...more,
    readings: { ...options.readings, ...more.readings },
    faults: [...(options.faults ?? []), ...(more.faults ?? [])],
  };
}

function reading(readings: Partial<Readings>): SandboxOptions {
  return { readings };
}

function fault(spec: FaultSpec): SandboxOptions {
  return { faults: [spec] };
}

function minutes(value: string): number {
  const number = Number(value);
  if (!Number.isInteger(number)) throw new RangeError('a whole number of minutes is needed');
  return number;
}

function whole(value: string): number {
  const number = Number(value);
  if (!Number.isInteger(number) || number < 1) throw new RangeError('a whole number is needed');
  return number;
}
