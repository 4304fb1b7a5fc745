import type { Hooks } from './hooks.ts';

/** Combines several objects with hooks into one that calls the hooks of each of them, in order. */
export function allHooks(...all: readonly Hooks[]): Hooks {
  const names = new Set(all.flatMap((hooks) => Object.keys(hooks))) as Set<keyof Hooks>;
  const joined = [...names].map((name) => {
    const named = all.flatMap((hooks) => hooks[name]?.bind(hooks) ?? []);
    return [
      name,
      (argument: never) => {
        for (const hook of named) hook(argument);
      },
    ];
  });
  return Object.fromEntries(joined) as Hooks;
}
