import * as real from '../../../src/kafka/fetch/read-batches.ts';

export * from '../../../src/kafka/fetch/read-batches.ts';

/**
 * The ledger is read to its last stable offset: what was declared in a transaction that is open, or was aborted, goes unseen.
 * Kafka shows it: test/integration/ledger.test.ts.
 */
export const readBatches: typeof real.readBatches = ({ isolation: _, ...options }, handle) =>
  real.readBatches(options, handle);
