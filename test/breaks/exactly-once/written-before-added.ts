import * as real from '../../../src/sinks/producer/coordinator.ts';
import type { CoordinatorResult } from '../../../src/sinks/producer/coordinator.ts';

export * from '../../../src/sinks/producer/coordinator.ts';

/** Partitions are written to before the coordinator has added them to the transaction. */
export const transactionCoordinator: typeof real.transactionCoordinator = (brokers, id) => {
  const coordinator = real.transactionCoordinator(brokers, id);
  return {
    send: async <T>(...[call, options]: Parameters<typeof coordinator.send<T>>) => {
      const asked = coordinator.send(call, options);
      if (call.name !== 'AddPartitionsToTxn') return asked;
      asked.catch(() => undefined);
      return { lateCopyPossible: false } as CoordinatorResult<T>;
    },
  };
};
