// Features of the description format that the running service does not support yet.

import { isPagedByOffset } from './description.ts';
import type { ApiDescription, ListDescription } from './description.ts';
import { variablesIn } from './template.ts';
import type { Json } from './template.ts';

/** A limit of requests in any 60 seconds: for each list separately, or for all lists of an API key together. */
interface MinuteQuota {
  readonly perMinute: number;
  readonly scope: 'endpoint' | 'key';
}

/** Parses a limit such as `100/min per list`; undefined if the quota is not a single limit per minute. */
export function minuteQuota(quota: ApiDescription['quota']): MinuteQuota | undefined {
  const [, count, scope] =
    /^(\d+)\/min(?: per (list|key))?$/.exec(typeof quota === 'string' ? quota : '') ?? [];
  if (count === undefined) return undefined;
  return { perMinute: Number(count), scope: scope === 'list' ? 'endpoint' : 'key' };
}

/** Smallest page size that the service supports: pages overlap by up to 20 records. */
export const MIN_PAGE_SIZE = 21;

/** Returns the features of a description that the service does not support yet, such as `paging cursor of orders`. */
export function unsupportedFeatures({ auth, quota, errors, lists }: ApiDescription): string[] {
  return [
    ...authFeatures(auth),
    ...(minuteQuota(quota) ? [] : [`quota ${quotaText(quota)}`]),
    ...(Object.keys(errors).length > 0 ? ['errors'] : []),
    ...lists.flatMap((list) => listFeatures(list).map((feature) => `${feature} of ${list.name}`)),
  ];
}

function authFeatures(auth: ApiDescription['auth']): string[] {
  if (auth === 'none') return ['auth none'];
  if (!('login' in auth)) return [`auth ${Object.keys(auth)[0]}`];
  const { login } = auth;
  const credentials = ['username', 'password', 'client_id', 'client_secret', 'refresh_token'];
  return [
    ...[...new Set(variablesIn(login as unknown as Json))]
      .filter((name) => credentials.includes(name))
      .map((name) => `{${name}} in auth.login`),
    ...(login.quota === undefined || minuteQuota(login.quota)
      ? []
      : [`quota ${login.quota} of the login`]),
  ];
}

function quotaText(quota: ApiDescription['quota']): string {
  return typeof quota === 'string' ? quota : `{${Object.keys(quota).join(', ')}}`;
}

function listFeatures(list: ListDescription): string[] {
  const { paging, limit, query, body, total, quota } = list;
  const hasSize = variablesIn([query, body ?? null] as Json).includes('limit');
  return [
    ...(paging === 'offset' && !hasSize ? ['paging offset without {limit}'] : []),
    ...(isPagedByOffset(list) && limit !== undefined && limit < MIN_PAGE_SIZE
      ? [`limit ${limit} (less than ${MIN_PAGE_SIZE})`]
      : []),
    ...(typeof total === 'object' && 'path' in total ? ['total by a request of its own'] : []),
    ...(list.deleted ? ['deleted'] : []),
    ...(list.agreed ? ['agreed'] : []),
    ...(quota === undefined ? [] : [`quota ${quota}`]),
  ];
}
