import type { Instance } from '../integration/support/fleet.ts';

interface Claim {
  readonly by: Instance;
  /** Ms since the epoch. */
  readonly at: number;
}

/** What happened to the fleet since a moment, ms since the epoch. */
export interface Change {
  readonly since: number;
  readonly left?: Instance;
  readonly came?: Instance;
}

export interface Moves {
  readonly count: number;
  /** Those that were neither away from the instance that left, nor to the one that came. */
  readonly needless: readonly string[];
}

/** Who runs what, as the instances' logs say: each line is looked at once. */
export class Owners {
  readonly #looked = new Map<Instance, number>();
  /** By account, the oldest first. */
  readonly #claims = new Map<string, readonly Claim[]>();

  /** Of an instance, those whose newest claim is its own; the instances are all that ever were. */
  of(instance: Instance, instances: readonly Instance[]): readonly string[] {
    for (const each of instances) this.#look(each);
    return [...this.#claims].flatMap(([account, claims]) =>
      claims.at(-1)?.by === instance ? [account] : [],
    );
  }

  /** Accounts that went from one instance to another; the instances are all that ever were. */
  moves({ since, left, came }: Change, instances: readonly Instance[]): Moves {
    for (const each of instances) this.#look(each);
    const moves = [...this.#claims].flatMap(([account, claims]) =>
      claims.flatMap(({ by, at }, place) => {
        const from = claims[place - 1]?.by;
        return from && from !== by && at >= since ? [{ account, from, to: by }] : [];
      }),
    );
    const needless = moves.filter(({ from, to }) => from !== left && to !== came);
    return {
      count: moves.length,
      needless: needless.map(({ account, from, to }) => `${account}: ${from.name} to ${to.name}`),
    };
  }

  #look(by: Instance): void {
    const lines = by.cli.lines();
    for (const { event, step, account, time } of lines.slice(this.#looked.get(by) ?? 0)) {
      if (event !== 'account' || step !== 'claim') continue;
      const name = String(account);
      const claims = [...(this.#claims.get(name) ?? []), { by, at: Date.parse(String(time)) }];
      this.#claims.set(
        name,
        claims.toSorted((a, b) => a.at - b.at),
      );
    }
    this.#looked.set(by, lines.length);
  }
}
