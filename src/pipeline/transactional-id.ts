import type { Resource } from '../resources/resources.ts';

/**
 * Returns the transactional id of a task. Ids must be unique: two tasks with the same id would fence each other again and again. If the
 * prefix or the account contains a dot, the account follows a `/`, which neither can contain: joined by dots, prefix `wine` with account
 * `eu.main` would equal prefix `wine.eu` with account `main`.
 *
 * Every id begins with `cellarstream.` and the prefix, so that ACLs can match it.
 */
export function transactionalId(prefix: string, account: string, resource: Resource): string {
  return `${prefix}${account}`.includes('.')
    ? `cellarstream.${prefix}.${resource}/${account}`
    : `cellarstream.${prefix}.${account}.${resource}`;
}
