import { orderStatusChangeCodec } from '../../src/description/wine/order-status.ts';
import { unframe } from '../../src/schemas/registry/wire.ts';
import { wrongStatusChanges } from '../integration/support/checker.ts';
import type { Chains } from './published.ts';
import type { SimMessage } from './sim-broker.ts';

/** Each status that differs between two images is one event, in order, and there are no others. */
export function checkStatuses(chains: Chains, messages: readonly SimMessage[]): string[] {
  const changes = messages.map(({ key, value }) => ({
    key,
    ...orderStatusChangeCodec.decode(unframe(value!).payload),
  }));
  const steps = [...chains].flatMap(([key, chain]) =>
    chain.flatMap((event) => {
      if (event === 'tombstone') return [];
      const { op, before, record, decode } = event;
      return [{ key, op, before: before && decode(before), after: record }];
    }),
  );
  return wrongStatusChanges(changes, steps);
}
