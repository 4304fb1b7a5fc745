import { VERSION } from '../../core/version.ts';
import type { AccountFigures, FleetAccount, FleetView } from '../../observe/fleet-view.ts';
import type { Readiness } from './causes.ts';
import { MAX_ERROR, shortened } from './shortened.ts';
import type { AccountElsewhere, FleetAccountStatus, FleetStatus } from './status-json.ts';

interface FleetStatusOptions {
  /** Prefix of the topics that all accounts of the fleet share. */
  readonly prefix: string;
  readonly instance: string;
  /** Returns the current time, in epoch ms, by a clock that never goes back. */
  readonly now: () => number;
  readonly readiness: () => Readiness;
  /** The accounts that run on this instance, by name. */
  readonly accounts: ReadonlyMap<string, { readonly figures: () => AccountFigures }>;
}

/** Maximum length of an account's name in the text of an error, in characters. */
const MAX_NAME = 60;

/** Computes the status of a fleet as this instance knows it, from the last {@link FleetView} that the instance received. */
export class FleetStatusModel {
  readonly #options: FleetStatusOptions;
  readonly #since: number;
  #view: FleetView;

  constructor(options: FleetStatusOptions) {
    this.#options = options;
    this.#since = options.now();
    const { instance } = options;
    this.#view = { instance, generation: undefined, instances: [], accounts: [] };
  }

  onFleet(newest: FleetView): void {
    this.#view = newest;
  }

  status(): FleetStatus {
    const { prefix, instance, now, readiness } = this.#options;
    const at = now();
    const all = [...this.#view.accounts, ...this.#unseen(at)];
    return {
      version: VERSION,
      prefix,
      at,
      since: this.#since,
      instance,
      generation: this.#view.generation ?? null,
      instances: this.#view.instances,
      ...readiness(),
      accounts: all
        .sort((a, b) => (a.account < b.account ? -1 : 1))
        .map((each) => this.#rowOf(each)),
    };
  }

  /** Returns the body of the 404 response for an account that does not run on this instance. */
  notHere(asked: string): AccountElsewhere {
    const account = shortened(asked, MAX_NAME);
    const known = this.#view.accounts.find((each) => each.account === asked);
    const error = elsewhereText(account, known, this.#options.instance);
    return { error, account, owner: known?.owner ?? null };
  }

  #rowOf({ account, state, owner, since, problem, figures }: FleetAccount): FleetAccountStatus {
    const here = this.#options.accounts.get(account);
    return {
      account,
      state,
      owner: owner ?? null,
      since,
      problem: problem === undefined ? null : shortened(problem, MAX_ERROR),
      isHere: here !== undefined,
      figures: here?.figures() ?? figures ?? null,
    };
  }

  /**
   * Returns the accounts that run on this instance but are not yet in the newest {@link FleetView}, with the state `starting` and with
   * `since` (in epoch ms) as the start of that state.
   */
  #unseen(since: number): FleetAccount[] {
    const { accounts, instance } = this.#options;
    const seen = new Set(this.#view.accounts.map(({ account }) => account));
    return [...accounts.keys()]
      .filter((account) => !seen.has(account))
      .map((account) => ({
        account,
        state: 'starting',
        owner: instance,
        since,
        problem: undefined,
      }));
  }
}

function elsewhereText(account: string, known: FleetAccount | undefined, instance: string): string {
  if (!known) return `no instance knows an account ${account}: ACCOUNTS_DIR has no file of it`;
  const { owner, problem } = known;
  if (owner !== undefined && owner !== instance) {
    return `${account} does not run on ${instance}: ${owner} runs it, ask there`;
  }
  const why = problem === undefined ? '' : `: ${shortened(problem, MAX_ERROR)}`;
  return `${account} does not run just now (${known.state})${why}`;
}
