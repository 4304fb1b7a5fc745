// The responses that the experiments compare.

import type { Claim } from '../description/format.ts';
import { canonicalJson } from '../schemas/json/json.ts';
import type { JsonValue } from '../schemas/json/json.ts';
import type { ListQuery } from '../streams/http/request-plan.ts';

export interface Row {
  /** Key of the record; undefined if the record has none. */
  readonly key: string | undefined;
  readonly json: JsonValue;
  /** Modification time, in epoch ms; null if the record has none. */
  readonly at: number | null;
}

/** The decoded response to a test request of `check --measure` (a {@link Question}). */
export interface Reply {
  /**
   * Records of the page, or the single record. Empty if the request was refused, asked only for the total, or asked for a record that does
   * not exist.
   */
  readonly rows: readonly Row[];
  readonly total?: number | undefined;
  /** Whether the response says that another page follows. */
  readonly hasNext?: boolean;
  readonly next?: string | undefined;
  /** Whether the response says that the requested single record does not exist. */
  readonly isGone?: boolean;
  /**
   * HTTP status from 400 to 499 with which the API refused the request; absent if it did not. Statuses with a temporary cause (401, 408,
   * 425, 429) count as errors instead.
   */
  readonly refusedWith?: number;
  /** Lower bound of the server's time when it read the records, in epoch ms; undefined if unknown. */
  readonly serverTime?: number | undefined;
}

/** A test request of `check --measure`. With `isTotal`, the reply has no records, only the list's total. */
export interface Question extends ListQuery {
  /** Whether the request has an additional query parameter that the API does not document. Default false. */
  readonly isUnknown?: true;
}

/**
 * Result of testing a claim (a statement in a list's description). `not refuted`: nothing speaks against the claim, which is no proof.
 * `warning`: not refuted, but the finding limits what the service can promise. `not measured`: the experiment gave no result.
 */
export type Verdict = 'refuted' | 'not refuted' | 'warning' | 'not measured';

/**
 * Result of testing one claim of a list's description against the API. The claim `query` stands for the API's handling of unknown query
 * parameters, and is never `refuted`.
 */
export interface Measurement {
  readonly claim: Claim | 'query';
  readonly verdict: Verdict;
  readonly measured: string;
}

/** Returns the number of records in the reply as text; if the request was refused: a text with the HTTP status. */
export function replyText({ refusedWith, rows }: Reply): string {
  return refusedWith === undefined ? countText(rows.length) : `refused, status ${refusedWith}`;
}

export function countText(count: number): string {
  return count === 1 ? '1 record' : `${count} records`;
}

export function keysOf({ rows }: Reply): string[] {
  return rows.flatMap(({ key }) => key ?? []);
}

export function isSame(one: Row, other: Row): boolean {
  return canonicalJson(one.json) === canonicalJson(other.json);
}

/** Returns the names of at most five top-level fields in which two records differ. Never values: they may be personal. */
export function differingFields(one: Row, other: Row): string[] {
  const [left, right] = [one, other].map(({ json }) => Object(json) as Record<string, JsonValue>);
  const names = new Set([...Object.keys(left!), ...Object.keys(right!)]);
  const text = (value: JsonValue | undefined) => canonicalJson(value ?? null);
  return [...names].filter((name) => text(left![name]) !== text(right![name])).slice(0, 5);
}

/** Returns a key that the list most likely does not contain, similar in form to the given keys. */
export function absentKey(keys: readonly string[]): string {
  let key = unusualKey(keys);
  while (keys.includes(key)) key += '9';
  return key;
}

function unusualKey(keys: readonly string[]): string {
  const [longest = '0'] = keys.toSorted((one, other) => other.length - one.length);
  if (keys.every((key) => /^\d+$/.test(key))) return '9'.repeat(Math.min(longest.length + 1, 15));
  const half = longest.length >> 1;
  const end = longest.slice(half).replaceAll(/\d/g, '9').replaceAll(/[a-z]/gi, 'f');
  return longest.slice(0, half) + end;
}
