import type { Hooks } from './hooks.ts';

/** Combines several objects with hooks into one that calls the hooks of each of them, in order. */
export function allHooks(...all: readonly Hooks[]): Hooks {
  const names = new Set(all.flatMap((hooks) => Object.keys(hooks))) as Set<keyof Hooks>;
  const joined = [...names].map((name) => [
    name,
    (argument: never) => all.forEach((hooks) => hooks[name]?.(argument)),
  ]);
  return Object.fromEntries(joined) as Hooks;
}
