// @ts-check
// Rows that are known to miss a target: a check tells of them, and fails only where they can't
// be measured. The event loop's is met, but in milliseconds: another machine may be slower.

/** Names of rows. @type {readonly string[]} */
export const KNOWN = ['cpu-new', 'cpu-unchanged', 'throughput', 'event-loop'];
