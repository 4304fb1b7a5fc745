// What the events of hooks come to, for metrics, status, readiness and the log alike.

import type { Hooks, Published } from '../../observe/hooks.ts';
import { RULES } from '../../resources/resources.ts';
import type { Resource } from '../../resources/resources.ts';
import { instantOf } from '../../schemas/avro/instant.ts';
import type { Change, Operation } from '../../streams/diff/change.ts';
import type { DatesFound } from '../../streams/paging/list-dates.ts';

/**
 * Counts the records of a page that were read and compared, and its events by what they say. An event is no sign of a record read where it
 * is a deletion, nor where a request to publish again added it beside what has changed.
 */
export function countPage({ lane, changes, unchanged }: Published) {
  const events: Record<Operation, number> = { r: 0, c: 0, u: 0, d: 0 };
  for (const { op } of changes) events[op] += 1;
  const read = unchanged + events.c + events.u + (lane === 'resync' ? 0 : events.r);
  return { read, events };
}

/** Which pages end a reading that finds everything new in its list. */
export class Looks {
  readonly #unpolled = new Set<string>();

  /** Takes what was found out about the dates of a list: without them it is not polled. */
  dates({ resource, noDates }: Pick<DatesFound, 'noDates'> & { readonly resource: string }): void {
    if (noDates === null) this.#unpolled.delete(resource);
    else this.#unpolled.add(resource);
  }

  /** Whether the page is the last of a poll; in a list without polls, of a reading of the whole list. */
  isLook({ resource, lane, completes }: Published): boolean {
    const isPolled = RULES[resource as Resource].windowed && !this.#unpolled.has(resource);
    return completes && (isPolled ? lane === 'poll' : lane === 'first-read' || lane === 'sweep');
  }
}

/** Whether a sweep has read enough to tell what is gone: less where what is missing is asked for. */
export function tellsWhatIsGone({
  proof,
  canBeAsked,
}: Pick<Parameters<Required<Hooks>['onSwept']>[0], 'proof' | 'canBeAsked'>): boolean {
  return canBeAsked ? proof !== 'nothing' : proof === 'exact' || proof === 'anchored';
}

/**
 * When what was created or updated was so, by the API: ms since the epoch. Null where it does not tell: what is read for the first time, a
 * deletion, and a change that has left `updated_at` as it was.
 */
export function newUpdatedAt({ op, before, updatedAt }: Change): number | null {
  if (op !== 'c' && op !== 'u') return null;
  return before && instantOf(before, 'updated_at') === updatedAt ? null : updatedAt;
}

/** An answer's `Date` is cut to seconds, and both clocks tick meanwhile: less is no difference. */
const LEAST_DIFFERENCE_MS = 2_000;

/**
 * How far the API's clock is ahead of ours, by the last login that told it: a login without `Date` changes nothing. When in its answer's
 * time the server read its clock nobody knows, so a slow login can tell a large difference only.
 */
export function clockDifference() {
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
    } satisfies Hooks,
    /** Ms; 0 until a difference can be told. */
    aheadMs: () => aheadMs,
  };
}
