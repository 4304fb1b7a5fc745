// @ts-check
// Rows that are known to miss a target: a check tells of them, and fails only where they can't
// be measured.

/** Names of rows. @type {readonly string[]} */
export const KNOWN = ['cpu-new', 'cpu-unchanged', 'throughput', 'event-loop'];
