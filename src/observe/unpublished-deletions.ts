// Deletions that are not published: when that is reported, and the texts for the log and the warnings of the status page.

/** A list is reported only after at least this number of consecutive sweeps (full scans) that could not prove deletions. */
const MIN_SWEEPS = 3;
/**
 * A list is reported only if its sweeps could not prove deletions for at least this time, in ms. Needed because the sweeps of a short list
 * follow each other in seconds.
 */
const MIN_DURATION_MS = 10 * 60_000;

/** Counts, for each list, the consecutive sweeps (full scans) that failed to prove which records were deleted. */
export class UnprovenSweeps {
  readonly #byList = new Map<string, { readonly since: number; sweeps: number }>();

  /**
   * Counts a sweep that could not prove deletions. `now`: when the sweep ended, in ms of a steady clock. Returns whether the list has to be
   * reported: after three such sweeps in a row, over at least ten minutes.
   */
  add(resource: string, now: number): boolean {
    const failed = this.#byList.get(resource) ?? { since: now, sweeps: 0 };
    this.#byList.set(resource, failed);
    failed.sweeps += 1;
    return failed.sweeps >= MIN_SWEEPS && now - failed.since >= MIN_DURATION_MS;
  }

  /** Forgets the counted sweeps of a list: after a sweep that could prove deletions, or after the list was reported. */
  reset(resource: string): void {
    this.#byList.delete(resource);
  }
}

/** Returns the text about deletions that `DELETE_LIMIT_PERCENT` holds back: `gone` of the `known` records of a list are missing. */
export function heldDeletionsText(gone: number, known: number): string {
  return `${gone} of ${known} records are missing from the newest full scan: their deletions are held back by DELETE_LIMIT_PERCENT. If the records were really deleted, set DELETE_LIMIT_PERCENT to 100 until their deletions are published`;
}

/** Returns the text about a list whose full scans do not prove deletions. `totalName` is the name of the list's total in responses. */
export function unprovenDeletionsText(totalName: string): string {
  return `deletions from this list are not published, because none of its last full scans can be shown to have read every record: in each scan the order of the records changed, and ${totalName} changed or differed from the number of keys read`;
}
