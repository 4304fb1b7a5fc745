// Figures computed from hook events, shared by metrics, status and readiness.

import type { Hooks, Published } from '../../observe/hooks.ts';
import { listNamed } from '../../description/description.ts';
import type { ApiDescription } from '../../description/description.ts';
import type { Change, Operation } from '../../streams/diff/change.ts';
import type { DatesFound } from '../../streams/paging/list-dates.ts';

/** Returns how many records were read for a page (`read`), and the number of the page's events by operation (`events`). */
export function countPage({ lane, changes, unchanged }: Published) {
  const events: Record<Operation, number> = { r: 0, c: 0, u: 0, d: 0 };
  for (const { op } of changes) events[op] += 1;
  // An `r` event of a resync repeats a record that already counts as unchanged or has a `c` or `u` event.
  const read = unchanged + events.c + events.u + (lane === 'resync' ? 0 : events.r);
  return { read, events };
}

/** Recognizes the pages that complete a scan which finds all changes of its list: a poll or, in a list without polls, a full scan. */
export class ChangeScans {
  readonly #description: ApiDescription;
  readonly #unpolled = new Set<string>();

  constructor(description: ApiDescription) {
    this.#description = description;
  }

  /** Stores whether a list is polled. A list whose date parameters can't be used is not polled. */
  updateDates({ resource, noDates }: Pick<DatesFound, 'noDates'> & { resource: string }): void {
    if (noDates === null) this.#unpolled.delete(resource);
    else this.#unpolled.add(resource);
  }

  findsAllChanges({ resource, lane, completes }: Published): boolean {
    const { dates } = listNamed(this.#description, resource);
    const isPolled = dates !== undefined && !this.#unpolled.has(resource);
    return completes && (isPolled ? lane === 'poll' : lane === 'first-read' || lane === 'sweep');
  }
}

type Swept = Parameters<Required<Hooks>['onSwept']>[0];

/**
 * Returns whether the deletions in a list are known after a sweep (full scan):
 *
 * - `known`: the sweep shows which records were deleted, or which records to request individually in order to find out;
 * - `unknown`: the evidence from the sweep is too weak for that;
 * - `never`: neither sweeps nor requests for single records can prove a deletion in this list.
 */
export function deletionsOf(swept: Swept): 'known' | 'unknown' | 'never' {
  const { proof, level, canProve, canBeAsked } = swept;
  if (!canProve) return 'never';
  const isProven = canBeAsked
    ? proof !== 'nothing'
    : proof === 'exact' || proof === 'anchored' || level === 'whole' || level === 'agreed';
  return isProven ? 'known' : 'unknown';
}

/**
 * Returns the time of the change that an event reports, in epoch ms by the API's clock: the record's modification time. Null for events
 * with `op` `r` or `d`, and if the modification time is unknown or did not change.
 */
export function changeTime({ op, before, updatedAt, updatedBefore = null }: Change): number | null {
  if (op !== 'c' && op !== 'u') return null;
  return before && updatedBefore === updatedAt ? null : updatedAt;
}

/**
 * Tolerance for the difference between the API's clock and this machine's, in ms. The duration of the login is added to it. Smaller
 * differences count as 0, because a `Date` header is truncated to seconds.
 */
const MIN_SKEW_MS = 2_000;

/** Measures how far the API's clock is ahead of this machine's, by the newest login response that contains a time. */
export class ClockSkew {
  #aheadMs = 0;
  #elapsedMs = 0;

  readonly hooks = {
    // For a login, onRequest is called right before onLogin.
    onRequest: ({ what, elapsedMs }) => {
      if (what === 'login') this.#elapsedMs = elapsedMs;
    },
    onLogin: ({ aheadMs = this.#aheadMs }) => {
      // The server may have read its clock at any moment during the login.
      this.#aheadMs = Math.abs(aheadMs) > MIN_SKEW_MS + this.#elapsedMs ? aheadMs : 0;
    },
  } satisfies Hooks;

  /**
   * How far the API's clock is ahead of this machine's, in ms. Negative if it is behind; 0 if the difference is unknown or within the
   * tolerance.
   */
  get aheadMs(): number {
    return this.#aheadMs;
  }
}
