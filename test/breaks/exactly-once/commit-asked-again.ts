import * as real from '../../../src/sinks/producer/coordinator.ts';

export * from '../../../src/sinks/producer/coordinator.ts';

/** A commit whose answer was lost is asked for again: the late copy of it may end the next transaction. */
export const transactionCoordinator: typeof real.transactionCoordinator = (brokers, id) => {
  const coordinator = real.transactionCoordinator(brokers, id);
  return { send: (call, options) => coordinator.send(call, { ...options, isRepeatable: true }) };
};
