import type { Hooks } from './hooks.ts';

/** Hooks as one: each is told, in their order. */
export function allHooks(...all: readonly Hooks[]): Hooks {
  const names = new Set(all.flatMap((hooks) => Object.keys(hooks))) as Set<keyof Hooks>;
  const joined = [...names].map((name) => [
    name,
    (told: never) => all.forEach((hooks) => hooks[name]?.(told)),
  ]);
  return Object.fromEntries(joined) as Hooks;
}
