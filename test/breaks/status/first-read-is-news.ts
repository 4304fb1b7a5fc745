import * as real from '../../../src/streams/diff/order-status.ts';

export * from '../../../src/streams/diff/order-status.ts';

/** The initial snapshot of history makes status changes. */
export const statusChanges: typeof real.statusChanges = (change) =>
  real.statusChanges(change.op === 'r' ? { ...change, op: 'c' } : change);
