import type { FleetState, FleetView } from '../../observe/fleet-view.ts';
import type { Cause, Readiness } from './causes.ts';

interface FleetReadinessOptions {
  /** The accounts that run on this instance, by name. */
  readonly accounts: ReadonlyMap<string, { readonly check: () => Readiness }>;
  /** Returns the current time, in epoch ms, by a clock that never goes back. */
  readonly now: () => number;
}

/** States of an account that a restart of the instance does not end: an operator has to act or, for `quarantined`, an hour has to pass. */
const EXTERNAL_STATES: ReadonlySet<FleetState> = new Set(['failed', 'wrong-file', 'quarantined']);
/**
 * Causes that are most likely due to an account's API. An account with only such causes does not make the instance unready while another
 * account of the instance is ready.
 */
const API_CAUSES: ReadonlySet<Cause> = new Set(['failed', 'login', 'api']);

/**
 * Computes the readiness of an instance of a fleet. The instance is ready when all of this is true:
 *
 * - The instance is a member of the fleet.
 * - The instance has claimed every account that is assigned to it and can be served.
 * - Each account that runs on the instance is ready, or a restart of the instance would probably not make it ready.
 */
export class FleetReadiness {
  readonly #options: FleetReadinessOptions;
  #view: FleetView | undefined;
  /** When this instance last dropped out of the fleet's membership, in epoch ms. Undefined if it never did. */
  #outSince: number | undefined;

  constructor(options: FleetReadinessOptions) {
    this.#options = options;
  }

  onFleet(view: FleetView): void {
    const wasIn = this.#view?.generation !== undefined;
    if (wasIn && view.generation === undefined) this.#outSince = this.#options.now();
    this.#view = view;
  }

  readonly check = (): Readiness => {
    const problems = [...this.#ofGroup(), ...this.#ofAccounts(), ...this.#notRunningYet()];
    return {
      ready: problems.length === 0,
      reasons: problems.map(({ line }) => line),
      causes: [...new Set(problems.flatMap(({ causes }) => causes))],
    };
  };

  #ofGroup(): FleetProblem[] {
    if (this.#view?.generation !== undefined) return [];
    if (this.#outSince === undefined) {
      return [{ line: "not in the fleet's group yet", causes: ['starting'] }];
    }
    const time = `${new Date(this.#outSince).toISOString().slice(0, 19)}Z`;
    return [{ line: `not in the fleet's group any more since ${time}`, causes: ['kafka'] }];
  }

  #ofAccounts(): FleetProblem[] {
    const states = new Map(this.#view?.accounts.map(({ account, state }) => [account, state]));
    const all = [...this.#options.accounts].map(([account, each]) => ({
      account,
      ...each.check(),
    }));
    const anyReady = all.some(({ ready }) => ready);
    const isExternal = ({ account, causes }: (typeof all)[number]) =>
      EXTERNAL_STATES.has(states.get(account) ?? 'running') ||
      causes.every((cause) => cause === 'failed' || (anyReady && API_CAUSES.has(cause)));
    const wrong = all.filter((each) => !each.ready && !isExternal(each));
    const alike = new Map<string, Set<string>>();
    for (const { account, reasons } of wrong)
      for (const reason of reasons)
        alike.set(reason, (alike.get(reason) ?? new Set()).add(account));
    const causes = wrong.flatMap((each) => each.causes);
    return [...alike].map(([reason, names]) => ({
      line: `${[...names].join(', ')}: ${reason}`,
      causes,
    }));
  }

  #notRunningYet(): FleetProblem[] {
    // If the instance were ready already, a rolling restart would stop the next instance too early.
    const assigned = this.#view?.accounts.filter(({ target }) => target === this.#view?.instance);
    if (!assigned || assigned.length === 0) return [];
    const names = assigned.map(({ account }) => account).join(', ');
    return [{ line: `${names}: assigned to this instance, not running yet`, causes: ['starting'] }];
  }
}

interface FleetProblem {
  readonly line: string;
  readonly causes: readonly Cause[];
}
