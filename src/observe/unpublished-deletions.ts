// Texts about deletions that are not published, for the log and for the warnings of the status page.

/**
 * Number of consecutive sweeps (full scans) that fail to prove which records were deleted, after which this is logged and shown. These
 * sweeps must also extend over at least ten minutes.
 */
export const UNPROVEN_SWEEPS = 3;

/** Returns the text about deletions that `DELETE_LIMIT_PERCENT` holds back: `gone` of the `known` records of a list are missing. */
export function heldDeletionsText(gone: number, known: number): string {
  return `${gone} of ${known} records are missing from the newest full scan: their deletions are held back by DELETE_LIMIT_PERCENT. If the records were really deleted, set DELETE_LIMIT_PERCENT to 100 until their deletions are published`;
}

/** Returns the text about a list whose full scans do not prove deletions. `totalName` is the name of the list's total in responses. */
export function unprovenDeletionsText(totalName: string): string {
  return `deletions from this list are not published, because none of its last full scans can be shown to have read every record: in each scan the order of the records changed, and ${totalName} changed or differed from the number of keys read`;
}
