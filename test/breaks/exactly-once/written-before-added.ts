import * as real from '../../../src/sinks/producer/coordinator.ts';
import type { CoordinatorResult } from '../../../src/sinks/producer/coordinator.ts';

export * from '../../../src/sinks/producer/coordinator.ts';

/** Partitions are written to before the coordinator has added them to the transaction. */
export class TransactionCoordinator extends real.TransactionCoordinator {
  override async send<T>(...args: Parameters<real.TransactionCoordinator['send']>) {
    const sent = super.send(...args) as Promise<CoordinatorResult<T>>;
    if (args[0].name !== 'AddPartitionsToTxn') return sent;
    sent.catch(() => undefined);
    return { lateCopyPossible: false } as CoordinatorResult<T>;
  }
}
