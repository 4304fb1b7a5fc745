import type { Hooks, Published } from '../../observe/hooks.ts';
import { RULES } from '../../resources/resources.ts';
import type { Resource } from '../../resources/resources.ts';
import type { DatesFound } from '../../streams/paging/list-dates.ts';
import type { Operation } from '../../streams/diff/change.ts';

/** What a page came to: records that were read, and events by what they say. */
export interface PageCounts {
  /** Records that were read and held against what is published. */
  readonly read: number;
  readonly events: Readonly<Record<Operation, number>>;
}

/**
 * Counts a page. An event is no sign of a record read where it is a deletion, nor where a request to
 * publish again added it beside what has changed.
 */
export function countPage({ lane, changes, unchanged }: Published): PageCounts {
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
