import type { AccountFigures, FleetAccount, FleetView } from '../../observe/fleet-view.ts';
import type { Readiness } from './readiness.ts';
import { MAX_ERROR, shortened } from './shortened.ts';
import type { FleetAccountStatus, FleetStatus, AccountElsewhere } from './status-json.ts';

interface FleetStatusOptions {
  readonly version: string;
  /** Name prefix of the Kafka topics that all accounts of the fleet share. */
  readonly prefix: string;
  /** Name of this instance. */
  readonly instance: string;
  /** Clock: returns ms since the epoch, and never goes back. */
  readonly now: () => number;
  readonly readiness: () => Readiness;
  /** The accounts that run on this instance, each with a function that returns its figures, by name. */
  readonly accounts: ReadonlyMap<string, { readonly figures: () => AccountFigures }>;
}

/** Maximum length of an account's name in the error text of a request for its status, in characters; longer names are shortened. */
const MAX_NAME = 60;

/** Computes the status of a fleet as this instance knows it, from the newest {@link FleetView} that it received. */
export function fleetStatus(options: FleetStatusOptions) {
  const { version, prefix, instance, now, readiness, accounts } = options;
  const since = now();
  let view: FleetView = { instance, generation: undefined, instances: [], accounts: [] };

  const rowOf = (each: FleetAccount): FleetAccountStatus => {
    const { account, state, owner = null, problem } = each;
    const here = accounts.get(account);
    return {
      account,
      state,
      owner,
      since: each.since,
      problem: problem === undefined ? null : shortened(problem, MAX_ERROR),
      isHere: here !== undefined,
      figures: here?.figures() ?? each.figures ?? null,
    };
  };
  /** Returns the accounts that run on this instance but are missing in the newest view of the fleet, in state `starting`. */
  const unseen = (at: number): FleetAccount[] => {
    const seen = new Set(view.accounts.map(({ account }) => account));
    return [...accounts.keys()]
      .filter((account) => !seen.has(account))
      .map((account) => ({
        account,
        state: 'starting',
        owner: instance,
        since: at,
        problem: undefined,
      }));
  };

  return {
    onFleet: (newest: FleetView) => void (view = newest),
    status: (): FleetStatus => {
      const at = now();
      const { ready, reasons, causes } = readiness();
      const all = [...view.accounts, ...unseen(at)].sort((a, b) =>
        a.account < b.account ? -1 : 1,
      );
      return {
        version,
        prefix,
        at,
        since,
        instance,
        generation: view.generation ?? null,
        instances: view.instances,
        ready,
        reasons,
        causes,
        accounts: all.map(rowOf),
      };
    },
    /** Returns the body of the error response to a request for the status of an account that does not run on this instance. */
    notHere: (asked: string): AccountElsewhere => {
      const account = shortened(asked, MAX_NAME);
      const known = view.accounts.find((each) => each.account === asked);
      const owner = known?.owner ?? null;
      return { error: elsewhereText(account, known, instance), account, owner };
    },
  };
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
