import type { AccountFigures, FleetAccount, FleetView } from '../../observe/fleet-view.ts';
import type { Readiness } from './readiness.ts';
import { MAX_ERROR, shortened } from './shortened.ts';
import type { FleetAccountStatus, FleetStatus, NotHere } from './status-json.ts';

interface FleetStatusOptions {
  readonly version: string;
  /** Of the topics that all accounts share. */
  readonly prefix: string;
  /** This instance's name. */
  readonly instance: string;
  /** The clock: ms since the epoch, which never goes back. */
  readonly now: () => number;
  readonly readiness: () => Readiness;
  /** The accounts that run here, by name. */
  readonly accounts: ReadonlyMap<string, { readonly figures: () => AccountFigures }>;
}

/** Of a name that somebody asks for. */
const MAX_NAME = 60;

/** The fleet as an instance can tell of it. The newest view is kept, and nothing else. */
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
  /** What runs here, and is not in the view yet. */
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
    onFleet: (told: FleetView) => void (view = told),
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
    /** What there is to say to who asks here for an account that does not run here. */
    notHere: (asked: string): NotHere => {
      const account = shortened(asked, MAX_NAME);
      const known = view.accounts.find((each) => each.account === asked);
      const owner = known?.owner ?? null;
      return { error: notHereText(account, known, instance), account, owner };
    },
  };
}

function notHereText(account: string, known: FleetAccount | undefined, instance: string): string {
  if (!known) return `no instance knows an account ${account}: ACCOUNTS_DIR has no file of it`;
  const { owner, problem } = known;
  if (owner !== undefined && owner !== instance) {
    return `${account} does not run on ${instance}: ${owner} runs it, ask there`;
  }
  const why = problem === undefined ? '' : `: ${shortened(problem, MAX_ERROR)}`;
  return `${account} does not run just now (${known.state})${why}`;
}
