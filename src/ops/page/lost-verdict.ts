import type { ConnectionState } from './connection-state.ts';
import type { Verdict } from './verdict-type.ts';
import { timeOfDay } from './words.ts';

/**
 * What there is to say when nothing is heard.
 *
 * @param at When the service told last, on its own clock; undefined when it never did.
 */
export function lostVerdict(
  at: number | undefined,
  connection: Extract<ConnectionState, { isLive: false }>,
): Pick<Verdict, 'tone' | 'headline' | 'subline'> {
  // On one clock: the service's, if it has ever told a time.
  const since = timeOfDay(at ?? connection.since);
  const old = at === undefined ? '' : 'The figures below are as of then. ';
  if (connection.refusal !== undefined) {
    return {
      tone: 'lost',
      headline: 'This account does not run here',
      subline: `${connection.refusal}. ${at === undefined ? '' : `The figures below are as of ${since}. `}This page tries again by itself.`,
    };
  }
  return connection.answers
    ? {
        tone: 'lost',
        headline: `Not live: as of ${since}`,
        subline: `The service answers, but its updates do not reach this page: too many pages may be open, or a proxy may hold them back. ${old}This page tries again by itself.`,
      }
    : {
        tone: 'lost',
        headline: `No word from the service since ${since}`,
        subline: `${at === undefined ? '' : 'The connection is lost. '}${old}This page tries again by itself.`,
      };
}
