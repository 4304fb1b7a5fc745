import { RESOURCES } from './resources.ts';
import type { Endpoint } from './resources.ts';

/** Where staging lives: its address already ends in the version segment. */
export const STAGING = '/staging/v1';

const LOGIN = '/auth/public/login';

/** Each path the API answers, and what it is. One description repeats the version at staging's login. */
export const ROUTES: ReadonlyMap<string, Endpoint> = new Map<string, Endpoint>([
  [`/v1${LOGIN}`, 'login'],
  [`${STAGING}${LOGIN}`, 'login'],
  [`${STAGING}/v1${LOGIN}`, 'login'],
  ...RESOURCES.flatMap((resource): [string, Endpoint][] => [
    [`/v1/${resource}`, resource],
    [`${STAGING}/${resource}`, resource],
  ]),
]);
