import * as real from '../../../src/sinks/producer/coordinator.ts';
import type { CoordinatorResult } from '../../../src/sinks/producer/coordinator.ts';

export * from '../../../src/sinks/producer/coordinator.ts';

/** A commit whose answer was lost is asked for again: the late copy of it may end the next transaction. */
export class TransactionCoordinator extends real.TransactionCoordinator {
  override send<T>(...[call, options]: Parameters<real.TransactionCoordinator['send']>) {
    const sent = super.send(call, { ...options, isRepeatable: true });
    return sent as Promise<CoordinatorResult<T>>;
  }
}
