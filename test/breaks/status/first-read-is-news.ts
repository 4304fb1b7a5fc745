import * as real from '../../../src/streams/diff/status-changes.ts';

export * from '../../../src/streams/diff/status-changes.ts';

/** The initial snapshot of history makes status changes. */
export const statusChanges: typeof real.statusChanges = (change, list) =>
  real.statusChanges(change.op === 'r' ? { ...change, op: 'c' } : change, list);
