import type { Resource } from '../resources/resources.ts';

/**
 * The transactional id of a task. Two tasks with one id would fence each other for ever. A prefix and an account may hold dots, so with dots
 * alone between the parts, `wine` with `eu.main` would have the id of `wine.eu` with `main`; neither can hold a `/`.
 *
 * Every id begins with `cellarstream.` and the prefix, which ACLs rely on.
 */
export function transactionalId(prefix: string, account: string, resource: Resource): string {
  return `${prefix}${account}`.includes('.')
    ? `cellarstream.${prefix}.${resource}/${account}`
    : `cellarstream.${prefix}.${account}.${resource}`;
}
