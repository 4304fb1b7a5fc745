import type { FleetState, FleetView } from '../../observe/fleet-view.ts';
import type { Cause, Readiness } from './readiness.ts';

interface FleetReadinessOptions {
  /** The accounts that run here, by name. */
  readonly accounts: ReadonlyMap<string, { readonly check: () => Readiness }>;
  /** The clock: ms since the epoch, which never goes back. */
  readonly now: () => number;
}

/** What no instance mends: somebody has to do something about the account. */
const OUT_OF_OUR_HANDS: ReadonlySet<FleetState> = new Set(['failed', 'wrong-file', 'quarantined']);
/** What is most likely wrong with the account's own API. */
const OF_ITS_API: ReadonlySet<Cause> = new Set(['failed', 'login', 'api']);

/**
 * Whether an instance of a fleet can be relied on. It is ready when it is in the group and each account that it runs is ready, or has
 * failed for reasons of its own, which a restart of this instance would not heal. Nor is it while accounts that it was given are still to
 * come: whoever restarts instances one after the other would stop the next one before this one has taken its part. An account that waits
 * for its API is such a one as long as another account here is ready: where none is, it may well be this instance that reaches no API.
 */
export function fleetReadiness({ accounts, now }: FleetReadinessOptions) {
  let states: ReadonlyMap<string, FleetState> = new Map();
  /** Those that this instance is to run, and does not yet. */
  let coming: readonly string[] = [];
  let isIn = false;
  /** When this instance fell out of the group; undefined before it was in one. */
  let outSince: number | undefined;

  const group = (): Wrong[] => {
    if (isIn) return [];
    if (outSince === undefined) {
      return [{ line: "not in the fleet's group yet", causes: ['starting'] }];
    }
    const time = `${new Date(outSince).toISOString().slice(0, 19)}Z`;
    return [{ line: `not in the fleet's group any more since ${time}`, causes: ['kafka'] }];
  };
  const ofAccounts = (): Wrong[] => {
    const all = [...accounts].map(([account, { check }]) => ({ account, ...check() }));
    const anyReady = all.some(({ ready }) => ready);
    const isItsOwn = ({ account, causes }: (typeof all)[number]) =>
      OUT_OF_OUR_HANDS.has(states.get(account) ?? 'running') ||
      causes.every((cause) => cause === 'failed' || (anyReady && OF_ITS_API.has(cause)));
    const wrong = all.filter((each) => !each.ready && !isItsOwn(each));
    const alike = new Map<string, Set<string>>();
    for (const { account, reasons } of wrong) {
      for (const reason of reasons) {
        alike.set(reason, (alike.get(reason) ?? new Set()).add(account));
      }
    }
    const causes = wrong.flatMap((each) => each.causes);
    return [...alike].map(([reason, names]) => ({
      line: `${[...names].join(', ')}: ${reason}`,
      causes,
    }));
  };

  const toCome = (): Wrong[] =>
    coming.length === 0
      ? []
      : [{ line: `${coming.join(', ')}: to come to this instance`, causes: ['starting'] }];

  return {
    onFleet: ({ instance, generation, accounts: known }: FleetView) => {
      const wasIn = isIn;
      isIn = generation !== undefined;
      if (wasIn && !isIn) outSince = now();
      states = new Map(known.map(({ account, state }) => [account, state]));
      coming = known.flatMap(({ account, target }) => (target === instance ? [account] : []));
    },
    check: (): Readiness => {
      const wrong = [...group(), ...ofAccounts(), ...toCome()];
      return {
        ready: wrong.length === 0,
        reasons: wrong.map(({ line }) => line),
        causes: [...new Set(wrong.flatMap(({ causes }) => causes))],
      };
    },
  };
}

interface Wrong {
  readonly line: string;
  readonly causes: readonly Cause[];
}
