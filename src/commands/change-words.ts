import type { Op } from '../schemas/events/envelope.ts';

/** What an event says, as a word. */
export const WORDS: Readonly<Record<Op, string>> = {
  r: 'read',
  c: 'created',
  u: 'updated',
  d: 'deleted',
};

const PATHS_SHOWN = 4;

/** The first few paths, and how many there are more. */
export function somePaths(paths: readonly string[]): readonly string[] {
  const more = paths.length - PATHS_SHOWN;
  return more > 0 ? [...paths.slice(0, PATHS_SHOWN), `${more} more`] : paths;
}

/** A status as people name it: of an order by its field alone. */
export function statusName(subject: string, subjectId: string | null, field: string): string {
  const which = subjectId === null ? '' : `[${subjectId}]`;
  return subject === 'order' ? field : `${subject}${which}.${field}`;
}
