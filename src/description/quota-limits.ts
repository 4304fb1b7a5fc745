// The limits of requests that a description states, converted to the units in which the service counts: minutes and seconds.

import { loginOf } from './description.ts';
import type { ApiDescription, ListDescription } from './description.ts';

/** Numbers of requests that may start in any minute and in any second; undefined where there is no limit. */
export interface RequestLimits {
  readonly perMinute: number | undefined;
  readonly perSecond: number | undefined;
}

/** The rate limits that a description states for list requests and for logins. */
export interface DescribedQuota {
  /**
   * Whether lists share a limit. `key`: at least one limit applies to all lists together. `endpoint`: every limit applies to each list
   * separately.
   */
  readonly scope: 'endpoint' | 'key';
  /**
   * Maximum number of requests per minute for each API key (scope `key`) or for each list (scope `endpoint`). If the API has several such
   * limits, this is the smallest.
   */
  readonly perMinute: number;
  /** Maximum number of requests per second for an API key, counted over all lists; undefined without such a limit. */
  readonly keyPerSecond: number | undefined;
  /**
   * Limits of each single list, by its name. With scope `endpoint`, a limit per minute replaces `perMinute`; with scope `key`, both apply.
   */
  readonly lists: Readonly<Record<string, RequestLimits>>;
  /** Maximum numbers of logins per minute and per second. */
  readonly login: RequestLimits & { readonly perMinute: number };
}

/** Limit of login requests that applies if the description states none. */
const LOGIN_LIMIT = '10/min';
/** Length of the units of limits, in seconds. */
const UNIT_SECONDS = { s: 1, min: 60, h: 3_600, d: 86_400 } as const;
/**
 * Maximum value of a limit per minute, in requests; higher limits are reduced to it. Each request of a minute has a slot in a file of the
 * state folder, so a larger maximum needs larger files.
 */
const MAX_PER_MINUTE = 1_000_000;
/** Maximum value of a limit per second, in requests; a description's limit above it, such as `20000/s`, is reduced to it. */
const MAX_PER_SECOND = 10_000;

/**
 * Returns the limits of a description's list requests and logins. The API's limits `per list` apply to each list for which the description
 * states no other quota. Its limits `per key` apply to all lists together.
 */
export function describedQuota({
  auth,
  quota,
  lists,
}: Pick<ApiDescription, 'auth' | 'quota'> & {
  readonly lists: readonly Pick<ListDescription, 'name' | 'quota'>[];
}): DescribedQuota {
  const limits = typeof quota === 'string' ? [quota] : quota.limits;
  const perList = limits.filter((limit) => limit.endsWith(' per list'));
  const perKey = limits.filter((limit) => !perList.includes(limit));
  const scope = perKey.length > 0 ? 'key' : 'endpoint';
  const limitsOf = (own: string | undefined): RequestLimits => {
    const all = own === undefined ? perList : [own];
    const isAsAll = scope === 'endpoint' && own === undefined;
    const inMinutes = scope === 'key' ? all.filter((limit) => !isPerSecond(limit)) : all;
    return {
      perMinute: isAsAll ? undefined : least(inMinutes.map(perMinuteOf)),
      perSecond: secondsOf(all),
    };
  };
  const login = loginOf({ auth })?.quota ?? LOGIN_LIMIT;
  return {
    scope,
    perMinute: least((scope === 'key' ? perKey : perList).map(perMinuteOf))!,
    keyPerSecond: secondsOf(perKey),
    lists: Object.fromEntries(lists.map((list) => [list.name, limitsOf(list.quota)])),
    login: { perMinute: perMinuteOf(login), perSecond: secondsOf([login]) },
  };
}

/**
 * Converts a limit such as `5000/h per key` to requests per minute, rounded down, and at most `MAX_PER_MINUTE`. 0 if the limit is below one
 * request per minute.
 */
export function perMinuteOf(limit: string): number {
  const { count, unit } = parsed(limit);
  return Math.min(MAX_PER_MINUTE, Math.floor((count * 60) / UNIT_SECONDS[unit]));
}

function secondsOf(limits: readonly string[]): number | undefined {
  return least(
    limits.filter(isPerSecond).map((limit) => Math.min(MAX_PER_SECOND, parsed(limit).count)),
  );
}

function isPerSecond(limit: string): boolean {
  return parsed(limit).unit === 's';
}

function parsed(limit: string) {
  const [, count, unit] = /^(\d+)\/(s|min|h|d)/.exec(limit)!;
  return { count: Number(count), unit: unit as keyof typeof UNIT_SECONDS };
}

function least(numbers: readonly number[]): number | undefined {
  return numbers.length === 0 ? undefined : Math.min(...numbers);
}
