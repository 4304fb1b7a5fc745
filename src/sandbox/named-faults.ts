// Named faults for the flag `--fault`: ways in which real APIs differ from the API's description.

import type { FaultSpec } from './faults.ts';
import type { Readings, SandboxOptions } from './options.ts';

interface NamedFault {
  /** Description of the fault, for the table in docs/sandbox.md. The fault's value appears in it by name, in capitals (`RECORDS`). */
  readonly meaning: string;
  /** Name and default of the value in `--fault NAME=VALUE`; absent if the fault takes no value. */
  readonly value?: { readonly name: string; readonly default: string };
  readonly options: (value: string) => SandboxOptions;
}

const GATEWAY_TIMEOUT = {
  kind: 'status',
  status: 504,
  body: '<html><h1>504 Gateway Time-out</h1></html>',
  headers: { 'content-type': 'text/html' },
} as const;

const TOO_LARGE = {
  kind: 'status',
  status: 400,
  body: { statusCode: 400, message: 'Result window is too large' },
} as const;

/** All faults that the flag `--fault` can select, by name. A new fault needs an entry here and a row in docs/sandbox.md. */
export const NAMED_FAULTS: Readonly<Record<string, NamedFault>> = {
  'offset-rounded': {
    meaning: 'rounds `offset` down to a whole page',
    options: () => withReadings({ offsets: 'rounded' }),
  },
  'offset-nearest': {
    meaning: 'rounds `offset` to the nearest whole page',
    options: () => withReadings({ offsets: 'nearest' }),
  },
  'offset-multiple-only': {
    meaning: 'answers 400 to an `offset` that is no multiple of `pageSize`',
    options: () => withReadings({ offsets: 'multiples' }),
  },
  'offset-wraps': {
    meaning:
      'answers the first page, with `has_next_page: true`, to an `offset` beyond the end, and claims a next page on every page',
    options: () => withReadings({ behindEnd: 'first-page', hasNextPage: 'always' }),
  },
  'offset-echoed': {
    meaning: '`current_offset` and `page_size` repeat the request, whatever the server used',
    options: () => withReadings({ echo: 'asked' }),
  },
  'page-capped': {
    meaning: 'serves at most RECORDS records a page',
    value: { name: 'records', default: '100' },
    options: (value) => withReadings({ pageSizes: [1, integerValue(value)] }),
  },
  'page-fixed': {
    meaning: 'ignores `pageSize` and serves RECORDS records a page',
    value: { name: 'records', default: '50' },
    options: (value) => withReadings({ pageSizes: [integerValue(value), integerValue(value)] }),
  },
  'pagination-loose': {
    meaning:
      'writes the pagination with numbers as text and `has_next_page` as 0 or 1, and an empty list as `{"data":null,"pagination":[]}`',
    options: () => withReadings({ envelope: 'loose' }),
  },
  'total-missing': {
    meaning: 'sends no `total_records`',
    options: () => withReadings({ envelope: 'no-totals' }),
  },
  'total-capped': {
    meaning: 'serves and counts at most RECORDS records, as search engines do',
    value: { name: 'records', default: '500' },
    options: (value) => ({ totalCap: integerValue(value) }),
  },
  'total-estimated': {
    meaning: 'rounds `total_records` to a multiple of RECORDS, and counts again once a minute',
    value: { name: 'records', default: '10' },
    options: (value) => ({ totalStep: integerValue(value), totalAgeMs: 60_000 }),
  },
  'wrong-index': {
    meaning:
      'leaves out a twentieth of the records for MS milliseconds, a minute after the start and every ten minutes from then on',
    value: { name: 'ms', default: '5000' },
    options: (value) => ({ wrongIndexMs: integerValue(value) }),
  },
  'offset-limited': {
    meaning: 'answers 400 to an `offset` of RECORDS or more',
    value: { name: 'records', default: '500' },
    options: (value) => withFaultSpec({ ...TOO_LARGE, offsetFrom: integerValue(value) }),
  },
  'window-limited': {
    meaning: 'answers 400 to pages that end after the first RECORDS records',
    value: { name: 'records', default: '500' },
    options: (value) => withFaultSpec({ ...TOO_LARGE, endOver: integerValue(value) }),
  },
  'status-other': {
    meaning: 'answers 201 to the login, and 203 with pages',
    options: () => withReadings({ success: 'other' }),
  },
  latin1: {
    meaning: 'sends pages in ISO-8859-1, as their `Content-Type` says',
    options: () => withReadings({ charset: 'iso-8859-1' }),
  },
  'user-agent-needed': {
    meaning: 'answers 403 with HTML to requests without `User-Agent`',
    options: () => withReadings({ needsUserAgent: true }),
  },
  'zone-parameters': {
    meaning: 'reads date parameters in a zone that is MINUTES minutes ahead of UTC',
    value: { name: 'minutes', default: '-480' },
    options: (value) => withReadings({ parameterZone: { minutes: minutes(value) } }),
  },
  'zone-stamps': {
    meaning:
      'writes `created_at` and `updated_at` in a zone that is MINUTES minutes ahead of UTC, without naming it',
    value: { name: 'minutes', default: '-480' },
    options: (value) => withReadings({ stampZone: { minutes: minutes(value) } }),
  },
  'future-refused': {
    meaning: 'answers 400 to a `modifiedToDate` later than its clock',
    options: () => withReadings({ futureEnd: 'refuse' }),
  },
  'end-in-future-empty': {
    meaning: 'shows nothing if `modifiedToDate` is later than its clock',
    options: () => withFaultSpec({ kind: 'empty', pagination: 'empty', endsInFuture: true }),
  },
  'end-in-future-500': {
    meaning: 'answers 500 to a `modifiedToDate` later than its clock',
    options: () =>
      withFaultSpec({ kind: 'status', status: 500, body: { message: 'oops' }, endsInFuture: true }),
  },
  'dates-ignored': {
    meaning: 'ignores the date parameters',
    options: () => withReadings({ dates: 'ignored' }),
  },
  'dates-refused': {
    meaning: 'answers every request with dates with the status STATUS',
    value: { name: 'status', default: '403' },
    options: (value) =>
      withFaultSpec({
        kind: 'status',
        status: integerValue(value),
        body: { message: 'refused' },
        dated: true,
      }),
  },
  'dates-504': {
    meaning: 'answers 504 with HTML to requests with dates',
    options: () => withFaultSpec({ ...GATEWAY_TIMEOUT, dated: true }),
  },
  'dates-blocked': {
    meaning:
      'answers 403 with HTML to requests with dates, as a firewall that blocks a parameter does',
    options: () => withFaultSpec({ kind: 'firewall', dated: true }),
  },
  'range-refused': {
    meaning: 'answers 400 to a window of more than DAYS days',
    value: { name: 'days', default: '7' },
    options: (value) => withReadings({ maxRangeDays: integerValue(value) }),
  },
  'token-lag': {
    meaning: 'refuses a token for MS milliseconds after its login',
    value: { name: 'ms', default: '3000' },
    options: (value) => ({ tokenLagMs: integerValue(value) }),
  },
  'token-expired-json': {
    meaning: 'answers 200 with an error in JSON to a token that has expired',
    options: () => withReadings({ unauthorized: 'json' }),
  },
  'token-expired-400': {
    meaning: 'answers 400 to a token that has expired',
    options: () => withReadings({ unauthorized: 400 }),
  },
  'replica-lag': {
    meaning: 'answers every second list request from a replica that is MS milliseconds behind',
    value: { name: 'ms', default: '3000' },
    options: (value) => ({ replicaLagMs: integerValue(value) }),
  },
  'cached-pages': {
    meaning: 'answers half of the list requests from a cache that stores pages for MS milliseconds',
    value: { name: 'ms', default: '300000' },
    options: (value) => withFaultSpec({ kind: 'cached', ms: integerValue(value), every: 2 }),
  },
  'poison-record': {
    meaning: 'answers 500 to every page that contains the record with key KEY',
    value: { name: 'key', default: '100095' },
    options: (value) =>
      withFaultSpec({
        kind: 'status',
        status: 500,
        holding: /^\d+$/.test(value) ? Number(value) : value,
      }),
  },
  'large-page-504': {
    meaning: 'answers 504 with HTML to pages of more than RECORDS records',
    value: { name: 'records', default: '200' },
    options: (value) => withFaultSpec({ ...GATEWAY_TIMEOUT, pageSizeOver: integerValue(value) }),
  },
};

/**
 * Adds a named fault to sandbox options.
 *
 * @param text `NAME` or `NAME=VALUE`.
 * @throws RangeError if the name is unknown or the value is invalid.
 */
export function withFault(options: SandboxOptions, text: string): SandboxOptions {
  const [, name = '', given] = /^([^=]*)(?:=(.*))?$/s.exec(text)!;
  const named = Object.hasOwn(NAMED_FAULTS, name) ? NAMED_FAULTS[name] : undefined;
  if (!named) {
    throw new RangeError(
      `unknown fault ${name}: choose one of ${Object.keys(NAMED_FAULTS).join(', ')}`,
    );
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

function withReadings(readings: Partial<Readings>): SandboxOptions {
  return { readings };
}

function withFaultSpec(spec: FaultSpec): SandboxOptions {
  return { faults: [spec] };
}

function minutes(value: string): number {
  const number = Number(value);
  if (!Number.isInteger(number)) {
    throw new RangeError(
      `the value of this fault must be a whole number of minutes, such as -480, got ${value}`,
    );
  }
  return number;
}

function integerValue(value: string): number {
  const number = Number(value);
  if (!Number.isInteger(number) || number < 1) throw new RangeError('a whole number is needed');
  return number;
}
