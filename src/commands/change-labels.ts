import type { Op } from '../schemas/events/envelope.ts';

/** Label that is printed for each kind of event, by the event's `op`. */
export const OP_LABELS: Readonly<Record<Op, string>> = {
  r: 'read',
  c: 'created',
  u: 'updated',
  d: 'deleted',
};

/** Number of changed fields' paths that are printed for an event. */
const PATHS_SHOWN = 4;

/** Returns the first few paths of an event's changed fields, followed by the number of the others. */
export function firstPaths(paths: readonly string[]): readonly string[] {
  const more = paths.length - PATHS_SHOWN;
  return more > 0 ? [...paths.slice(0, PATHS_SHOWN), `${more} more`] : paths;
}

/** Returns the readable name of a status, such as `fulfillment[7].status`; for a status of the order itself just the field. */
export function statusName(subject: string, subjectId: string | null, field: string): string {
  const which = subjectId === null ? '' : `[${subjectId}]`;
  return subject === 'order' ? field : `${subject}${which}.${field}`;
}
