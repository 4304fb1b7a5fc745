// The responses that the experiments compare.

import type { Claim } from '../description/format.ts';
import type { ListDescription } from '../description/description.ts';
import { canonicalJson } from '../schemas/json/json.ts';
import type { JsonValue } from '../schemas/json/json.ts';
import type { ListQuery } from '../streams/http/request-plan.ts';
import type { TimeFormat } from '../streams/records/time-format.ts';

/** A record in a response. */
export interface Row {
  /** Key of the record; undefined if the record has none. */
  readonly key: string | undefined;
  readonly json: JsonValue;
  /** Modification time, in epoch ms; null if the record has none. */
  readonly at: number | null;
}

/** A response with the records of a page, or with a single record. */
export interface Page {
  readonly rows: readonly Row[];
  readonly total: number | undefined;
  /** Whether the response says that another page follows. */
  readonly hasNext: boolean;
  readonly next: string | undefined;
  /** Whether the response has one of the statuses that mean that a single record does not exist. */
  readonly isGone: boolean;
  /** Lower bound of the server's time, in epoch ms; undefined if the response has no `Date`. */
  readonly serverTime: number | undefined;
}

/** A response that refuses the request with an HTTP status from 400 to 499. */
export interface Refusal {
  readonly refusedWith: number;
}

export type Reply = Page | Refusal;

/**
 * A request of an experiment. `unknown`: the request has an additional query parameter that the API does not document. `total`: the request
 * is the list's own request for the number of records, and the reply has only this number.
 */
export interface Question extends ListQuery {
  readonly is?: 'unknown' | 'total';
}

/**
 * Result for a claim. `not refuted`: the experiment found nothing against the claim, which proves nothing. `warning`: the claim stands, but
 * the finding limits what the service can promise. `not measured`: the experiment does not apply, or failed.
 */
export type Verdict = 'refuted' | 'not refuted' | 'warning' | 'not measured';

/** A finding about a claim; `query` is about additional parameters, and is never refuted. */
export interface Measurement {
  readonly claim: Claim | 'query';
  readonly measured: string;
  readonly verdict: Verdict;
}

/** Facts about a list that the experiments start from. */
export interface Facts {
  readonly list: ListDescription;
  readonly times: TimeFormat;
  /** The smallest difference between two dates in requests, in ms. */
  readonly unitMs: number;
  /** Page size of the first page's request. */
  readonly size: number;
  /** Whether requests state the page size. */
  readonly hasSize: boolean;
  readonly first: Page;
  /** Response of the list's own request for the number of records; undefined until it was sent. */
  readonly ownTotal?: number | undefined;
  /** Current time by the local clock, in epoch ms. */
  readonly now: number;
}

export function isRefusal(reply: Reply): reply is Refusal {
  return 'refusedWith' in reply;
}

/** Returns a text with the number of records, or the status of a refusal. */
export function replyText(reply: Reply): string {
  if (isRefusal(reply)) return `status ${reply.refusedWith}`;
  return countText(reply.rows.length);
}

export function countText(count: number): string {
  return count === 1 ? '1 record' : `${count} records`;
}

/** Returns the index in `page` of the first record of `other`; undefined if `page` does not have that record. */
export function placeIn(page: Page, other: Page): number | undefined {
  const key = other.rows[0]?.key;
  if (key === undefined) return undefined;
  const place = page.rows.findIndex((row) => row.key === key);
  return place < 0 ? undefined : place;
}

/** Returns the names of the top-level fields in which two records differ. Never values: they may be personal. */
export function differingFields(one: JsonValue, other: JsonValue): string[] {
  const [left, right] = [one, other].map((json) => json as Readonly<Record<string, JsonValue>>);
  const names = new Set([...Object.keys(left!), ...Object.keys(right!)]);
  return [...names].filter(
    (name) => canonicalJson(left![name] ?? null) !== canonicalJson(right![name] ?? null),
  );
}

/** Returns a key of the same form as the given keys, but different from all of them. */
export function absentKey(keys: readonly string[]): string {
  const longest = keys.reduce((found, key) => (key.length > found.length ? key : found), '0');
  if (keys.every((key) => /^\d+$/.test(key))) return '9'.repeat(Math.min(longest.length + 1, 15));
  const half = longest.length >> 1;
  const end = longest
    .slice(half)
    .replaceAll(/\d/g, '9')
    .replaceAll(/[a-f]/g, 'f')
    .replaceAll(/[g-z]/g, 'z')
    .replaceAll(/[A-F]/g, 'F')
    .replaceAll(/[G-Z]/g, 'Z');
  return longest.slice(0, half) + end;
}
