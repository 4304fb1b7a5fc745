import type { Destination } from '../../src/sinks/topics/destination.ts';

/** Topics under `sim`, which the model of a broker makes as they are written to. */
export const SIM_DESTINATION: Destination = {
  records: (resource) => `sim.${resource}`,
  statusChanges: new Map([['orders', { topic: 'sim.order-status-changes', schemaId: 900 }]]),
  deadLetters: { topic: 'sim.dead-letters', schemaId: 901 },
  cursors: 'sim.cursors',
  ledger: 'sim.ledger',
  certificates: 'sim.certificates',
  partitions: new Map(),
  maxMessageBytes: new Map(),
  inspect: () => Promise.resolve([]),
};
