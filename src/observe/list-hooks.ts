import type { Resource } from '../resources/resources.ts';
import type { Hooks } from './hooks.ts';

type Told<K extends keyof Hooks> = Parameters<NonNullable<Hooks[K]>>[0];
/** Hooks that are told of one list. */
type OfOneList = {
  [K in keyof Hooks]-?: 'resource' extends keyof Told<K> ? K : never;
}[keyof Hooks];

/** Hooks that know which list they are told of. */
export type ListHooks = {
  readonly [K in OfOneList]: (told: Omit<Told<K>, 'resource'>) => void;
};

/** Binds hooks to a list; those that nobody has set do nothing. */
export function listHooks(hooks: Hooks, resource: Resource): ListHooks {
  return new Proxy({} as ListHooks, {
    get: (_, name) => (told: object) => hooks[name as OfOneList]?.({ resource, ...told } as never),
  });
}
