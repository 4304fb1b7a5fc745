import type { Hooks } from '../observe/hooks.ts';

/**
 * Hooks that keep what they throw to themselves: who only watches must not end what is watched.
 * `onError` is told of the first error of each hook; what it throws itself is thrown.
 */
export function guarded(hooks: Hooks, onError: (hook: string, error: unknown) => void): Hooks {
  const told = new Set<string>();
  const guard =
    (name: string, hook: (told: never) => void) =>
    (event: never): void => {
      try {
        hook(event);
      } catch (error) {
        if (told.has(name)) return;
        told.add(name);
        onError(name, error);
      }
    };
  const all = Object.entries(hooks) as [string, (told: never) => void][];
  return Object.fromEntries(all.map(([name, hook]) => [name, guard(name, hook)]));
}
