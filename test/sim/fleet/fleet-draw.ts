import type { Chance } from '../../support/chance.ts';

/** What a run's seed decides before it begins. */
export interface FleetDraw {
  readonly accounts: number;
  readonly instances: number;
  /** Whether all begin in the same moment. */
  readonly isAtOnce: boolean;
  readonly quotaPerMinute: number;
  /** How many accounts are asked for as often as they may. */
  readonly busy: number;
  /** How long it takes to read an account's images, at most, ms. */
  readonly imagesMs: number;
  /** Whether the first account has records, which its real task publishes. */
  readonly withRecords: boolean;
  /** Faults one by one, or many at a time. */
  readonly isStorm: boolean;
  readonly faults: number;
  /** Whether accounts become heavy in the end, which takes long. */
  readonly weightsChange: boolean;
}

export function drawFleet(chance: Chance): FleetDraw {
  const isStorm = chance.is(0.6);
  return {
    accounts: 3 + chance.below(6),
    instances: 2 + chance.below(3),
    isAtOnce: chance.is(0.4),
    quotaPerMinute: chance.pick([20, 30, 60]),
    busy: 1 + chance.below(3),
    imagesMs: chance.pick([200, 3_000, 12_000]),
    withRecords: chance.is(0.15),
    isStorm,
    faults: isStorm ? 6 + chance.below(10) : 2,
    weightsChange: chance.is(0.25),
  };
}
