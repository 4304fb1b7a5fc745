import type { FleetState, FleetView } from '../../observe/fleet-view.ts';
import type { Cause, Readiness } from './readiness.ts';

interface FleetReadinessOptions {
  /** The accounts that run on this instance, each with a function that returns its readiness, by name. */
  readonly accounts: ReadonlyMap<string, { readonly check: () => Readiness }>;
  /** Clock: returns ms since the epoch, and never goes back. */
  readonly now: () => number;
}

/** States in which an account of a fleet needs an operator: restarting an instance does not help. */
const EXTERNAL_STATES: ReadonlySet<FleetState> = new Set(['failed', 'wrong-file', 'quarantined']);
/** Causes of an account not being ready that most likely lie with the account's own API, not with this instance. */
const API_CAUSES: ReadonlySet<Cause> = new Set(['failed', 'login', 'api']);

/**
 * Computes the readiness of an instance of a fleet. The instance is ready when it is in the fleet's group and each account that it runs is
 * ready, or has failed for a reason that a restart of this instance would not fix. It is not ready while accounts that are assigned to it
 * do not run yet: a rolling restart would otherwise stop the next instance too early. An account that waits for its API is tolerated while
 * another account on this instance is ready; if none is, the instance itself may have no access to any API.
 */
export function fleetReadiness({ accounts, now }: FleetReadinessOptions) {
  let states: ReadonlyMap<string, FleetState> = new Map();
  /** Names of accounts that are assigned to this instance and do not run on it yet. */
  let coming: readonly string[] = [];
  let isIn = false;
  /** When this instance dropped out of the fleet's group, in ms since the epoch; undefined until that happens. */
  let outSince: number | undefined;

  const group = (): FleetProblem[] => {
    if (isIn) return [];
    if (outSince === undefined) {
      return [{ line: "not in the fleet's group yet", causes: ['starting'] }];
    }
    const time = `${new Date(outSince).toISOString().slice(0, 19)}Z`;
    return [{ line: `not in the fleet's group any more since ${time}`, causes: ['kafka'] }];
  };
  const ofAccounts = (): FleetProblem[] => {
    const all = [...accounts].map(([account, { check }]) => ({ account, ...check() }));
    const anyReady = all.some(({ ready }) => ready);
    const isItsOwn = ({ account, causes }: (typeof all)[number]) =>
      EXTERNAL_STATES.has(states.get(account) ?? 'running') ||
      causes.every((cause) => cause === 'failed' || (anyReady && API_CAUSES.has(cause)));
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

  const toCome = (): FleetProblem[] =>
    coming.length === 0
      ? []
      : [
          {
            line: `${coming.join(', ')}: assigned to this instance, not running yet`,
            causes: ['starting'],
          },
        ];

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

interface FleetProblem {
  readonly line: string;
  readonly causes: readonly Cause[];
}
