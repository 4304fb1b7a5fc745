import type { Hooks, Published } from '../../observe/hooks.ts';
import { RULES } from '../../resources/resources.ts';
import type { Resource } from '../../resources/resources.ts';
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

/**
 * Whether with this page somebody has found out, from beginning to end, what is new in its list: by a poll
 * where there are polls, else by a reading of the whole list.
 */
export function isLook({ resource, lane, completes }: Published): boolean {
  const polled = RULES[resource as Resource].windowed;
  return completes && (polled ? lane === 'poll' : lane === 'first-read' || lane === 'sweep');
}

/** Whether a sweep has read enough to tell what is gone: less where what is missing is asked for. */
export function tellsWhatIsGone({
  proof,
  canBeAsked,
}: Pick<Parameters<Required<Hooks>['onSwept']>[0], 'proof' | 'canBeAsked'>): boolean {
  return canBeAsked ? proof !== 'nothing' : proof === 'exact' || proof === 'anchored';
}
