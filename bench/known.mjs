// @ts-check
// Rows that are known to miss a target: a check tells of them and does not fail.

/** Names of rows. @type {readonly string[]} */
export const KNOWN = ['cpu-new', 'cpu-unchanged', 'throughput', 'event-loop', 'rebuild'];
