import * as real from '../../../src/resources/orders/order-status.ts';

export * from '../../../src/resources/orders/order-status.ts';

/** The initial snapshot of history makes status changes. */
export const statusChanges: typeof real.statusChanges = (change) =>
  real.statusChanges(change.op === 'r' ? { ...change, op: 'c' } : change);
