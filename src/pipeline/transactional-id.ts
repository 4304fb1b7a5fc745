import type { Resource } from '../resources/resources.ts';

/** What a task is known by to brokers. */
export interface TransactionalIds {
  readonly transactionalId: string;
  /** What older versions have called it, where that was another name. */
  readonly formerId?: string;
}

/**
 * The transactional id of a task: two that share one fence each other for ever. Dots may stand in a prefix and in an
 * account, so with dots alone between the parts `wine` and `eu.main` would have the id of `wine.eu` and `main`. `/` stands in
 * neither. Where there is one dot between prefix and account, and none in them, the id has only ever been theirs, and stays.
 *
 * All begin with `cellarstream.` and the prefix: ACLs name them by that.
 */
export function transactionalIds(
  prefix: string,
  account: string,
  resource: Resource,
): TransactionalIds {
  const dotted = `cellarstream.${prefix}.${account}.${resource}`;
  if (!`${prefix}${account}`.includes('.')) return { transactionalId: dotted };
  return { transactionalId: `cellarstream.${prefix}.${resource}/${account}`, formerId: dotted };
}
