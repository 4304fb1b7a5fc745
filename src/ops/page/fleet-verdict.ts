// The verdict at the top of a fleet's page (what is wrong with the fleet, if anything), and the health of each of its accounts.

import type { FleetState } from '../../observe/fleet-view.ts';
import type { FleetAccountStatus, FleetStatus } from '../status/status-json.ts';
import { disconnectedVerdict, titleOf } from './status-verdict.ts';
import type { ConnectionState, Verdict, Wrong } from './status-verdict.ts';
import { duration, plural, since } from './words.ts';

/** Maximum number of accounts that are named in one line about a problem that they share. */
const MAX_NAMED = 5;
const LEVELS: Readonly<Record<Exclude<Health, 'good'>, Wrong['level']>> = {
  bad: 'bad',
  slow: 'warning',
  busy: 'busy',
};

/**
 * Computes the summary of a fleet from its newest status. Without a connection to the service, the summary says so and includes the last
 * known problems.
 */
export function fleetVerdictOf(
  status: FleetStatus | undefined,
  connection: ConnectionState,
): Verdict {
  const problems = status ? problemsOf(status) : [];
  if (!connection.isLive) return { ...disconnectedVerdict(status?.at, connection), problems };
  if (!status) return { tone: 'busy', headline: 'Listening', subline: '', problems };
  const { accounts, at, generation, instance } = status;
  const total = plural(accounts.length, 'account');
  const bad = accounts.filter((each) => healthOf(each, at) === 'bad');
  const sick = bad.filter(({ state }) => state === 'running').length;
  // Accounts that run although their file is invalid on this instance: their owner may have another, valid version of it.
  const misfiled = bad.filter((each) => each.state === 'wrong-file' && each.owner !== null).length;
  const down = bad.length - sick - misfiled;
  const slow = accounts.filter((each) => healthOf(each, at) === 'slow').length;
  const busy = accounts.filter((each) => healthOf(each, at) === 'busy').length;
  const subline = sublineOf(status);
  if (bad.length > 0) {
    const kinds = [
      { count: down, one: 'does not run', many: 'do not run' },
      { count: sick, one: 'is not ready', many: 'are not ready' },
      { count: misfiled, one: 'has a wrong file here', many: 'have wrong files here' },
    ];
    const headline = kinds
      .filter(({ count }) => count > 0)
      .map(({ count, one, many }, nth) => {
        const ofAll = nth === 0 ? ` of ${total}` : '';
        return `${count}${ofAll} ${count === 1 ? one : many}`;
      })
      .join(', ');
    return { tone: 'bad', headline, subline, problems };
  }
  if (accounts.length === 0) {
    return generation === null
      ? { tone: 'busy', headline: 'Starting: not in the group yet', subline: '', problems }
      : { tone: 'warn', headline: 'No account: ACCOUNTS_DIR has no files', subline, problems };
  }
  if (generation === null) {
    const old = `The figures below are the last ones that this instance had. ${subline}`;
    return { tone: 'bad', headline: `${instance} is not in the group`, subline: old, problems };
  }
  const coming = slow + busy;
  if (coming > 0) {
    const headline = `${coming} of ${total}: starting or being handed over`;
    return { tone: slow > 0 ? 'warn' : 'busy', headline, subline, problems };
  }
  const headline = accounts.length === 1 ? 'The only account runs' : `All ${total} run`;
  return { tone: 'good', headline, subline, problems };
}

function sublineOf({ accounts, instances }: FleetStatus): string {
  const lags = accounts.flatMap(({ figures }) => figures?.lagMs ?? []);
  const freshness =
    lags.length > 0
      ? ` Half of all changes are published within ${duration(Math.max(...lags))} in the slowest of ${plural(lags.length, 'account')}.`
      : '';
  return `${plural(instances.length, 'instance')} in the group.${freshness}`;
}

/** Lists the problems of this instance, then those of the accounts, the most severe first. Accounts with the same problem share a line. */
function problemsOf(status: FleetStatus): Wrong[] {
  const { accounts, at, generation, instance } = status;
  const alike = new Map<string, FleetAccountStatus[]>();
  for (const each of accounts) {
    const health = healthOf(each, at);
    if (health === 'good') continue;
    const name = JSON.stringify([health, problemOf(each)]);
    const before = alike.get(name);
    if (before) before.push(each);
    else alike.set(name, [each]);
  }
  const lines = [...alike.values()]
    .sort((a, b) => rank(a[0]!, at) - rank(b[0]!, at) || b.length - a.length)
    .map((group): Wrong => {
      const first = group[0]!;
      const health = healthOf(first, at);
      const from = Math.min(...group.map((each) => each.since));
      return {
        level: LEVELS[health as keyof typeof LEVELS],
        where: namesOf(group),
        text: group.length === 1 ? fullProblemOf(first) : problemOf(first),
        when: first.state === 'running' ? '' : ` since ${since(from, at)}`,
      };
    });
  if (generation !== null) return lines;
  const out: Wrong = {
    level: accounts.length === 0 ? 'busy' : 'bad',
    where: instance,
    text: 'is not a member of the fleet now: what this page shows of other instances may be out of date',
    when: '',
  };
  return [out, ...lines];
}

function namesOf(accounts: readonly FleetAccountStatus[]): string {
  const named = accounts.slice(0, MAX_NAMED).map(({ account }) => account);
  const more = accounts.length - named.length;
  return named.join(', ') + (more > 0 ? ` and ${more} more` : '') + ':';
}

/**
 * Health of an account of a fleet:
 *
 * - `good`: the account runs, and is ready or has not reported whether it is ready.
 * - `busy`: the account is starting, in handover, or runs and has not caught up with its lists yet.
 * - `slow`: the account has been starting or in handover for longer than {@link SLOW_MS}.
 * - `bad`: the account does not run, its file is invalid on this instance, or it is not ready for another reason.
 */
type Health = 'bad' | 'slow' | 'busy' | 'good';

/** How long an account may be starting or in handover before its health is `slow`, in ms. */
const SLOW_MS = 20_000;

/** Returns the health of an account. `at` is when the account's status was computed, in epoch ms. */
export function healthOf({ state, since, figures }: FleetAccountStatus, at: number): Health {
  if (state === 'starting' || state === 'moving') return at - since > SLOW_MS ? 'slow' : 'busy';
  if (state !== 'running') return 'bad';
  if (figures === null || figures.ready) return 'good';
  return figures.causes.every((cause) => cause === 'starting') ? 'busy' : 'bad';
}

/** Describes the problem of an account in a few words, such as `it is starting`; empty if there is none. */
function problemOf({ state, problem, figures }: FleetAccountStatus): string {
  if (state === 'running') return figures === null || figures.ready ? '' : titleOf(figures.causes);
  return PROBLEMS[state] + (problem === null ? '' : `: ${problem}`);
}

const PROBLEMS: Readonly<Record<Exclude<FleetState, 'running'>, string>> = {
  starting: 'it is starting',
  moving: 'it is moving to another instance',
  'without-owner': 'no instance runs it',
  failed: "it can't go on",
  'wrong-file': 'its file is wrong',
  quarantined: 'quarantined, because it took its instance down again and again',
};

/** Describes the problem of an account: by the reported reasons if the account runs and is not ready, otherwise like {@link problemOf}. */
function fullProblemOf(account: FleetAccountStatus): string {
  const { state, figures } = account;
  if (state !== 'running' || figures === null || figures.ready) return problemOf(account);
  return figures.reasons.length > 0 ? figures.reasons.join('; ') : problemOf(account);
}

const RANKS: readonly Health[] = ['bad', 'slow', 'busy', 'good'];

/** Returns the text beside an account's state: the account's problem, or why a running account is not ready. Empty if neither is known. */
export function stateDetail(account: FleetAccountStatus): string {
  return account.state === 'running' ? fullProblemOf(account) : (account.problem ?? '');
}

/**
 * Returns the rank of an account's health: 0 for the worst health, higher numbers for better ones. `at` is when the account's status was
 * computed, in epoch ms.
 */
export function rank(account: FleetAccountStatus, at: number): number {
  return RANKS.indexOf(healthOf(account, at));
}
