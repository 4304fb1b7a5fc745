import { setOwn } from './json.ts';
import type { JsonObject, JsonValue } from './json.ts';

/** A name as a step of a JSON Pointer (RFC 6901), its slash in front: `/a~1b` for `a/b`. */
export function pointerStep(name: string): string {
  return `/${name.includes('~') || name.includes('/') ? escape(name) : name}`;
}

/** The names that a JSON Pointer leads through. */
export function pointerNames(pointer: string): string[] {
  return pointer.split('/').slice(1).map(unescape);
}

function escape(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}

/** The value with `part` put where a JSON Pointer points. What's missing on the way is made. */
export function withPart(value: JsonValue, pointer: string, part: JsonValue): JsonValue {
  if (pointer === '') return part;
  const steps = pointer.split('/');
  const last = unescape(steps.pop()!);
  let parent = value as JsonObject;
  for (let depth = 1; depth < steps.length; depth++) {
    const name = unescape(steps[depth]!);
    let child = Object.hasOwn(parent, name) ? parent[name] : undefined;
    if (typeof child !== 'object' || child === null) setOwn(parent, name, (child = {}));
    parent = child as JsonObject;
  }
  setOwn(parent, last, part);
  return value;
}

function unescape(step: string): string {
  return step.includes('~') ? step.replaceAll('~1', '/').replaceAll('~0', '~') : step;
}
