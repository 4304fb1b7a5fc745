import type { Resource } from '../description/description.ts';
import type { Hooks } from './hooks.ts';

type HookArgument<K extends keyof Hooks> = Parameters<NonNullable<Hooks[K]>>[0];
type ListHookName = {
  [K in keyof Hooks]-?: 'resource' extends keyof HookArgument<K> ? K : never;
}[keyof Hooks];

/** Hooks of one list. Their arguments have no field `resource`. */
export type ListHooks = {
  readonly [K in ListHookName]: (argument: Omit<HookArgument<K>, 'resource'>) => void;
};

/** Binds hooks to a list: the list's name is added to their arguments as `resource`. Hooks that are not set do nothing. */
export function listHooks(hooks: Hooks, resource: Resource): ListHooks {
  return new Proxy({} as ListHooks, {
    get: (_, name) => (argument: object) =>
      hooks[name as ListHookName]?.({ resource, ...argument } as never),
  });
}
