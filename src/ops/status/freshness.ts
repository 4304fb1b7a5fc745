import type { Hooks } from '../../observe/hooks.ts';
import { instantOf } from '../../schemas/avro/instant.ts';
import type { Change } from '../../streams/diff/change.ts';

/**
 * When what was created or updated was so, by the API: ms since the epoch. Null where it does not
 * tell: what is read for the first time, a deletion, and a change that has left `updated_at` as it
 * was.
 */
export function newUpdatedAt({ op, before, updatedAt }: Change): number | null {
  if (op !== 'c' && op !== 'u') return null;
  return before && instantOf(before, 'updated_at') === updatedAt ? null : updatedAt;
}

/** How far the API's clock is ahead of ours, as far as logins have told. */
export interface ClockDifference {
  /** To be told: of every request and login. */
  readonly hooks: Pick<Required<Hooks>, 'onRequest' | 'onLogin'>;
  /** Ms; 0 until a difference can be told. */
  readonly aheadMs: () => number;
}

/** An answer's `Date` is cut to seconds, and both clocks tick meanwhile: less is no difference. */
const LEAST_DIFFERENCE_MS = 2_000;

/**
 * The difference of the clocks by the last login that told one: a login without `Date` changes
 * nothing. When in its answer's time the server read its clock nobody knows, so a slow login can tell
 * a large difference only.
 */
export function clockDifference(): ClockDifference {
  let aheadMs = 0;
  let elapsedMs = 0;
  return {
    hooks: {
      // A login's request ends right before the login is told.
      onRequest: ({ what, elapsedMs: took }) => {
        if (what === 'login') elapsedMs = took;
      },
      onLogin: ({ aheadMs: told = aheadMs }) => {
        aheadMs = Math.abs(told) > LEAST_DIFFERENCE_MS + elapsedMs ? told : 0;
      },
    },
    aheadMs: () => aheadMs,
  };
}
