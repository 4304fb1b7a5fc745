import { isQuarantined, probationMs } from './check-quarantines.ts';
import type { FleetInstance } from './fleet-instance.ts';
import type { SimAccount } from './sim-account.ts';
import type { Said } from './sim-fleet-topic.ts';
import type { SimGroup } from './sim-group.ts';

export interface Watched {
  readonly group: SimGroup;
  readonly accounts: Iterable<SimAccount>;
  readonly instances: readonly FleetInstance[];
  /** The fleet's topic. */
  readonly said: readonly Said[];
}

/** From the last fault, or from when somebody can take it, ms. */
const UNOWNED_MS = 30_000;

/**
 * Whether each account has an owner, as somebody who sees everything has it: an instance that runs, reaches Kafka, and has claimed
 * the account last. Without one time counts while there is an instance that could be it, from the last fault on: a fault during
 * a takeover begins another one. A declared block makes no difference: it holds back requests, not the claim.
 */
export class FleetWatch {
  readonly violations: string[] = [];
  longestMs = 0;
  readonly #since = new Map<SimAccount, number>();
  #disturbedAt = -Infinity;

  /** A fault begins, or ends. */
  disturbed(at: number): void {
    this.#disturbedAt = at;
  }

  look(now: number, { group, accounts, instances, said }: Watched): void {
    const all = [...accounts];
    const moreMs = probationMs(
      said,
      all.map(({ name }) => name),
      now,
    );
    for (const account of all) {
      if (
        isQuarantined(said, account.name) ||
        hasOwner(account, instances) ||
        !hasCandidate(account, group, instances)
      ) {
        this.#since.set(account, now);
        continue;
      }
      const since = Math.max(this.#since.get(account) ?? now, this.#disturbedAt);
      this.#since.set(account, since);
      this.longestMs = Math.max(this.longestMs, now - since);
      if (now - since <= UNOWNED_MS + moreMs(account.name)) continue;
      this.violations.push(`${account.name} has no owner since ${since}, at ${now}`);
      this.#since.set(account, Infinity); // said once
    }
  }
}

export function hasOwner(account: SimAccount, instances: readonly FleetInstance[]): boolean {
  const name = account.owner()?.instance;
  return instances.some((each) => each.name === name && each.isReachable);
}

function hasCandidate(
  account: SimAccount,
  group: SimGroup,
  instances: readonly FleetInstance[],
): boolean {
  return (
    !group.isAway &&
    instances.some(
      (each) => each.isWell && group.has(each.memberId) && each.known.includes(account.name),
    )
  );
}
