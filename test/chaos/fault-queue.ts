import type { Chance } from '../support/chance.ts';
import type { Fault } from './faults.ts';
import { IS_SHORT, ONLY } from './settings.ts';

/** Those that a run of this length can afford. */
export function faultsFor(faults: readonly Fault[]): Fault[] {
  const isLeftOut = ({ isLong }: Fault) => IS_SHORT && isLong && ONLY === '';
  const isWanted = ({ name }: Fault) => ONLY.split('|').some((part) => name.includes(part));
  return faults.filter((fault) => isWanted(fault) && !isLeftOut(fault));
}

/** Every fault once, in an order of its own; then again, in another. */
export function* inRandomOrder(faults: readonly Fault[], chance: Chance): Generator<Fault, never> {
  for (;;) {
    const order = [...faults];
    for (let k = order.length - 1; k > 0; k--) {
      const other = chance.below(k + 1);
      [order[k], order[other]] = [order[other]!, order[k]!];
    }
    yield* order;
  }
}
